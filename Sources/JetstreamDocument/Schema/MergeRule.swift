/// A rule that merges concurrent changes of one property by several replicas.
///
/// Without a rule, the write that the server orders last wins. With a rule, the server calls it for
/// each change that was made without knowledge of the current value; so does the client, to show
/// the expected result. If no other replica has changed the property, the change is taken
/// unmodified.
///
/// ```swift
/// @Property(.merge(.max)) var highScore = 0
/// @Property(.merge(.union)) var tags: [String] = []
/// // The value that both agree on, otherwise the old value.
/// @Property(.merge(.rule("agreed") { $0.mine == $0.theirs ? $0.mine : $0.base })) var price = 0.0
/// ```
///
/// Client and server should have the same rule; if they differ, the server's rule wins. To sum up
/// increments of several replicas, use `PropertyOptions.counter`. Collections of models need no
/// rule. Peers of version 1 of the protocol do not report which value they knew, so their writes
/// win.
public struct MergeRule: Sendable, Hashable {
  /// The input of a rule: three values of a property, as JSON.
  public struct Conflict: Sendable, Hashable {
    /// The value of the property when the change was made.
    public let base: JSONValue
    /// The current value, set by other replicas.
    public let theirs: JSONValue
    /// The value that the change sets.
    public let mine: JSONValue

    /// Makes a conflict.
    package init(base: JSONValue, theirs: JSONValue, mine: JSONValue) {
      (self.base, self.theirs, self.mine) = (base, theirs, mine)
    }
  }

  /// The name of the rule, used to print and compare schemas.
  package let name: String
  private let function: Function

  /// The function of a rule. All are equal, because rules are compared by their names.
  private struct Function: Sendable, Hashable {
    let resolve: @Sendable (Conflict, _PropertyType) -> JSONValue

    static func == (a: Function, b: Function) -> Bool { true }
    func hash(into hasher: inout Hasher) {}
  }

  private init(name: String, resolve: @escaping @Sendable (Conflict, _PropertyType) -> JSONValue) {
    self.name = name
    function = Function(resolve: resolve)
  }

  /// Makes an app-defined rule.
  ///
  /// - Parameters:
  ///   - name: The name of the rule. Rules with the same name are considered equal.
  ///   - resolve: Returns the merged value. It must depend on the three values only, and may be
  ///     called on any actor. The change is rejected if the property cannot hold the result.
  public static func rule(
    _ name: String, _ resolve: @escaping @Sendable (Conflict) -> JSONValue
  ) -> MergeRule {
    precondition(!name.isEmpty, "The name of a merge rule must not be empty.")
    return MergeRule(name: name) { conflict, _ in resolve(conflict) }
  }

  /// The larger value wins. Works for numbers, decimals among them, dates, strings in Swift's order, and Booleans, where
  /// false is smaller than true. Null is smaller than any value.
  public static let max = MergeRule(name: "max") { conflict, type in
    type.isLess(conflict.theirs, conflict.mine) == false ? conflict.theirs : conflict.mine
  }

  /// The smaller value wins; see ``max``. Null wins only if both values are null.
  public static let min = MergeRule(name: "min") { conflict, type in
    if conflict.theirs == .null { return conflict.mine }
    if conflict.mine == .null { return conflict.theirs }
    return type.isLess(conflict.mine, conflict.theirs) == false ? conflict.theirs : conflict.mine
  }

  /// Merges sets, arrays and dictionaries: elements that either side added are in the result, and
  /// elements that either side removed are not, unless the other side changed them. New array
  /// elements are appended, each once.
  public static let union = MergeRule(name: "union") { conflict, _ in conflict.united }

  /// Returns the rule that Jetstream brings along under a name; nil if there is none.
  package static func builtIn(_ name: String) -> MergeRule? {
    [max, min, union].first { $0.name == name }
  }

  /// Returns the merged value of a property of a type.
  package func value(_ conflict: Conflict, of type: _PropertyType) -> JSONValue {
    function.resolve(conflict, type)
  }
}

extension MergeRule.Conflict {
  fileprivate var united: JSONValue {
    switch (theirs, mine) {
    case (.array(let theirs), .array(let mine)):
      let known: [JSONValue] = if case .array(let elements) = base { elements } else { [] }
      let (before, now) = (Set(known), Set(mine))
      let kept = theirs.filter { now.contains($0) || !before.contains($0) }
      var present = Set(kept)
      let added = mine.filter { !before.contains($0) && present.insert($0).inserted }
      return .array(kept + added)
    case (.object(let theirs), .object(let mine)):
      let known: JSONObject = if case .object(let members) = base { members } else { [:] }
      var result = JSONObject()
      // An entry removed here stays if the other side has changed it since.
      for (key, value) in theirs where mine[key] != nil || !known[key].isWritten(as: value) {
        result.append(newKey: key, value)
      }
      for (key, value) in mine where !known[key].isWritten(as: value) { result[key] = value }
      return .object(result)
    case (.null, _): return mine
    case (_, .null): return theirs
    default: return mine
    }
  }
}

extension _PropertyType {
  /// Returns true if `a` is smaller than `b` as a value of the type; nil if the two cannot be compared.
  fileprivate func isLess(_ a: JSONValue, _ b: JSONValue) -> Bool? {
    switch self {
    case .optional(let wrapped): return wrapped.isLess(a, b)
    case .decimal:
      guard let a = FieldNumber(a), let b = FieldNumber(b) else { break }
      return a.isLess(than: b)
    case .number:
      guard let a = Self.real(a), let b = Self.real(b) else { break }
      return a < b
    default: break
    }
    return JSONValue.isLess(a, b)
  }

  /// Returns a number that is not finite, which JSON has as a text, or that is.
  private static func real(_ json: JSONValue) -> Double? {
    switch json {
    case "Infinity": .infinity
    case "-Infinity": -.infinity
    default: json.number
    }
  }
}

extension JSONValue {
  /// Returns true if `a` is smaller than `b`; nil if the two cannot be compared.
  fileprivate static func isLess(_ a: JSONValue, _ b: JSONValue) -> Bool? {
    switch (a, b) {
    case (.null, _): return b != .null
    case (_, .null): return false
    case (.bool(let a), .bool(let b)): return !a && b
    case (.string(let a), .string(let b)): return a < b
    case (.integer(let a), .integer(let b)): return a < b
    case (.unsigned(let a), .unsigned(let b)): return a < b
    case (.integer, .unsigned): return true
    case (.unsigned, .integer): return false
    default:
      guard let a = a.number, let b = b.number else { return nil }
      return a < b
    }
  }

  fileprivate var number: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .unsigned(let value): Double(value)
    case .double(let value): value
    case .float(let value): Double(value)
    default: nil
    }
  }
}
