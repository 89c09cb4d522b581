/// The rules for the values of a property that its declaration gives: what a value has to be, and when it may be set.
///
/// They are no part of a class's fingerprint: a peer without them uses the same names and types, and its writes are
/// judged by the server like those of any other.
package struct FieldRules: Sendable, Hashable {
  /// The numbers that a value can be; nil for any.
  package var range: FieldRange?
  /// The lengths that a value can have, of a text in Unicode scalars and of a list in elements; nil for any.
  package var length: ClosedRange<Int>?
  /// The pattern that a text has to match; nil for none.
  package var pattern: FieldPattern?
  /// True if a value can only be set in the change set that adds the model.
  package var isImmutable = false
  /// True if no two models of a collection have the same value.
  package var isUnique = false

  /// Makes no rules.
  package init() {}

  /// True if there are no rules.
  package var isEmpty: Bool { self == FieldRules() }

  /// Returns these rules with those of `other`, which replace rules of the same kind.
  package func merging(_ other: FieldRules) -> FieldRules {
    var result = self
    result.range = other.range ?? range
    result.length = other.length ?? length
    result.pattern = other.pattern ?? pattern
    if other.isImmutable { result.isImmutable = true }
    if other.isUnique { result.isUnique = true }
    return result
  }

  // MARK: Sentences for users

  /// Describes why a property cannot have a value: out of its range, of another length, or without its pattern. Returns
  /// nil if it can, and for null, which is no value.
  ///
  /// - Parameter name: the name by which the sentence calls the property.
  package func problem(with json: JSONValue, called name: String) -> String? {
    if json == .null { return nil }
    if let range, !range.contains(json) {
      return "\(name) has to be \(range.words), not \(Self.excerpt(json))"
    }
    if let length, let count = Self.length(of: json), !length.contains(count) {
      let unit = if case .string = json { "character" } else { "element" }
      return "\(name) has to have \(Self.words(length, unit)), not \(count)"
    }
    if let pattern {
      guard case .string(let text) = json, pattern.matches(text) else {
        return "\(name) has to match \(pattern.text), which \(Self.excerpt(json)) does not"
      }
    }
    return nil
  }

  /// Describes that a property cannot be set any more.
  package static func immutableProblem(called name: String, of className: String) -> String {
    "\(name) can only be set when the \(className) is added"
  }

  /// Describes that another model of a collection has the same value.
  package static func uniqueProblem(
    with json: JSONValue, called name: String, in collection: String
  ) -> String {
    "\(name) has to be unique in \(collection), where another model has \(excerpt(json))"
  }

  /// The rules in words.
  package var words: String {
    var parts: [String] = []
    if let range { parts.append(range.words) }
    if let length { parts.append("of \(Self.words(length, "part"))") }
    if let pattern { parts.append("matching \(pattern.text)") }
    if isImmutable { parts.append("immutable") }
    if isUnique { parts.append("unique") }
    return parts.joined(separator: ", ")
  }

  /// Returns the length of a text or a list; nil for anything else.
  private static func length(of json: JSONValue) -> Int? {
    switch json {
    case .string(let text): text.unicodeScalars.count
    case .array(let elements): elements.count
    case .object(let members): members.count
    case .null, .bool, .integer, .unsigned, .double, .float: nil
    }
  }

  private static func words(_ length: ClosedRange<Int>, _ unit: String) -> String {
    func units(_ count: Int) -> String { count == 1 ? "1 \(unit)" : "\(count) \(unit)s" }
    let (least, most) = (length.lowerBound, length.upperBound)
    if least == most { return units(least) }
    if most == .max { return "at least \(units(least))" }
    if least == 0 { return "at most \(units(most))" }
    return "\(least) to \(units(most))"
  }

  /// The beginning of a value's text.
  private static func excerpt(_ json: JSONValue) -> String {
    if case .string(let value) = json, value.utf8.count > 100 {
      return JSONValue.string(beginning(of: value)).text
    }
    let text = json.text
    return text.utf8.count > 400 ? beginning(of: text) : text
  }

  /// Not counted in characters, of which one can have any length.
  private static func beginning(of text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.prefix(40))) + "..."
  }
}

extension FieldRules {
  /// Returns the reason why a property cannot have the rules, as a predicate; nil if it can.
  package func misuse(of type: _PropertyType, isCounter: Bool) -> String? {
    var type = type
    if case .optional(let wrapped) = type { type = wrapped }
    let (isNumber, isText, isList) = (type.isNumber, type == .string, type.isList)
    if range != nil, !isNumber { return "has a range, and is no number." }
    if length != nil, !isText, !isList { return "has a length, and is neither a text nor a list." }
    if pattern != nil, !isText { return "has a pattern, and is no text." }
    if isImmutable, type.holdsModels { return "is immutable, and holds models." }
    if isUnique, type.holdsModels { return "is unique, and holds models." }
    if isUnique, isCounter { return "is unique, and is a counter." }
    return nil
  }
}

extension _PropertyType {
  fileprivate var isNumber: Bool {
    switch self {
    case .integer, .number, .decimal: true
    default: false
    }
  }

  fileprivate var isList: Bool {
    switch self {
    case .array, .set: true
    case .dictionary: !holdsModels
    default: false
    }
  }

  fileprivate var holdsModels: Bool {
    switch self {
    case .reference, .collection, .dictionary(.reference): true
    default: false
    }
  }
}
