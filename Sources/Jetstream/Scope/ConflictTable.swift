import Foundation

/// The conflicts of a ledger, oldest first, found by their identity and by the property or the addition that they are
/// about.
///
/// A conflict and each of its consequences is a part, which keeps its place while it is in the table: a consequence takes
/// the position of its conflict when that is removed alone.
struct ConflictTable {
  private struct Place {
    /// The number of the conflict, counted from the first one on.
    let number: Int
    /// 0 for the conflict itself, and the position of a consequence from 1 on.
    let part: Int

    func isBefore(_ other: Place) -> Bool {
      number < other.number || (number == other.number && part < other.part)
    }
  }

  /// The property that a part is about, or the addition of the model.
  private struct Subject: Hashable {
    let model: UUID
    /// Nil for an addition.
    let property: String?

    init(_ property: String?, of model: UUID) { (self.model, self.property) = (model, property) }
    init(_ part: Conflict) { self.init(part.property, of: part.model) }
    init(_ name: ConflictName) { self.init(name.property, of: name.model) }
  }

  private(set) var items: [Conflict] = []
  private var places: [Conflict.ID: Place] = [:]
  /// The identities of the parts by subject, and then by change set.
  private var ids: [Subject: [UUID: [Conflict.ID]]] = [:]
  private var lastNumber = 0

  /// Returns the conflict or the consequence with this identity.
  subscript(id: Conflict.ID) -> Conflict? {
    guard let place = places[id] else { return nil }
    let item = items[position(of: place)]
    return item.id == id ? item : item.consequences.first { $0.id == id }
  }

  func contains(_ id: Conflict.ID) -> Bool { places[id] != nil }

  func contains(_ name: ConflictName) -> Bool { ids[Subject(name)]?[name.changeSet] != nil }

  /// Returns the identities of the parts with a name.
  func ids(named name: ConflictName) -> [Conflict.ID] {
    ids[Subject(name)]?[name.changeSet] ?? []
  }

  /// Returns the identities of the parts about a property or an addition that a change set writes. Cost: O(n) in the
  /// change set and in the result.
  func ids(writtenBy set: ChangeSet) -> Set<Conflict.ID> {
    var result: Set<Conflict.ID> = []
    func find(_ property: String?, of model: UUID) {
      guard let found = ids[Subject(property, of: model)] else { return }
      for more in found.values { result.formUnion(more) }
    }
    for fragment in set.fragments {
      if fragment.kind == .add { find(nil, of: fragment.uuid) }
      for (key, _) in fragment.properties { find(key, of: fragment.uuid) }
      for entry in fragment.operations { find(entry.key, of: fragment.uuid) }
    }
    return result
  }

  /// Returns the parts with these identities, oldest first.
  func parts(_ ids: Set<Conflict.ID>) -> [Conflict] {
    positions(of: ids).flatMap { at in items[at].parts.filter { ids.contains($0.id) } }
  }

  mutating func append(_ conflicts: [Conflict]) {
    items += conflicts
    for conflict in conflicts {
      lastNumber += 1
      for (part, entry) in conflict.parts.enumerated() {
        places[entry.id] = Place(number: lastNumber, part: part)
        index(entry)
      }
    }
  }

  /// Removes the oldest conflicts.
  ///
  /// - Returns: those that were removed.
  mutating func removeFirst(_ count: Int) -> [Conflict] {
    let gone = Array(items.prefix(count))
    items.removeFirst(count)
    for part in gone.lazy.flatMap(\.parts) { forget(part) }
    return gone
  }

  /// Removes parts.
  ///
  /// - Returns: the conflicts that were removed, and those of their consequences that are now conflicts of their own.
  mutating func remove(_ ids: Set<Conflict.ID>) -> (gone: [Conflict], new: [Conflict]) {
    var (gone, new): ([Conflict], [Conflict]) = ([], [])
    var freed: [(position: Int, rest: [Conflict])] = []
    for at in positions(of: ids) {
      let item = items[at]
      let rest = item.consequences.filter { !ids.contains($0.id) }
      for part in item.parts where ids.contains(part.id) { forget(part) }
      if ids.contains(item.id) {
        gone.append(item)
        new += rest
        freed.append((at, rest))
      } else {
        items[at].consequences = rest
      }
    }
    replace(freed)
    return (gone, new)
  }

  /// Replaces the UUID of the root in all conflicts.
  mutating func rename(_ renaming: RootRenaming) {
    items = items.map { $0.renaming(renaming) }
    ids = [:]
    for part in items.lazy.flatMap(\.parts) { index(part) }
  }

  /// Puts the rest of a conflict's consequences into its position, for each of these positions in ascending order.
  private mutating func replace(_ freed: [(position: Int, rest: [Conflict])]) {
    guard let first = freed.first else { return }
    if freed.count == 1 {
      items.replaceSubrange(first.position...first.position, with: first.rest)
      return
    }
    var tail: [Conflict] = []
    var next = first.position
    for (position, rest) in freed {
      tail += items[next..<position]
      tail += rest
      next = position + 1
    }
    items.replaceSubrange(first.position..<next, with: tail)
  }

  private mutating func index(_ part: Conflict) {
    ids[Subject(part), default: [:]][part.changeSet, default: []].append(part.id)
  }

  private mutating func forget(_ part: Conflict) {
    places[part.id] = nil
    let subject = Subject(part)
    ids[subject]?[part.changeSet]?.removeAll { $0 == part.id }
    if ids[subject]?[part.changeSet]?.isEmpty == true { ids[subject]?[part.changeSet] = nil }
    if ids[subject]?.isEmpty == true { ids[subject] = nil }
  }

  /// Returns the positions of the conflicts that are these parts or have them, in ascending order.
  private func positions(of ids: Set<Conflict.ID>) -> [Int] {
    Set(ids.lazy.compactMap { places[$0] }.map(position)).sorted()
  }

  /// Returns the position of the conflict that is the part at this place or has it: the last one that does not come behind
  /// it. Cost: O(log n).
  private func position(of place: Place) -> Int {
    var (low, high) = (0, items.count)
    while low < high {
      let middle = (low + high) / 2
      if let other = places[items[middle].id], place.isBefore(other) {
        high = middle
      } else {
        low = middle + 1
      }
    }
    return low - 1
  }
}
