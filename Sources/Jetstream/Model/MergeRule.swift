/// What becomes of a property that two replicas have changed at the same time.
///
/// Without a rule the write that the server orders last counts. With one, the server asks it as soon as a change
/// comes that was made without knowing the value that counts; so does the client, to show what will come of
/// it. A change of the only replica that has changed the property is taken as it is.
///
/// ```swift
/// @Property(.merge(.max)) var highScore = 0
/// @Property(.merge(.union)) var tags: [String] = []
/// // What both say counts, else what was there before.
/// @Property(.merge(.rule("agreed") { $0.mine == $0.theirs ? $0.mine : $0.base })) var price = 0.0
/// ```
///
/// Client and server should have the same rule. Where they have not, the server's counts. What several
/// replicas add to a number adds up with ``PropertyOptions/counter``; collections of models need no rule.
/// Peers of version 1 of the protocol do not say what they knew: what they write counts.
public struct MergeRule: Sendable {
  /// The three values that a rule has to make one of, as the property's type writes them.
  public struct Conflict: Sendable, Hashable {
    /// What the property was when the change was made.
    public let base: JSONValue
    /// What counts now, because of others.
    public let theirs: JSONValue
    /// What the change makes of it.
    public let mine: JSONValue

    /// Makes a conflict.
    public init(base: JSONValue, theirs: JSONValue, mine: JSONValue) {
      (self.base, self.theirs, self.mine) = (base, theirs, mine)
    }
  }

  /// What the rule is called, where schemas are printed and compared.
  public let name: String
  private let resolve: @Sendable (Conflict) -> JSONValue

  /// A rule of the app's own.
  ///
  /// - Parameters:
  ///   - name: tells it from others.
  ///   - resolve: gives the value that counts. It must depend on nothing but the three values, and may be called
  ///     on any actor. A value that the property cannot have rejects the change.
  public static func rule(
    _ name: String, _ resolve: @escaping @Sendable (Conflict) -> JSONValue
  ) -> MergeRule {
    precondition(!name.isEmpty, "The name of a merge rule must not be empty.")
    return MergeRule(name: name, resolve: resolve)
  }

  /// The larger value counts: of numbers, dates, texts as Swift orders them, and truth values, with false as
  /// the smaller one. No value is smaller than any.
  public static let max = MergeRule(name: "max") { conflict in
    JSONValue.isLess(conflict.theirs, conflict.mine) == false ? conflict.theirs : conflict.mine
  }

  /// The smaller value counts; see ``max``. No value counts only if nobody has set one.
  public static let min = MergeRule(name: "min") { conflict in
    if conflict.theirs == .null { return conflict.mine }
    if conflict.mine == .null { return conflict.theirs }
    return JSONValue.isLess(conflict.mine, conflict.theirs) == false
      ? conflict.theirs : conflict.mine
  }

  /// What either side has put into a set, an array or a dictionary is in it, and what either has taken out is not,
  /// unless the other has changed it. New elements of an array come behind the others, each once.
  public static let union = MergeRule(name: "union") { $0.united }

  /// The value that counts.
  package func value(_ conflict: Conflict) -> JSONValue { resolve(conflict) }
}

extension MergeRule: Hashable {
  /// Rules of one name are taken for the same.
  public static func == (a: MergeRule, b: MergeRule) -> Bool { a.name == b.name }

  /// Hashes the name.
  public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension ModelSchema.Property {
  /// What becomes of a value that is set where others may have set another one since it was `base`: the value
  /// itself if they have not, or if there is no rule.
  package func merged(_ mine: JSONValue, onto theirs: JSONValue, base: JSONValue) -> JSONValue {
    guard let rule = options.mergeRule, !areSame(theirs, base) else { return mine }
    // What has come over the wire and what has not is to look the same.
    func normal(_ json: JSONValue) -> JSONValue { access.normalized(json) ?? json }
    // A set that a rule has made of two has to be in order as well.
    return normal(rule.value(.init(base: normal(base), theirs: normal(theirs), mine: normal(mine))))
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
      var result = theirs
      for (key, value) in mine where known[key] != value { result[key] = value }
      // What they have changed since is not what was taken out here.
      for (key, value) in known where mine[key] == nil && theirs[key] == value { result[key] = nil }
      return .object(result)
    case (.null, _): return mine
    case (_, .null): return theirs
    default: return mine
    }
  }
}

extension JSONValue {
  /// Whether one value is smaller than another one; nil if nobody can say.
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

  private var number: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .unsigned(let value): Double(value)
    case .double(let value): value
    case .float(let value): Double(value)
    default: nil
    }
  }
}
