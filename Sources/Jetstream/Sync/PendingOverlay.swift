import Foundation

/// One property of one model.
package struct PropertyKey: Hashable, Sendable {
  package let uuid: UUID
  package let name: String

  package init(uuid: UUID, name: String) {
    self.uuid = uuid
    self.name = name
  }
}

/// What the pending change sets do to the properties they touch, over the confirmed values.
///
/// A value: the confirmed base of each touched property, and the pending values in the order of their
/// sets. What is visible is the base with the pending values applied: a pending assignment hides the
/// base, a pending change of a collection is done again on it. Nothing is kept for a property that no
/// pending set touches.
struct PendingOverlay {
  private struct Column {
    private(set) var base: JSONValue
    private(set) var entries: [Entry] = []
    /// What is visible, once it was asked for: merging takes a step for each pending change.
    private var known: JSONValue?

    init(base: JSONValue) { self.base = base }

    mutating func visible() -> JSONValue {
      if let known { return known }
      let result = entries.reduce(base) { $1.applied(to: $0) }
      known = result
      return result
    }

    mutating func append(_ entry: Entry) {
      let isOnTop = entry.before == nil || entry.before == visible()
      entries.append(entry)
      known = isOnTop ? entry.value : nil
    }

    mutating func confirm(_ value: JSONValue) {
      guard base != value else { return }
      base = value
      known = nil
    }

    mutating func decide(set: Int, isAccepted: Bool) {
      guard let at = entries.firstIndex(where: { $0.set == set }) else { return }
      let entry = entries.remove(at: at)
      // The oldest change on the value that it was made on: what follows stays as it is.
      let isExpected = isAccepted && at == 0 && (entry.before == nil || entry.before == base)
      if isAccepted { base = entry.value }
      if !isExpected { known = nil }
    }

    /// Takes the changes of collections as if they had been made to the confirmed values.
    mutating func rebase() {
      var current = base
      for (at, entry) in entries.enumerated() {
        let after = entry.applied(to: current)
        if entry.before != nil {
          entries[at] = Entry(set: entry.set, value: after, before: current)
        }
        current = after
      }
    }
  }

  private struct Entry {
    let set: Int
    let value: JSONValue
    /// The collection before the change; nil for an assignment.
    let before: JSONValue?

    func applied(to base: JSONValue) -> JSONValue {
      guard case .array(let before)? = before, case .array(let after) = value,
        case .array(let base) = base
      else { return value }
      return .array(CollectionMerge.merge(base: base, before: before, after: after))
    }
  }

  private var columns: [PropertyKey: Column] = [:]

  var isEmpty: Bool { columns.isEmpty }

  var keys: some Collection<PropertyKey> { columns.keys }

  /// Whether a pending set touches the property.
  func covers(_ key: PropertyKey) -> Bool { columns[key] != nil }

  /// What is visible of a property that a pending set touches.
  mutating func visible(_ key: PropertyKey) -> JSONValue? { columns[key]?.visible() }

  /// The collection that set number `set` leaves; nil if it does not touch it or the property is
  /// none.
  func collection(_ key: PropertyKey, afterSet set: Int) -> JSONValue? {
    guard let entry = columns[key]?.entries.first(where: { $0.set == set }), entry.before != nil
    else { return nil }
    return entry.value
  }

  /// Takes the changes of collections as if they had been made to the confirmed values: what is
  /// visible stays as it is.
  mutating func rebaseCollections() {
    for key in Array(columns.keys) { columns[key]?.rebase() }
  }

  /// The confirmed value of a property that a pending set touches.
  func base(_ key: PropertyKey) -> JSONValue? { columns[key]?.base }

  /// Set number `set` changes the property from `before` to `value`.
  mutating func add(
    set: Int, key: PropertyKey, value: JSONValue, before: JSONValue, isCollection: Bool
  ) {
    let entry = Entry(set: set, value: value, before: isCollection ? before : nil)
    columns[key, default: Column(base: before)].append(entry)
  }

  /// The confirmed value is another one now. Does nothing for a property that is not covered.
  mutating func confirm(_ key: PropertyKey, value: JSONValue) { columns[key]?.confirm(value) }

  /// Set number `set` is decided: its value is confirmed at this place of the order, or dropped.
  mutating func decide(set: Int, key: PropertyKey, isAccepted: Bool) {
    columns[key]?.decide(set: set, isAccepted: isAccepted)
  }

  /// Forgets a property that no pending set touches any more; gives its confirmed value.
  mutating func dropIfSettled(_ key: PropertyKey) -> JSONValue? {
    guard let column = columns[key], column.entries.isEmpty else { return nil }
    columns[key] = nil
    return column.base
  }

  /// A model is called `new` from now on.
  mutating func rename(_ old: UUID, to new: UUID) {
    for (key, column) in columns where key.uuid == old {
      columns[key] = nil
      columns[PropertyKey(uuid: new, name: key.name)] = column
    }
  }

  /// The UUIDs in all confirmed and pending values. Cost: O(their size).
  var references: Set<UUID> {
    var result: Set<UUID> = []
    func collect(_ value: JSONValue) {
      switch value {
      case .string(let text): if let uuid = UUID(wireText: text) { result.insert(uuid) }
      case .array(let elements): for element in elements { collect(element) }
      default: break
      }
    }
    for column in columns.values {
      collect(column.base)
      for entry in column.entries {
        collect(entry.value)
        if let before = entry.before { collect(before) }
      }
    }
    return result
  }
}
