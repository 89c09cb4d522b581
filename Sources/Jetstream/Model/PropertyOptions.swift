/// Options that define how a property takes part in sync, given in its declaration.
///
/// ```swift
/// @Property(.local) var isSelected = false
/// @Property(.wireName("colour")) var color = RGBAColor(rgba: 0xFF00_00FF)
/// @Property([.wireName("pos"), .minSyncInterval(.milliseconds(50))]) var position = 0.0
/// ```
///
/// For inherited properties, see ``ModelObject/propertyOptions``. Options are read once for each
/// class, when its schema is made, so they must not depend on anything that changes.
public struct PropertyOptions: Sendable, Hashable {
  /// True if the property is not synced; see ``local``.
  package private(set) var isLocal = false
  /// The name of the property on the wire; nil if it is the name in the source.
  package private(set) var wireName: String?
  /// The minimum time between two change sets that carry the property; nil for none.
  package private(set) var minSyncInterval: Duration?

  /// True if changes of the property are sent as increments; see ``counter``.
  package private(set) var isCounter = false
  /// The rule that merges concurrent changes of the property; see ``merge(_:)``. Nil for none.
  package private(set) var mergeRule: MergeRule?
  /// The rules for the property's values.
  package internal(set) var rules = FieldRules()

  /// Makes empty options.
  package init() {}

  /// Keeps the property out of sync: it is observed, but it is not in fragments, and incoming
  /// fragments that name it do not change it.
  public static var local: PropertyOptions {
    var options = PropertyOptions()
    options.isLocal = true
    return options
  }

  /// Sets the name of the property in fragments and in messages to peers. In the source, and for
  /// observers, the property keeps its own name.
  public static func wireName(_ name: String) -> PropertyOptions {
    precondition(!name.isEmpty, "The wire name of a property must not be empty.")
    var options = PropertyOptions()
    options.wireName = name
    return options
  }

  /// Sends the property at most once per `interval`: of two change sets that carry it, the second
  /// is made no earlier than `interval` after the first, except by ``Scope/modify(_:author:_:)``,
  /// ``Scope/flush()`` and what calls them, such as syncing, waiting for an upload, leaving and undoing.
  /// The last value is always delivered. Observers are not delayed.
  ///
  /// Use it for values that change often and of which only the latest matters. Not possible for a
  /// property that holds models, since other changes depend on it.
  public static func minSyncInterval(_ interval: Duration) -> PropertyOptions {
    precondition(interval > .zero, "The minSyncInterval of a property must be more than zero.")
    var options = PropertyOptions()
    options.minSyncInterval = interval
    return options
  }

  /// Makes the property a counter: a change is sent as an increment, so that concurrent increments
  /// add up instead of the last value winning.
  ///
  /// The property must be an integer. The sum is clamped to the range of its type, on every replica
  /// and after each step. Undoing a step adds the opposite increment.
  public static var counter: PropertyOptions {
    var options = PropertyOptions()
    options.isCounter = true
    return options
  }

  /// Merges concurrent changes of the property by several replicas with `rule`. Without it, the
  /// write that the server orders last wins.
  ///
  /// Not possible for a property that holds models. A change of the property carries the value
  /// before it.
  public static func merge(_ rule: MergeRule) -> PropertyOptions {
    var options = PropertyOptions()
    options.mergeRule = rule
    return options
  }

  /// Returns these options combined with `other`, which takes precedence.
  package func merging(_ other: PropertyOptions) -> PropertyOptions {
    var result = self
    if other.isLocal { result.isLocal = true }
    if other.isCounter { result.isCounter = true }
    result.wireName = other.wireName ?? wireName
    result.mergeRule = other.mergeRule ?? mergeRule
    result.minSyncInterval = other.minSyncInterval ?? minSyncInterval
    result.rules = rules.merging(other.rules)
    return result
  }
}

extension PropertyOptions: ExpressibleByArrayLiteral {
  /// Combines the options; later ones take precedence.
  public init(arrayLiteral elements: PropertyOptions...) {
    self = elements.reduce(PropertyOptions()) { $0.merging($1) }
  }
}

extension PropertyOptions {
  /// The options in words.
  package var words: String {
    var parts: [String] = []
    if isLocal { parts.append("local") }
    if isCounter { parts.append("counter") }
    if let mergeRule { parts.append("merged by \(mergeRule.name)") }
    if let wireName { parts.append("on the wire: \(wireName)") }
    if let minSyncInterval { parts.append("at most every \(minSyncInterval)") }
    if !rules.isEmpty { parts.append(rules.words) }
    return parts.joined(separator: ", ")
  }
}
