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

    mutating func submit(set: Int) -> JSONValue? {
      guard let at = entries.firstIndex(where: { $0.set == set }) else { return nil }
      let isLast = at == entries.count - 1
      let value = isLast ? visible() : entries[...at].reduce(base) { $1.applied(to: $0) }
      entries[at].submitted = value
      return value
    }

    mutating func decide(set: Int, isAccepted: Bool) {
      guard let at = entries.firstIndex(where: { $0.set == set }) else { return }
      let entry = entries.remove(at: at)
      if isAccepted { base = entry.submitted ?? entry.value }
      known = nil
    }
  }

  private struct Entry {
    let set: Int
    let value: JSONValue
    /// The value that was sent, which is what counts if the set is accepted.
    var submitted: JSONValue?
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

  var keys: some Collection<PropertyKey> { columns.keys }

  /// Whether a pending set touches the property.
  func covers(_ key: PropertyKey) -> Bool { columns[key] != nil }

  /// What is visible of a property that a pending set touches.
  mutating func visible(_ key: PropertyKey) -> JSONValue? { columns[key]?.visible() }

  /// What is visible of a property for which `value` was worked out before set number `first` was made;
  /// nil if no later set touches it. If no earlier one does, `value` is the confirmed one.
  mutating func visible(_ key: PropertyKey, over value: JSONValue, since first: Int) -> JSONValue? {
    guard let sets = columns[key]?.entries, let last = sets.last, last.set >= first else {
      return nil
    }
    if sets[0].set >= first { columns[key]!.confirm(value) }
    return columns[key]!.visible()
  }

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

  /// The value to send for set number `set`: an assignment as it is, a collection as it looks now with
  /// the set's change and those before it. So a collection that is sent contains whatever is known at
  /// this moment, however long the set has waited.
  mutating func submit(set: Int, key: PropertyKey) -> JSONValue? {
    columns[key]?.submit(set: set)
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
