/// The storage of a ``ModelDictionary``, without its types: models by the text of their keys, in the order of the keys.
///
/// The entries are stored in parts of at most 128, which are values that are copied when shared. A look-up costs
/// O(log n); a change costs O(sqrt n) for up to some ten thousand entries, even while a copy of the table exists, and
/// finding the difference of two tables of which one was made from the other costs no more than that for each change.
/// A table of more than 64 entries has a ``KeyIndex``.
struct ModelTable {
  /// Some entries that are next to each other.
  private final class Part {
    var keys: ContiguousArray<String>
    var models: ContiguousArray<ModelObject>
    /// The index of the table, in its first part: so a dictionary without one needs no room for it, and reading one
    /// that has it retains nothing more.
    var index: KeyIndex?

    init(_ keys: ContiguousArray<String>, _ models: ContiguousArray<ModelObject>) {
      (self.keys, self.models) = (keys, models)
    }

    init(copying other: Part) { (keys, models, index) = (other.keys, other.models, other.index) }

    /// Returns true if both parts share the memory of their keys.
    func hasKeys(of other: Part) -> Bool {
      keys.count == other.keys.count
        && keys.withUnsafeBufferPointer { keys in
          other.keys.withUnsafeBufferPointer { $0.baseAddress == keys.baseAddress }
        }
    }

    /// Returns the place of a key, or the place where it belongs.
    func find(_ key: String) -> (place: Int, isThere: Bool) {
      var (low, high) = (0, keys.count)
      while low < high {
        let middle = (low + high) / 2
        if keys[middle] < key { low = middle + 1 } else { high = middle }
      }
      return (low, low < keys.count && keys[low] == key)
    }
  }

  /// A difference between two tables.
  struct Change {
    let key: String
    /// The model that the entry had; nil if there was no entry.
    let old: ModelObject?
    /// The model that it has; nil if there is no entry.
    let new: ModelObject?
  }

  private static let partCapacity = 128
  /// The maximum number of entries that are searched for a model.
  private static let searchLimit = 64

  /// No part is empty.
  private var parts: ContiguousArray<Part> = []
  private(set) var count = 0

  /// The number of parts, for tests.
  var partCount: Int { parts.count }

  /// The number of entries that were looked at for the keys of models while there were many, for tests.
  var visits: Int { index?.visits ?? 0 }

  /// The keys by model; nil while there are so few entries that they are searched.
  private var index: KeyIndex? { parts.first?.index }

  /// The model with a key. Setting nil removes the entry.
  subscript(key: String) -> ModelObject? {
    get {
      guard let part = part(for: key) else { return nil }
      let (place, isThere) = parts[part].find(key)
      return isThere ? parts[part].models[place] : nil
    }
    set {
      if let newValue { put(newValue, key) } else { remove(key) }
    }
  }

  /// Calls `body` with each entry, in the order of the keys.
  func forEach(_ body: (String, ModelObject) -> Void) {
    for part in parts {
      for (place, key) in part.keys.enumerated() { body(key, part.models[place]) }
    }
  }

  /// Returns the keys of a model, in order. Cost: O(sqrt n), the first time and after many changes O(n).
  func keys(of model: ModelObject) -> [String] {
    if let index { return index.keys(of: model, in: self) }
    var result: [String] = []
    forEach { if $1 === model { result.append($0) } }
    return result
  }

  /// Returns the changes that lead from another table to this one, in the order of the keys. Parts that both share cost
  /// nothing but the comparison.
  func changes(since old: ModelTable) -> [Change] {
    var result: [Change] = []
    var (then, now) = (Cursor(old), Cursor(self))
    while true {
      if then.sharesPart(with: now) {
        then.skipPart()
        now.skipPart()
        continue
      }
      if then.passReplaced(with: &now, { result.append(Change(key: $0, old: $1, new: $2)) }) {
        continue
      }
      switch (then.entry, now.entry) {
      case (nil, nil): return result
      case (let gone?, nil):
        result.append(Change(key: gone.key, old: gone.model, new: nil))
        then.advance()
      case (nil, let new?):
        result.append(Change(key: new.key, old: nil, new: new.model))
        now.advance()
      case (let before?, let after?):
        if before.key == after.key {
          if before.model !== after.model {
            result.append(Change(key: after.key, old: before.model, new: after.model))
          }
          then.advance()
          now.advance()
        } else if before.key < after.key {
          result.append(Change(key: before.key, old: before.model, new: nil))
          then.advance()
        } else {
          result.append(Change(key: after.key, old: nil, new: after.model))
          now.advance()
        }
      }
    }
  }

  /// Returns true if both tables have the same entries.
  func isSame(as other: ModelTable) -> Bool {
    count == other.count && changes(since: other).isEmpty
  }

  // MARK: Changing

  /// Returns the index of the part that has a key, or where it belongs; nil if there are no parts.
  private func part(for key: String) -> Int? {
    var (low, high) = (0, parts.count - 1)
    while low < high {
      let middle = (low + high + 1) / 2
      if parts[middle].keys[0] <= key { low = middle } else { high = middle - 1 }
    }
    return high < 0 ? nil : low
  }

  private mutating func put(_ model: ModelObject, _ key: String) {
    guard let at = part(for: key) else {
      parts.append(Part([key], [model]))
      count = 1
      return
    }
    let (place, isThere) = parts[at].find(key)
    if isThere {
      if parts[at].models[place] !== model {
        own(at).models[place] = model
        didPut(model, key)
      }
      return
    }
    count += 1
    didPut(model, key)
    let part = own(at)
    part.keys.insert(key, at: place)
    part.models.insert(model, at: place)
    guard part.keys.count > Self.partCapacity else { return }
    // Keys that are added in order fill the parts.
    let middle = place == part.keys.count - 1 ? place : part.keys.count / 2
    parts.insert(
      Part(ContiguousArray(part.keys[middle...]), ContiguousArray(part.models[middle...])),
      at: at + 1)
    part.keys.removeSubrange(middle...)
    part.models.removeSubrange(middle...)
  }

  private mutating func remove(_ key: String) {
    guard let at = part(for: key) else { return }
    let (place, isThere) = parts[at].find(key)
    guard isThere else { return }
    count -= 1
    didRemove()
    if parts[at].keys.count == 1 {
      let index = parts.remove(at: at).index
      if let index { own(0).index = index }
      return
    }
    let part = own(at)
    part.keys.remove(at: place)
    part.models.remove(at: place)
    guard at + 1 < parts.count,
      part.keys.count + parts[at + 1].keys.count <= Self.partCapacity / 4
    else { return }
    part.keys += parts[at + 1].keys
    part.models += parts[at + 1].models
    parts.remove(at: at + 1)
  }

  /// Keeps the index right when an entry is put.
  private mutating func didPut(_ model: ModelObject, _ key: String) {
    if index != nil {
      ownIndex().add(key, of: model)
      dropWornIndex()
    } else if count > Self.searchLimit {
      own(0).index = KeyIndex()
    }
  }

  /// Keeps the index right when an entry is removed.
  private mutating func didRemove() {
    guard let isCollected = index?.isCollected else { return }
    if count <= Self.searchLimit {
      own(0).index = nil
    } else if isCollected {
      dropWornIndex()
    } else {
      ownIndex()
    }
  }

  /// Returns the index after making it this table's own.
  @discardableResult
  private mutating func ownIndex() -> KeyIndex {
    let first = own(0)
    if !isKnownUniquelyReferenced(&first.index) { first.index = KeyIndex(copying: first.index!) }
    return first.index!
  }

  private mutating func dropWornIndex() {
    guard let index, index.isWorn(at: count) else { return }
    own(0).index = KeyIndex(replacing: index)
  }

  /// Returns a part after making it this table's own.
  private mutating func own(_ at: Int) -> Part {
    if !isKnownUniquelyReferenced(&parts[at]) { parts[at] = Part(copying: parts[at]) }
    return parts[at]
  }

  /// A place in a table.
  struct Cursor {
    private let parts: ContiguousArray<Part>
    private var part = 0
    private var place = 0

    init(_ table: ModelTable) { parts = table.parts }

    /// The entry at the place; nil behind the last.
    var entry: (key: String, model: ModelObject)? {
      part < parts.count ? (parts[part].keys[place], parts[part].models[place]) : nil
    }

    mutating func advance() {
      place += 1
      if place == parts[part].keys.count { skipPart() }
    }

    fileprivate mutating func skipPart() { (part, place) = (part + 1, 0) }

    /// Passes the parts at whose beginning both are, if nothing but models was replaced in them: then they share the keys.
    /// Calls `body` with each entry that has another model. Returns false otherwise.
    fileprivate mutating func passReplaced(
      with other: inout Cursor, _ body: (String, ModelObject, ModelObject) -> Void
    ) -> Bool {
      guard place == 0, other.place == 0, part < parts.count, other.part < other.parts.count,
        parts[part].hasKeys(of: other.parts[other.part])
      else { return false }
      let (old, new) = (parts[part], other.parts[other.part])
      for place in old.keys.indices where old.models[place] !== new.models[place] {
        body(old.keys[place], old.models[place], new.models[place])
      }
      skipPart()
      other.skipPart()
      return true
    }

    /// Returns true if both are at the beginning of the same part.
    fileprivate func sharesPart(with other: Cursor) -> Bool {
      place == 0 && other.place == 0 && part < parts.count && other.part < other.parts.count
        && parts[part] === other.parts[other.part]
    }
  }
}

extension ModelTable: CustomStringConvertible {
  /// The entries in brackets.
  var description: String {
    var entries: [String] = []
    forEach { entries.append("\($0): \($1)") }
    return entries.isEmpty ? "[:]" : "[" + entries.joined(separator: ", ") + "]"
  }
}

extension ModelTable: Equatable {
  /// Returns true if both tables hold the same models with the same keys.
  static func == (a: ModelTable, b: ModelTable) -> Bool { a.isSame(as: b) }
}
