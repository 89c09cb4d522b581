import Foundation

/// The content of a client's scope without model classes: the rows that the server has confirmed, and the pending change
/// sets in front of them.
///
/// Follows the same records as ``Replica``, with the limits of ``FragmentRows``, and shows the same but for:
///
/// - A pending value of a property with a ``MergeRule`` stands in front of the confirmed one as it is, since only the
///   class has the rule.
/// - Where several pending change sets remove a model and put it back, these rows merge each addition with what other
///   clients have written, as the server will. A replica merges the last one, until the server has decided.
struct ClientRows {
  private struct Pending {
    let number: Int
    var set: ChangeSet
    /// The values of counters right after the change set, which count towards a server of version 1.
    var counters: [PropertyKey: JSONValue] = [:]
  }

  private var confirmed: FragmentRows
  /// In the order of their numbers.
  private var pending: [Pending] = []
  private var hasBase = false
  /// True as long as no server has told its order: one of version 1 knows no operations.
  private var isOfValues = true

  /// Removed models can come back as long as a pending change set may be rejected that has removed them.
  private var keepsUnreachable: Bool { !pending.isEmpty }

  /// Makes the rows of a history: its base, its pending change sets, and its records.
  init(_ history: ReplicaHistory) {
    confirmed = FragmentRows(root: history.root)
    if let base = history.base { receive(base) }
    for fragment in history.departed where confirmed[fragment.uuid] == nil {
      confirmed.put(fragment)
    }
    pending = history.pending.map { Pending(number: $0.number, set: $0.set, counters: $0.counters) }
    for record in history.records { apply(record) }
  }

  /// The rows that the client shows. Cost: O(n) in all values.
  var visible: FragmentRows {
    var rows = confirmed
    let live = pending.isEmpty ? [] : Set(confirmed.reachable())
    for entry in pending { show(entry, in: &rows, live: live) }
    rows.settle()
    return rows
  }

  // MARK: Records

  private mutating func apply(_ record: ReplicaRecord) {
    switch record {
    case .named(_, let root):
      if !hasBase { confirmed.renameRoot(to: root) }
    case .made(let number, let set): add(number, set)
    case .confirmed(let fragments, _, _):
      confirmed.apply(fragments, keepsUnreachable: keepsUnreachable)
    case .together(let records): for record in records { apply(record) }
    case .decided(let decided): conclude(decided)
    case .base(let base): receive(base)
    case .known, .forgotten, .discarded: break
    }
  }

  private mutating func add(_ number: Int, _ set: ChangeSet) {
    let at = pending.firstIndex { $0.number > number } ?? pending.endIndex
    pending.insert(Pending(number: number, set: set), at: at)
    let counters = set.fragments.flatMap { fragment in
      fragment.operations.lazy.filter { $0.operations.contains { $0.model == nil } }.map {
        PropertyKey(uuid: fragment.uuid, name: $0.key)
      }
    }
    guard isOfValues, !counters.isEmpty else { return }
    let rows = visible
    for key in counters { pending[at].counters[key] = rows[key.uuid]?.properties[key.name] }
  }

  private mutating func conclude(_ decided: ReplicaRecord.Decided) {
    guard let at = pending.firstIndex(where: { $0.number == decided.number }) else { return }
    let fragments = pending[at].set.fragments
    var effects: [[SyncFragment]] = []
    if decided.replies.count == fragments.count {
      let accepted = zip(fragments, decided.replies).filter { $0.1.error == nil }
      if decided.effective == nil { effects.append(accepted.map(\.0)) }
      effects.append(
        accepted.compactMap { fragment, reply in
          reply.modifications.map {
            SyncFragment(
              .change, uuid: fragment.uuid, className: fragment.className, properties: $0)
          }
        })
    }
    effects.append(decided.effective ?? [])
    for effect in effects { confirmed.apply(effect, keepsUnreachable: true) }
    pending.remove(at: at)
  }

  private mutating func receive(_ base: ReplicaBase) {
    if let old = confirmed.root, old != base.root {
      let renaming = RootRenaming(from: old, to: base.root)
      for at in pending.indices { pending[at].set = renaming(pending[at].set) }
      confirmed.renameRoot(to: base.root)
    }
    if !hasBase, let root = base.fragments.first,
      let at = pending.firstIndex(where: { $0.set.isInitialContent })
    {
      pending[at].set = pending[at].set.initialContent(besides: root, root: root.uuid)
    }
    isOfValues = base.position == nil
    hasBase = true
    confirmed.replace(with: base.fragments, keepsUnreachable: keepsUnreachable)
  }

  // MARK: What is pending

  private func show(_ entry: Pending, in rows: inout FragmentRows, live: Set<UUID>) {
    for fragment in entry.set.fragments where fragment.kind == .add {
      var fragment = fragment
      // One that is put back merges with the model even when the server has it no more.
      let isKnown =
        fragment.bases.isEmpty ? live.contains(fragment.uuid) : confirmed[fragment.uuid] != nil
      if isKnown, let row = rows[fragment.uuid] { putBack(&fragment, onto: row.properties) }
      rows.put(fragment)
    }
    for var fragment in entry.set.fragments where fragment.kind == .change {
      if isOfValues {
        for step in fragment.operations {
          let key = PropertyKey(uuid: fragment.uuid, name: step.key)
          guard let value = entry.counters[key] else { continue }
          fragment.operations[step.key] = []
          fragment.properties[step.key] = value
        }
      }
      rows.change(begin(fragment, of: entry.set, in: rows))
      rows.change(fragment)
    }
  }

  /// Returns a fragment with the default values of counters to which initial content adds something, and which a root has
  /// not had from the server so far.
  private func begin(
    _ fragment: SyncFragment, of set: ChangeSet, in rows: FragmentRows
  ) -> SyncFragment {
    var result = SyncFragment(
      .change, uuid: fragment.uuid, className: fragment.className, properties: [:])
    guard set.isInitialContent, fragment.uuid == rows.root else { return result }
    let known = rows[fragment.uuid]?.properties
    for entry in fragment.operations where known?[entry.key] == nil {
      guard entry.operations.contains(where: { $0.model == nil }) else { continue }
      result.properties[entry.key] = set.defaultValue(of: entry.key, root: fragment.uuid)
    }
    return result
  }

  /// Merges an addition with what other replicas have made of the model, which is still there: see
  /// ``ModelSchema/Property/putBack(_:onto:base:)``.
  private func putBack(_ addition: inout SyncFragment, onto theirs: JSONObject) {
    for (key, mine) in addition.properties {
      guard let value = theirs[key], !value.isWritten(as: mine) else { continue }
      let lists = (PropertyContent(mine), PropertyContent(value))
      guard let base = addition.bases[key] else {
        // It takes nothing out of a collection.
        guard case (.list(let mine), .list(var list)) = lists else { continue }
        list.apply(mine.elements.lazy.map { .insert($0, .end) })
        addition.properties[key] = list.json
        continue
      }
      if mine.isWritten(as: base) {
        addition.properties[key] = value
      } else if !value.isWritten(as: base), case (.list(let mine), .list(let list)) = lists,
        case .list(let base) = PropertyContent(base)
      {
        addition.properties[key] = list.merging(from: base, to: mine).json
      }
    }
    for (key, value) in theirs where addition.properties[key] == nil {
      addition.properties[key] = value
    }
  }
}

extension ChangeSet {
  /// Returns the part of pending initial content for which the server's first state has no content: the client sends no
  /// more than that. The change set itself tells what it departs from, which are the default values.
  ///
  /// - Parameters:
  ///   - state: the root in the server's first state.
  ///   - root: the UUID by which the change set names the root.
  func initialContent(besides state: SyncFragment, root: UUID) -> ChangeSet {
    let part = InitialContent(
      of: fragments, root: root, naming: { $0.forEachHeldUUID($1) },
      hasContent: { key in
        if let dictionary = EntryName.dictionary(ofWhatMayBe: key) {
          return state.properties.contains { EntryName.isEntry($0.key, of: dictionary) }
        }
        guard let value = state.properties[key] else { return false }
        return defaultValue(of: key, root: root).map { !$0.isWritten(as: value) }
          ?? ![.array([]), .integer(0)].contains(value)
      })
    return with(part.fragments, undo: undo)
  }
}
