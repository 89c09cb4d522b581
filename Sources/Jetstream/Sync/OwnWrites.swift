import Foundation

/// The most recent accepted writes of a replica, which other clients may overwrite without having seen them.
///
/// Costs next to nothing as long as no other client changes the scope; after that, one step for each property that
/// either side writes.
package struct OwnWrites {
  /// An accepted change set.
  package struct Entry: Sendable, Hashable {
    package let set: ChangeSet
    /// The change set's number; 0 if it is not known, as in a snapshot of an earlier version.
    package let number: Int
    /// The change set's sequence; 0 if it is not known.
    package let sequence: Int
    /// The properties whose writes were accepted; nil for all.
    package let properties: Set<PropertyKey>?

    package init(
      _ set: ChangeSet, number: Int, at sequence: Int, properties: Set<PropertyKey>? = nil
    ) {
      (self.set, self.number) = (set, number)
      (self.sequence, self.properties) = (sequence, properties)
    }
  }

  /// The write of a property by a change set.
  struct Write {
    let set: ChangeSet
    let fragment: SyncFragment
    let number: Int
    let sequence: Int
  }

  /// The minimum number of change sets that are kept, unless they take more than this number of bytes on the wire.
  /// If a client that has not seen an older one overwrites it, that goes unnoticed.
  private let limit: (sets: Int, bytes: Int)

  /// The change sets whose sequence is known, in order.
  private var entries: [Entry] = []
  /// The approximate number of bytes that the entries take on the wire.
  private var bytes = 0
  /// The number of entries that are indexed in ``writes``.
  private var indexedCount = 0
  /// The last write of each property, unless another client has written the property since.
  private var writes: [PropertyKey: Write] = [:]
  /// Change sets that were accepted at an unknown sequence since remote changes were last applied: the most recent
  /// ones, in the order of their numbers, within the same limit.
  private var unplaced: [Entry] = []
  private var unplacedBytes = 0

  /// - Parameter limit: the minimum number of change sets that are kept.
  init(limit: Int = 256) { self.limit = (sets: limit, bytes: 4 << 20) }

  /// Adds an accepted change set.
  ///
  /// - Parameters:
  ///   - number: the change set's number.
  ///   - exceptions: the positions of fragments that were rejected or modified.
  ///   - sequence: the change set's sequence; nil if it is not known, or if its changes were applied earlier.
  mutating func accept(
    _ set: ChangeSet, number: Int, except exceptions: [Int], at sequence: Int?
  ) {
    guard set.fragments.contains(where: Self.assigns) else { return }
    let properties: Set<PropertyKey>? =
      exceptions.isEmpty
      ? nil
      : Set(
        set.fragments.indices.lazy.filter { !exceptions.contains($0) }.flatMap { at in
          set.fragments[at].properties.map {
            PropertyKey(uuid: set.fragments[at].uuid, name: $0.key)
          }
        })
    guard let sequence else {
      let at = unplaced.lastIndex { $0.number <= number }.map { $0 + 1 } ?? 0
      unplaced.insert(Entry(set, number: number, at: 0, properties: properties), at: at)
      unplacedBytes += Self.size(of: set)
      if unplaced.count > 2 * limit.sets || unplacedBytes > 2 * limit.bytes {
        unplaced.removeFirst(Self.excess(of: unplaced, &unplacedBytes, over: limit))
      }
      return
    }
    entries.append(Entry(set, number: number, at: sequence, properties: properties))
    bytes += Self.size(of: set)
    // Drops half of them at once, so that the cost for each is negligible.
    if entries.count > 2 * limit.sets || bytes > 2 * limit.bytes { trim() }
  }

  /// Returns the number of the oldest entries that are beyond the limit; never counts the last one.
  private static func excess(
    of entries: [Entry], _ bytes: inout Int, over limit: (sets: Int, bytes: Int)
  ) -> Int {
    var excess = 0
    while excess < entries.count - 1, entries.count - excess > limit.sets || bytes > limit.bytes {
      bytes -= size(of: entries[excess].set)
      excess += 1
    }
    return excess
  }

  /// Drops the oldest entries that are beyond the limit, but never the last one.
  private mutating func trim() {
    let excess = Self.excess(of: entries, &bytes, over: limit)
    entries.removeFirst(excess)
    indexedCount = max(0, indexedCount - excess)
    let first = entries[0]
    writes = writes.filter { $0.value.sequence >= first.sequence }
    // Later writes of the same properties may have been dropped.
    unplaced.removeAll { $0.number < first.number }
    unplacedBytes = unplaced.reduce(0) { $0 + Self.size(of: $1.set) }
  }

  /// Returns true if a fragment assigns values. Nothing else can be overwritten, so other change sets are not kept.
  private static func assigns(_ fragment: SyncFragment) -> Bool {
    fragment.kind == .change && !fragment.properties.isEmpty
  }

  private static func size(of set: ChangeSet) -> Int {
    set.fragments.roughSize
  }

  /// The number of change sets that are kept; for tests.
  package var count: Int { entries.count + unplaced.count }

  /// The entries that another process needs in order to continue.
  var remaining: [Entry] {
    var copy = self
    copy.indexAll()
    return unplaced
      + Dictionary(grouping: copy.writes) { $0.value.sequence }
      .map {
        let write = $1[0].value
        return Entry(write.set.assigning(Set($1.map(\.key))), number: write.number, at: $0)
      }
      .sorted { $0.sequence < $1.sequence }
  }

  /// Starts with the entries that another process has left; those with an unknown sequence have sequence 0.
  mutating func restore(_ entries: [Entry]) {
    self = OwnWrites(limit: limit.sets)
    self.entries = entries.filter { $0.sequence > 0 }
    bytes = self.entries.reduce(0) { $0 + Self.size(of: $1.set) }
    unplaced = entries.filter { $0.sequence == 0 }
    unplacedBytes = unplaced.reduce(0) { $0 + Self.size(of: $1.set) }
  }

  /// Replaces the root's UUID.
  mutating func rename(_ renaming: RootRenaming) {
    func renamed(_ entry: Entry) -> Entry {
      Entry(
        renaming(entry.set), number: entry.number, at: entry.sequence,
        properties: entry.properties.map { names in
          Set(names.map { PropertyKey(uuid: renaming($0.uuid), name: $0.name) })
        })
    }
    entries = entries.map(renamed)
    unplaced = unplaced.map(renamed)
    (writes, indexedCount) = ([:], 0)
  }

  /// Handles another client's writes. That client had seen everything up to the sequence `seen`; everything, if it
  /// is nil. Returns the writes that it overwrites unseen, with the values that it writes.
  mutating func overwrite(
    by fragments: [SyncFragment], seen: Int?
  ) -> [(name: PropertyKey, mine: Write, theirs: JSONValue)] {
    (unplaced, unplacedBytes) = ([], 0)
    if entries.isEmpty { return [] }
    indexAll()
    var lost: [(name: PropertyKey, mine: Write, theirs: JSONValue)] = []
    var places: [PropertyKey: Int] = [:]
    for fragment in fragments {
      for (key, value) in fragment.properties {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        if let write = writes.removeValue(forKey: name) {
          guard let seen, write.sequence > seen else { continue }
          places[name] = lost.count
          lost.append((name, write, value))
        } else if !places.isEmpty, let place = places[name] {
          lost[place].theirs = value
        }
      }
    }
    return lost
  }

  /// Drops all entries, because a full state replaces everything. Returns the writes that were accepted at an unknown
  /// sequence and are the replica's last ones of their properties.
  mutating func takeUnplaced() -> [(key: String, Write)] {
    defer { self = OwnWrites(limit: limit.sets) }
    if unplaced.isEmpty { return [] }
    indexAll()
    var last = writes
    for entry in unplaced { Self.index(entry, into: &last) }
    var result: [(key: String, Write)] = []
    for entry in unplaced {
      for fragment in entry.set.fragments {
        for (key, _) in fragment.properties {
          let name = PropertyKey(uuid: fragment.uuid, name: key)
          guard let write = last[name], write.set.id == entry.set.id else { continue }
          result.append((key, write))
          last[name] = nil
        }
      }
    }
    return result
  }

  private mutating func indexAll() {
    for entry in entries[indexedCount...] { Self.index(entry, into: &writes) }
    indexedCount = entries.count
  }

  /// Indexes assigned values only: operations on collections and counters are not overwritten, nor are values that a
  /// rule merges.
  ///
  /// The last write of a property is that of the change set with the highest number. The replica may learn of the
  /// decisions in another order: the server answers a change set that it has received before at once, while the
  /// decisions about earlier ones take effect when the replica reaches their sequences, or with a full state.
  private static func index(_ entry: Entry, into writes: inout [PropertyKey: Write]) {
    for fragment in entry.set.fragments where fragment.kind == .change {
      let write = Write(
        set: entry.set, fragment: fragment, number: entry.number, sequence: entry.sequence)
      for (key, _) in fragment.properties where fragment.bases[key] == nil {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        guard entry.properties?.contains(name) ?? true else { continue }
        if let last = writes[name], last.number > entry.number { continue }
        writes[name] = write
      }
    }
  }
}

extension ChangeSet {
  /// Returns the part of the change set that assigns these properties, with its inverse.
  fileprivate func assigning(_ names: Set<PropertyKey>) -> ChangeSet {
    func part(_ all: [SyncFragment]) -> [SyncFragment] {
      all.compactMap { fragment in
        guard fragment.kind == .change else { return nil }
        let kept = fragment.properties.filter {
          names.contains(PropertyKey(uuid: fragment.uuid, name: $0.key))
        }
        if kept.isEmpty { return nil }
        return SyncFragment(
          .change, uuid: fragment.uuid, className: fragment.className,
          properties: JSONObject(kept.map { ($0.key, $0.value) }))
      }
    }
    return ChangeSet(
      id: id, fragments: part(fragments), undo: part(undo), author: author, message: message)
  }
}

extension OwnWrites.Entry {
  /// - Throws: ``FragmentError`` naming the first field that is missing or wrong.
  init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    guard let sequence = object["sequence"]?.wholeNumber else { throw .missing(field: "sequence") }
    guard let set = object["set"] else { throw .missing(field: "set") }
    var properties: Set<PropertyKey>?
    if let json = object["properties"] {
      guard case .array(let elements) = json else {
        throw .invalid(field: "properties", problem: "should be an array")
      }
      properties = []
      for element in elements {
        guard case .object(let name) = element else {
          throw .invalid(field: "properties", problem: "should be an array of objects")
        }
        guard let key = try name.optionalString("name") else { throw .missing(field: "name") }
        properties?.insert(PropertyKey(uuid: try name.uuid("model"), name: key))
      }
    }
    self.init(
      try ChangeSet(json: set), number: object["number"]?.wholeNumber ?? 0, at: sequence,
      properties: properties)
  }

  var json: JSONValue {
    var object: JSONObject = ["sequence": .integer(Int64(sequence)), "set": set.json]
    if number > 0 { object["number"] = .integer(Int64(number)) }
    if let properties {
      object["properties"] = .array(
        properties.map { (model: $0.uuid.wireText, name: $0.name) }.sorted { $0 < $1 }
          .map { ["model": .string($0.model), "name": .string($0.name)] })
    }
    return .object(object)
  }
}
