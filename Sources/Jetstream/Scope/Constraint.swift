import Foundation

/// What a fragment of a change set has to look like: a plain value, which can be compared and kept.
///
/// ```swift
/// let checkOut = [
///   Constraint(.change, "Cart", ["state": .value("ordered"), "items": .removes]),
///   Constraint(.add, "Order", ["total": .newValue], allowsAdditionalProperties: true),
/// ]
/// ```
///
/// A change set meets constraints if each of its fragments meets one of them. A constraint that no
/// fragment meets does no harm.
public struct Constraint: Sendable, Hashable {
  /// What is asked of one property. A property that is named in a constraint has to be in the fragment.
  public enum Rule: Sendable, Hashable {
    /// The property gets exactly this value; null stands for itself only, not for a missing value. A
    /// number is the same whatever its type: 1 is 1.0.
    case value(JSONValue)
    /// The property gets any value.
    case newValue
    /// A collection gets longer; that of an addition is not empty.
    case inserts
    /// A collection gets shorter, which that of an addition cannot.
    case removes
  }

  /// Whether models are added or changed.
  package var kind: SyncFragment.Kind
  /// What the models' class is called on the wire.
  package var className: String
  /// What is asked of properties, by their names on the wire.
  package var properties: [String: Rule]
  /// Whether fragments may have other properties, too. Additions name every property of a model.
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

  /// Whether a fragment meets the constraint.
  ///
  /// - Parameters:
  ///   - fragment: what is asked for.
  ///   - bases: the values before, which tell whether a collection that the fragment names as a whole has grown.
  ///     Without one, a collection was empty.
  package func isMet(by fragment: SyncFragment, bases: JSONObject = [:]) -> Bool {
    guard fragment.kind == kind, fragment.className == className else { return false }
    let names = fragment.properties.map(\.key) + fragment.operations.map(\.key)
    if !allowsAdditionalProperties, names.contains(where: { properties[$0] == nil }) {
      return false
    }
    return properties.allSatisfy { name, rule in
      let operations = fragment.operations[name]
      switch (rule, fragment.properties[name]) {
      case (.value(let expected), let value?): return Self.areSame(value, expected)
      case (.value, nil): return false
      case (.newValue, let value): return value != nil || !operations.isEmpty
      case (.inserts, let value?):
        return Self.count(value) > (fragment.kind == .add ? 0 : Self.count(bases[name]))
      case (.removes, let value?):
        return fragment.kind == .change && Self.isCollection(value)
          && Self.count(value) < Self.count(bases[name])
      case (.inserts, nil): return Self.growth(operations) > 0
      case (.removes, nil): return Self.growth(operations) < 0
      }
    }
  }

  /// Numbers are the same whatever their type.
  private static func areSame(_ a: JSONValue, _ b: JSONValue) -> Bool {
    a == b || a.canonicalText == b.canonicalText
  }

  private static func isCollection(_ value: JSONValue) -> Bool {
    if case .array = value { true } else { false }
  }

  private static func count(_ value: JSONValue?) -> Int {
    if case .array(let elements)? = value { elements.count } else { 0 }
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
  /// The fragments that meet none of `constraints`: empty if the set meets them. Cost: O(n * m).
  package func fragments(notMeeting constraints: [Constraint]) -> [SyncFragment] {
    let bases = self.bases
    return fragments.filter { fragment in
      !constraints.contains { $0.isMet(by: fragment, bases: bases[fragment.uuid] ?? [:]) }
    }
  }
}
