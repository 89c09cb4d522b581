import Foundation

/// The content of a scope without model classes: one row for each model, with its class name and its properties as
/// JSON.
///
/// Full states and fragments make the rows. They agree with what a ``Scope`` makes of the same input, as far as that
/// follows from the input alone. Without the classes, the rows cannot know:
///
/// - **Default values.** Additions and full states carry every property that is not local, so rows are complete. Only
///   what a peer of version 1 of the protocol leaves out, because it has its default, is missing in a row. Of a scope
///   that was never downloaded, a row has just what was written here.
/// - **Which values hold models.** Every text that is the UUID of a row counts as a reference to it, at any depth. So a
///   model stays as long as a weak reference, or a plain value, names it, where a scope has let go of it.
/// - **The range of a counter.** It can be any number of 64 bits, signed or unsigned.
/// - **Which values a class refuses.** Rows take every value.
///
/// Models that the root does not lead to are dropped before fragments name them again, and never come out.
package struct FragmentRows: Sendable {
  /// The UUID of the root; nil as long as it is not known.
  package private(set) var root: UUID?
  /// All rows, also those that wait to be dropped.
  private(set) var rows: [UUID: Row] = [:]
  /// The links between the rows; nil until rows are to be dropped.
  private var links: LinkTree?
  /// True if there may be rows that the root does not lead to, as far as that is known without ``links``.
  private var isUnsure = false
  /// True if there may be rows that the root does not lead to.
  private var isDropDue: Bool { links?.hasLoose ?? isUnsure }

  /// Makes rows without any model.
  package init(root: UUID? = nil) { self.root = root }

  /// The row of a model that the root leads to, or that was not dropped yet.
  package subscript(uuid: UUID) -> Row? { rows[uuid] }

  /// The models that the root leads to, depth first and each once, the root first. Cost: O(n) in all values.
  package func reachable() -> [UUID] {
    guard let root else { return [] }
    var result: [UUID] = []
    var seen: Set<UUID> = []
    var open = [root]
    while let uuid = open.popLast() {
      guard let row = rows[uuid], seen.insert(uuid).inserted else { continue }
      result.append(uuid)
      let bottom = open.count
      for (_, value) in row.properties { value.forEachUUID { open.append($0) } }
      open[bottom...].reverse()
    }
    return result
  }

  /// Every model as a fragment, in the form of ``Scope/fullState()``. Cost: O(n) in all values.
  package func fullState() -> [SyncFragment] {
    reachable().compactMap { uuid in
      rows[uuid].map { row in
        SyncFragment(
          uuid == root ? .change : .add, uuid: uuid, className: row.className,
          properties: row.properties)
      }
    }
  }

  /// The content in the form of ``Scope/canonicalJSON``.
  package var canonicalJSON: String { fullState().canonicalJSON }

  // MARK: What happens to the rows

  /// Replaces the content by a full state, the root first.
  ///
  /// - Parameter keepsUnreachable: true if models that the state does not contain may come back.
  package mutating func replace(with state: [SyncFragment], keepsUnreachable: Bool = false) {
    if !keepsUnreachable { rows = [:] }
    (links, isUnsure) = (nil, keepsUnreachable)
    root = state.first?.uuid ?? root
    for fragment in state {
      rows[fragment.uuid] = Row(fragment)
    }
  }

  /// Applies the fragments of one change set: the additions first, then the changes. What fragments say of models that
  /// are not there is left out.
  ///
  /// Cost: O(n) in the fragments. If these name old models, besides: O(n) in the values of the models that were removed
  /// before, and the depth of those that were moved; the first time, O(n) in all values.
  ///
  /// - Parameter keepsUnreachable: true if removed models may come back.
  package mutating func apply(_ fragments: [SyncFragment], keepsUnreachable: Bool = false) {
    var named: Set<UUID> = []
    for fragment in fragments { fragment.forEachHeldUUID { named.insert($0) } }
    if isDropDue, !keepsUnreachable {
      let additions = fragments.lazy.filter { $0.kind == .add }.map(\.uuid)
      if named.contains(where: { rows[$0] != nil })
        || additions.contains(where: { rows[$0] != nil })
      {
        dropUnreachable()
      }
    }
    for fragment in fragments where fragment.kind == .add { add(fragment) }
    for fragment in fragments where fragment.kind == .change { change(fragment) }
  }

  /// Adds a model, or writes the values of one that is there already.
  private mutating func add(_ fragment: SyncFragment) {
    guard let row = rows[fragment.uuid] else {
      rows[fragment.uuid] = Row(fragment)
      isUnsure = true
      links?.add(fragment.uuid)
      for (key, value) in fragment.properties { noteLinks(key, of: fragment.uuid, nil, value) }
      return
    }
    if row.className == fragment.className { change(fragment) }
  }

  /// Writes what a fragment says into the row of its model. The root gets its row here if it has none.
  mutating func change(_ fragment: SyncFragment) {
    // No copy of the row is held: the row would be copied before it is changed.
    if rows[fragment.uuid] == nil {
      guard fragment.uuid == root else { return }
      rows[fragment.uuid] = Row(className: fragment.className, properties: [:])
    }
    for (key, value) in fragment.properties {
      noteLinks(key, of: fragment.uuid, rows[fragment.uuid]!.value(of: key), value)
    }
    rows[fragment.uuid]!.assign(fragment.properties)
    for entry in fragment.operations {
      let operations = entry.operations.filter { operation in
        if case .insert(let uuid, _) = operation { rows[uuid] != nil } else { true }
      }
      let isCollection = rows[fragment.uuid]!.perform(operations, on: entry.key)
      if isCollection { noteLinks(entry.key, of: fragment.uuid, operations) }
    }
  }

  /// Notes that a property of a row gets another value.
  private mutating func noteLinks(
    _ key: String, of uuid: UUID, _ old: JSONValue?, _ new: JSONValue
  ) {
    if links == nil {
      if !isUnsure { old?.forEachUUID { if rows[$0] != nil { isUnsure = true } } }
      return
    }
    let place = LinkTree.Place(holder: uuid, key: key)
    var come: Set<UUID> = []
    new.forEachUUID { come.insert($0) }
    old?.forEachUUID { if !come.contains($0) { links!.unlink(place, from: $0) } }
    for held in come { links!.link(place, to: held) }
  }

  /// Notes operations on a collection of a row.
  private mutating func noteLinks(
    _ key: String, of uuid: UUID, _ operations: [PropertyOperation]
  ) {
    let place = LinkTree.Place(holder: uuid, key: key)
    for operation in operations {
      switch operation {
      case .insert(let held, _): links?.link(place, to: held)
      case .remove(let held):
        isUnsure = true
        links?.unlink(place, from: held)
      case .move, .add: break
      }
    }
  }

  /// Applies the operations that wait in rows: otherwise each reading of a row would do it for itself. Cost: O(n) in the
  /// rows and in the collections for which operations wait.
  mutating func settle() {
    for uuid in rows.keys { rows[uuid]!.settle() }
  }

  /// Puts a model into its place as it is, whatever was there.
  mutating func put(_ fragment: SyncFragment) {
    rows[fragment.uuid] = Row(fragment)
    (links, isUnsure) = (nil, true)
  }

  /// Gives the root another UUID, also where values name it.
  mutating func renameRoot(to uuid: UUID) {
    (links, isUnsure) = (nil, isDropDue)
    guard let old = root, old != uuid else {
      root = uuid
      return
    }
    let renaming = RootRenaming(from: old, to: uuid)
    root = uuid
    rows = Dictionary(
      rows.map { name, row in
        let properties = renaming(row.properties, of: nil)
        return (renaming(name), Row(className: row.className, properties: properties))
      }, uniquingKeysWith: { first, _ in first })
  }

  private mutating func dropUnreachable() {
    guard let root else { return rows = [:] }
    if links == nil {
      links = LinkTree(root: root)
      for uuid in rows.keys { links!.add(uuid) }
      for uuid in reachable() {
        for (key, value) in rows[uuid]!.properties { noteLinks(key, of: uuid, nil, value) }
      }
    }
    var tree = links.take()!
    let gone = tree.takeUnreached { uuid in
      rows[uuid]?.properties.map { key, value in
        var uuids: [UUID] = []
        value.forEachUUID { uuids.append($0) }
        return (key, uuids)
      } ?? []
    }
    links = consume tree
    for uuid in gone {
      guard let row = rows.removeValue(forKey: uuid) else { continue }
      for (key, value) in row.properties { noteLinks(key, of: uuid, value, .null) }
    }
  }
}
