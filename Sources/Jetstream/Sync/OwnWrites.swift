import Foundation

/// What counts of the sets that a replica has made, the last ones: others may overwrite it without having
/// seen it.
///
/// Costs next to nothing as long as nobody else changes the scope; after that, a step for each property that
/// one or the other writes.
package struct OwnWrites {
  /// A set that counts.
  package struct Entry: Sendable, Hashable {
    package let set: ChangeSet
    /// Its place in the order; 0 if that is not known.
    package let sequence: Int
    /// What counts of it; nil for all.
    package let properties: Set<PropertyKey>?

    package init(_ set: ChangeSet, at sequence: Int, properties: Set<PropertyKey>? = nil) {
      (self.set, self.sequence, self.properties) = (set, sequence, properties)
    }
  }

  /// A set that writes a property.
  struct Write {
    let set: ChangeSet
    let fragment: SyncFragment
    let sequence: Int
  }

  /// How many sets are kept at least, unless they take more bytes than this on the wire. What is overwritten
  /// later, without its maker having seen so much, is not noticed.
  private let limit: (sets: Int, bytes: Int)

  /// The sets in their order.
  private var entries: [Entry] = []
  /// About how many bytes they take on the wire.
  private var bytes = 0
  /// How many of them are in ``writes``, as far as they count.
  private var indexedCount = 0
  /// The last write of each property, as far as nobody else has written it since.
  private var writes: [PropertyKey: Write] = [:]
  /// Sets that are known to count, but not where, since something of others was taken in last: the last ones,
  /// within the same limit.
  private var unplaced: [Entry] = []
  private var unplacedBytes = 0

  /// - Parameter limit: how many sets are kept at least.
  init(limit: Int = 256) { self.limit = (sets: limit, bytes: 4 << 20) }

  /// A set counts.
  ///
  /// - Parameters:
  ///   - exceptions: the fragments that do not, or not as they are.
  ///   - sequence: its place, if what it has done is done there and nowhere before.
  mutating func accept(_ set: ChangeSet, except exceptions: [Int], at sequence: Int?) {
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
      unplaced.append(Entry(set, at: 0, properties: properties))
      unplacedBytes += Self.size(of: set)
      if unplaced.count > 2 * limit.sets || unplacedBytes > 2 * limit.bytes {
        unplaced.removeFirst(Self.excess(of: unplaced, &unplacedBytes, over: limit))
      }
      return
    }
    entries.append(Entry(set, at: sequence, properties: properties))
    bytes += Self.size(of: set)
    // By halves, so that it costs nothing worth mentioning for each.
    if entries.count > 2 * limit.sets || bytes > 2 * limit.bytes { trim() }
  }

  /// How many entries, the oldest ones, are beyond the limit; never the last one.
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

  /// Forgets the oldest, but not the last one.
  private mutating func trim() {
    let excess = Self.excess(of: entries, &bytes, over: limit)
    entries.removeFirst(excess)
    indexedCount = max(0, indexedCount - excess)
    let first = entries[0].sequence
    writes = writes.filter { $0.value.sequence >= first }
  }

  /// Whether a fragment writes values. Nothing else can be overwritten, so other sets are not kept.
  private static func assigns(_ fragment: SyncFragment) -> Bool {
    fragment.kind == .change && !fragment.properties.isEmpty
  }

  private static func size(of set: ChangeSet) -> Int {
    set.fragments.reduce(0) { $0 + $1.roughSize }
  }

  /// How many sets are kept; for tests.
  package var count: Int { entries.count + unplaced.count }

  /// What another process has to know.
  var remaining: [Entry] {
    var copy = self
    copy.indexAll()
    return unplaced
      + Dictionary(grouping: copy.writes) { $0.value.sequence }
      .map { Entry($1[0].value.set.assigning(Set($1.map(\.key))), at: $0) }
      .sorted { $0.sequence < $1.sequence }
  }

  /// Begins with what another process has left; those without a place have sequence 0.
  mutating func restore(_ entries: [Entry]) {
    self = OwnWrites(limit: limit.sets)
    self.entries = entries.filter { $0.sequence > 0 }
    bytes = self.entries.reduce(0) { $0 + Self.size(of: $1.set) }
    unplaced = entries.filter { $0.sequence == 0 }
    unplacedBytes = unplaced.reduce(0) { $0 + Self.size(of: $1.set) }
  }

  /// The root has got another UUID.
  mutating func rename(_ renaming: RootRenaming) {
    func renamed(_ entry: Entry) -> Entry {
      Entry(
        renaming(entry.set), at: entry.sequence,
        properties: entry.properties.map { names in
          Set(names.map { PropertyKey(uuid: renaming($0.uuid), name: $0.name) })
        })
    }
    entries = entries.map(renamed)
    unplaced = unplaced.map(renamed)
    (writes, indexedCount) = ([:], 0)
  }

  /// Somebody else has written properties, having seen everything up to a place of the order; all of it if
  /// that is nil. Gives what they had not seen of it, with what they have written.
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

  /// Everything is as the server says from here on. Gives our own last writes of properties that were known
  /// to count, but not where.
  mutating func takeUnplaced() -> [(key: String, Write)] {
    defer { self = OwnWrites(limit: limit.sets) }
    var last: [PropertyKey: Write] = [:]
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

  /// Values only: what is done to a collection or a counter is not overwritten, nor is what a rule merges.
  private static func index(_ entry: Entry, into writes: inout [PropertyKey: Write]) {
    for fragment in entry.set.fragments where fragment.kind == .change {
      let write = Write(set: entry.set, fragment: fragment, sequence: entry.sequence)
      for (key, _) in fragment.properties where fragment.bases[key] == nil {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        if entry.properties?.contains(name) ?? true { writes[name] = write }
      }
    }
  }
}

extension ChangeSet {
  /// A part of the set: what it assigns to these properties, and what that led away from.
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
    self.init(try ChangeSet(json: set), at: sequence, properties: properties)
  }

  var json: JSONValue {
    var object: JSONObject = ["sequence": .integer(Int64(sequence)), "set": set.json]
    if let properties {
      object["properties"] = .array(
        properties.map { (model: $0.uuid.wireText, name: $0.name) }.sorted { $0 < $1 }
          .map { ["model": .string($0.model), "name": .string($0.name)] })
    }
    return .object(object)
  }
}
