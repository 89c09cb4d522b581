import Foundation

/// A requirement on one fragment of a change set: a plain value, which can be compared and kept.
///
/// ```swift
/// let checkOut = [
///   Constraint(.change, "Cart", ["state": .value("ordered"), "items": .removes]),
///   Constraint(.add, "Order", ["total": .newValue], allowsAdditionalProperties: true),
/// ]
/// ```
///
/// A change set meets a list of constraints if each of its fragments meets one of them. A constraint that no
/// fragment meets does no harm.
public struct Constraint: Sendable, Hashable {
  /// A requirement on one property. A fragment must contain every property that its constraint names.
  public enum Rule: Sendable, Hashable {
    /// The property is set to exactly this value. Null means null, not a missing value. Numbers are compared
    /// whatever their type: 1 equals 1.0.
    case value(JSONValue)
    /// The property is set to any value; of a dictionary, any entry.
    case newValue
    /// The collection or dictionary grows; that of an addition is not empty.
    case inserts
    /// The collection or dictionary shrinks. An addition never meets this rule.
    case removes
    /// The property is set to a value, or incremented to one, that meets rules of `PropertyOptions`, such as
    /// `.range(1...10)`. Only an addition meets `.immutable`; `.unique` is not judged.
    case meets(PropertyOptions)
  }

  /// The kind of the fragment: an addition or a change.
  package var kind: SyncFragment.Kind
  /// The name of the model's class on the wire.
  package var className: String
  /// The rules for properties, by their names on the wire.
  package var properties: [String: Rule]
  /// True if fragments may contain other properties, too. An addition contains every property of its model.
  package var allowsAdditionalProperties: Bool

  /// Makes a constraint.
  public init(
    _ kind: SyncFragment.Kind, _ className: String, _ properties: [String: Rule] = [:],
    allowsAdditionalProperties: Bool = false
  ) {
    self.kind = kind
    self.className = className
    self.properties = properties
    self.allowsAdditionalProperties = allowsAdditionalProperties
  }

  /// Returns true if a fragment meets the constraint.
  ///
  /// - Parameters:
  ///   - fragment: the fragment to check.
  ///   - bases: the values before the fragment, which show whether a collection that it names as a whole has grown. A
  ///     collection without a value here was empty.
  package func isMet(by fragment: SyncFragment, bases: JSONObject = [:]) -> Bool {
    guard fragment.kind == kind, fragment.className == className else { return false }
    let names = fragment.properties.map(\.key) + fragment.operations.map(\.key)
    if !allowsAdditionalProperties, names.contains(where: { !isNamed($0) }) { return false }
    return properties.allSatisfy { name, rule in
      let operations = fragment.operations[name]
      let entries = fragment.properties.filter { EntryName.isEntry($0.key, of: name) }
      switch (rule, fragment.properties[name]) {
      case (.value(let expected), let value?): return value.isWritten(as: expected)
      case (.value, nil): return false
      case (.newValue, let value):
        return value != nil || !operations.isEmpty || !entries.isEmpty
      case (.inserts, let value?):
        return Self.count(value) > (fragment.kind == .add ? 0 : Self.count(bases[name]))
      case (.removes, let value?):
        return fragment.kind == .change && Self.isCollection(value)
          && Self.count(value) < Self.count(bases[name])
      case (.meets(let options), let value):
        let number = bases[name].flatMap { base in
          operations.isEmpty
            ? nil : PropertyOperation.apply(operations, to: base, within: .unknown)
        }
        guard let value = value ?? number else { return false }
        return options.rules.problem(with: value, called: name) == nil
          && (fragment.kind == .add || !options.rules.isImmutable)
      case (.inserts, nil):
        return Self.growth(operations) > 0 || Self.growth(entries, bases) > 0
      case (.removes, nil):
        return Self.growth(operations) < 0 || Self.growth(entries, bases) < 0
      }
    }
  }

  /// Returns true if the constraint names a property, or the dictionary that it is an entry of.
  private func isNamed(_ name: String) -> Bool {
    properties[name] != nil || properties.keys.contains { EntryName.isEntry(name, of: $0) }
  }

  private static func isCollection(_ value: JSONValue) -> Bool {
    if case .array = value { true } else { false }
  }

  private static func count(_ value: JSONValue?) -> Int {
    if case .array(let elements)? = value { elements.count } else { 0 }
  }

  /// Returns how many entries more there are than before.
  private static func growth(_ entries: [JSONObject.Element], _ bases: JSONObject) -> Int {
    entries.reduce(0) { sum, entry in
      sum + (entry.value == .null ? 0 : 1) - (bases[entry.key] ?? .null == .null ? 0 : 1)
    }
  }

  private static func growth(_ operations: [PropertyOperation]) -> Int {
    operations.reduce(0) { sum, operation in
      switch operation {
      case .insert: sum + 1
      case .remove: sum - 1
      case .move, .add: sum
      }
    }
  }
}

extension ChangeSet {
  /// Returns the fragments that meet none of `constraints`; empty if the change set meets them. Each is judged by the values
  /// that those in front of it leave. Cost: O(n * m) for n fragments and m constraints.
  package func fragments(notMeeting constraints: [Constraint]) -> [SyncFragment] {
    var bases = self.bases
    return fragments.filter { fragment in
      let isMet = constraints.contains {
        $0.isMet(by: fragment, bases: bases[fragment.uuid] ?? [:])
      }
      bases[fragment.uuid, default: [:]].take(fragment)
      return !isMet
    }
  }
}

extension JSONObject {
  /// Takes over the values that a fragment leaves. Operations on collections are counted by themselves, not by a base.
  fileprivate mutating func take(_ fragment: SyncFragment) {
    for (key, value) in fragment.properties { self[key] = value }
    for entry in fragment.operations {
      guard let base = self[entry.key] else { continue }
      if case .array = base { continue }
      self[entry.key] = PropertyOperation.apply(entry.operations, to: base, within: .unknown)
    }
  }
}
