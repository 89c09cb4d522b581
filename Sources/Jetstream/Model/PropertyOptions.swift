/// How a property takes part in sync, given where it is declared.
///
/// ```swift
/// @Property(.local) var isSelected = false
/// @Property(.wireName("colour")) var color = RGBAColor.red
/// @Property([.wireName("pos"), .minSyncInterval(.milliseconds(50))]) var position = 0.0
/// ```
///
/// For a property that is inherited, see ``ModelObject/propertyOptions``. Options are read once for
/// each class, when its schema is made: they must not depend on anything that changes.
public struct PropertyOptions: Sendable, Hashable {
  /// Whether the property stays out of sync; see ``local``.
  package private(set) var isLocal = false
  /// What the property is called on the wire, if not by its name in the source.
  package private(set) var wireName: String?
  /// The least time between two change sets that carry the property.
  package private(set) var minSyncInterval: Duration?

  /// Whether changes of the property are sent as what was added; see ``counter``.
  package private(set) var isCounter = false
  /// What becomes of values that several have set at the same time; see ``merge(_:)``.
  package private(set) var mergeRule: MergeRule?

  /// No options.
  package init() {}

  /// The property is observed, but never leaves the process: it is not in fragments, and incoming
  /// fragments that name it change nothing.
  public static var local: PropertyOptions {
    var options = PropertyOptions()
    options.isLocal = true
    return options
  }

  /// The property is called `name` in fragments and in messages to peers. In the source, and towards
  /// observers, it keeps its own name.
  public static func wireName(_ name: String) -> PropertyOptions {
    precondition(!name.isEmpty, "The wire name of a property must not be empty.")
    var options = PropertyOptions()
    options.wireName = name
    return options
  }

  /// After a change set that carried the property, the next one that does comes no earlier than
  /// `interval` later. The last value is always delivered. Observers are not held up.
  ///
  /// For values that change often and of which only the latest counts. A property that holds models
  /// cannot have it, since other changes depend on that.
  public static func minSyncInterval(_ interval: Duration) -> PropertyOptions {
    precondition(interval > .zero, "The minSyncInterval of a property must be more than zero.")
    var options = PropertyOptions()
    options.minSyncInterval = interval
    return options
  }

  /// The property counts: a change is sent as the difference, so that what several people add at the
  /// same time adds up instead of the last value being the one that counts.
  ///
  /// For whole numbers. The sum stays within what the property's type can hold, on every replica and after
  /// each step: what goes beyond is lost. Undoing a step adds the opposite of what was added.
  public static var counter: PropertyOptions {
    var options = PropertyOptions()
    options.isCounter = true
    return options
  }

  /// What several replicas have set the property to at the same time becomes what `rule` makes of it,
  /// instead of what the server has ordered last.
  ///
  /// For properties that hold values. A change of the property carries the value before.
  public static func merge(_ rule: MergeRule) -> PropertyOptions {
    var options = PropertyOptions()
    options.mergeRule = rule
    return options
  }

  /// These options with what `other` says in front of them.
  package func merging(_ other: PropertyOptions) -> PropertyOptions {
    var result = self
    if other.isLocal { result.isLocal = true }
    if other.isCounter { result.isCounter = true }
    result.wireName = other.wireName ?? wireName
    result.mergeRule = other.mergeRule ?? mergeRule
    result.minSyncInterval = other.minSyncInterval ?? minSyncInterval
    return result
  }
}

extension PropertyOptions: ExpressibleByArrayLiteral {
  /// All of the options; of two that contradict each other the later counts.
  public init(arrayLiteral elements: PropertyOptions...) {
    self = elements.reduce(PropertyOptions()) { $0.merging($1) }
  }
}

extension PropertyOptions: CustomStringConvertible {
  /// The options in words.
  public var description: String {
    var parts: [String] = []
    if isLocal { parts.append("local") }
    if isCounter { parts.append("counter") }
    if let mergeRule { parts.append("merged by \(mergeRule.name)") }
    if let wireName { parts.append("on the wire: \(wireName)") }
    if let minSyncInterval { parts.append("at most every \(minSyncInterval)") }
    return parts.joined(separator: ", ")
  }
}
