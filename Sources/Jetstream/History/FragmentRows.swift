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
  /// One model.
  package struct Row: Sendable, Hashable {
    /// The name of the model's class on the wire.
    package let className: String
    /// The values by property name, without what waits.
    private var values: JSONObject
    /// The operations that wait to be applied to their collections, by property. One alone costs as much as the
    /// collection is large, and many together cost that once.
    private var waiting: [String: [PropertyOperation]] = [:]

    fileprivate init(className: String, properties: JSONObject) {
      (self.className, values) = (className, properties)
    }

    /// Takes a model as a fragment has it: null is no entry of a dictionary.
    fileprivate init(_ fragment: SyncFragment) {
      (className, values) = (fragment.className, fragment.properties)
      values.dropNullEntries(of: nil)
    }

    /// The values by property name. Cost: O(n) in the collections for which operations wait.
    package var properties: JSONObject {
      var row = self
      row.settle()
      return row.values
    }

    /// Returns the value of a property. Cost: O(n) in a collection for which operations wait.
    fileprivate func value(of key: String) -> JSONValue? {
      guard let operations = waiting[key] else { return values[key] }
      return PropertyOperation.apply(operations, to: values[key], within: .unknown)
    }

    /// Writes values of properties; null is no entry of a dictionary.
    fileprivate mutating func assign(_ new: JSONObject) {
      if !waiting.isEmpty { for (key, _) in new { waiting[key] = nil } }
      values.assign(new, of: nil)
    }

    /// Applies operations to a property. Those on a collection wait until they are as many as the models in it, so that
    /// each costs the same.
    fileprivate mutating func perform(_ operations: [PropertyOperation], on key: String) {
      let value = values[key] ?? .array([])
      guard case .array(let elements) = value, operations.allSatisfy({ $0.model != nil }) else {
        values[key] = PropertyOperation.apply(
          operations, to: self.value(of: key), within: .unknown)
        waiting[key] = nil
        return
      }
      if elements.isEmpty { values[key] = value }
      waiting[key, default: []] += operations
      guard waiting[key]!.count > max(64, elements.count) else { return }
      values[key] = self.value(of: key)
      waiting[key] = nil
    }

    /// Applies all operations that wait.
    fileprivate mutating func settle() {
      if waiting.isEmpty { return }
      for (key, _) in waiting { values[key] = value(of: key) }
      waiting = [:]
    }

    package static func == (a: Row, b: Row) -> Bool {
      a.className == b.className && a.properties == b.properties
    }

    package func hash(into hasher: inout Hasher) {
      hasher.combine(className)
      hasher.combine(properties)
    }
  }

  /// The UUID of the root; nil as long as it is not known.
  package private(set) var root: UUID?
  /// All rows, also those that wait to be dropped.
  private(set) var rows: [UUID: Row] = [:]
  /// True if there may be rows that the root does not lead to.
  private var isDropDue = false

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
    isDropDue = keepsUnreachable
    root = state.first?.uuid ?? root
    for fragment in state {
      rows[fragment.uuid] = Row(fragment)
    }
  }

  /// Applies the fragments of one change set: the additions first, then the changes. What fragments say of models that
  /// are not there is left out.
  ///
  /// Cost: O(n) in the fragments; O(n) in all values if models were removed before, and the fragments name old ones.
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
    for fragment in fragments where fragment.kind == .add {
      add(fragment)
      if !named.contains(fragment.uuid) { isDropDue = true }
    }
    for fragment in fragments where fragment.kind == .change { change(fragment) }
  }

  /// Adds a model, or writes the values of one that is there already.
  private mutating func add(_ fragment: SyncFragment) {
    guard let row = rows[fragment.uuid] else {
      rows[fragment.uuid] = Row(fragment)
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
    for (key, _) in fragment.properties {
      let old = rows[fragment.uuid]!.value(of: key)
      old?.forEachUUID { if rows[$0] != nil { isDropDue = true } }
    }
    rows[fragment.uuid]!.assign(fragment.properties)
    for entry in fragment.operations {
      let operations = entry.operations.filter { operation in
        switch operation {
        case .insert(let uuid, _): return rows[uuid] != nil
        case .remove:
          isDropDue = true
          return true
        case .move, .add: return true
        }
      }
      rows[fragment.uuid]!.perform(operations, on: entry.key)
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
    isDropDue = true
  }

  /// Gives the root another UUID, also where values name it.
  mutating func renameRoot(to uuid: UUID) {
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
    let live = Set(reachable())
    rows = rows.filter { live.contains($0.key) }
    isDropDue = false
  }
}

extension SyncFragment {
  /// Calls `body` with the models that the fragment puts somewhere: every UUID in a value, and the models of insertions.
  func forEachHeldUUID(_ body: (UUID) -> Void) {
    for (_, value) in properties { value.forEachUUID(body) }
    for entry in operations {
      for case .insert(let uuid, _) in entry.operations { body(uuid) }
    }
  }
}
