import Foundation
import Jetstream

/// Validation of values by the rules that the declarations of their properties give.
///
/// Range, length and pattern are judged by the value that a property would have: merged, and with the increments of a
/// counter. Immutable and unique properties are judged by the state after the change set, of which only the fragments
/// count that are accepted. So each rejection may change the judgement of another fragment, and the rules are looked at
/// again until none is broken.
extension FragmentValidator {
  /// The type of the errors of fragments that break a rule.
  static let ruleErrorType = "field-rule"

  /// The highest number of times that the fragments are judged. Those that then still break rules are a hostile chain,
  /// such as a thousand models of which each takes the unique value of the next: all that were judged are rejected.
  private static let maximumJudgements = 8

  /// Rejects the fragments that break a rule, and those that cannot be applied without them.
  ///
  /// Cost: a check for nil for each fragment, if no class has rules.
  mutating func checkRules() {
    guard
      content.hasUnique || accepted.contains(where: { $0?.schema?.ruled != nil })
        || standIns.values.contains(where: { $0.ruled != nil })
    else { return }
    var judgements = 0
    while true {
      let judgement = RuleJudgement(of: self)
      effort += judgement.effort
      if judgement.problems.isEmpty { return }
      judgements += 1
      for (at, text) in judgement.problems.sorted(by: { $0.key < $1.key }) {
        reject(at, Problem(text, type: Self.ruleErrorType))
      }
      if judgements == Self.maximumJudgements {
        for at in judgement.judged.sorted() where errors[at] == nil {
          let text = "Depends on too many values that break a rule"
          reject(at, Problem(text, type: Self.ruleErrorType))
        }
      }
      checkLinks()
    }
  }

  /// Returns a model as it was before the fragments: one of the scope, one that only the server's app sees, or one that
  /// has left and may come back.
  func earlierModel(_ uuid: UUID) -> (any HostedModel)? {
    content.model(uuid) ?? memory.departed(uuid)
  }

  /// Returns the value that a property had before the fragments; nil for a new model.
  func earlierValue(of property: PropertySchema, of uuid: UUID) -> JSONValue? {
    if let model = earlierModel(uuid) { return model.currentJSON(of: property) }
    guard let kept = keptModel(uuid) else { return nil }
    return kept.properties[property.wireName] ?? property.defaultValue
  }

  /// Returns true if a fragment is applied with the additions, before all changes: an addition, unless it becomes a
  /// change, since the scope has its model; see ``ScopeOrder/merge(_:of:into:by:)``.
  func isAppliedAsAddition(_ at: Int) -> Bool {
    let fragment = fragments[at]
    return fragment.kind == .add
      && !(takesOperations && content.sharedModel(fragment.uuid) != nil)
  }

  /// Returns the value that a fragment with a base leads to. It is merged exactly as in
  /// ``ScopeOrder/merge(_:of:into:by:)``: with the value before the change set, whatever other fragments
  /// write, and only where the draft merges at all. A client chooses both value and base, and would otherwise have one
  /// value judged and another one applied.
  func merged(
    _ value: JSONValue, base: JSONValue, of property: PropertySchema, _ at: Int
  ) -> JSONValue {
    let (uuid, kind) = (fragments[at].uuid, fragments[at].kind)
    let shared = content.sharedModel(uuid)
    if takesOperations, kind == .add {
      guard let model = shared ?? memory.departed(uuid) else { return value }
      return property.putBack(value, onto: model.currentJSON(of: property), base: base)
    }
    guard let shared else { return value }
    return property.merged(value, onto: shared.currentJSON(of: property), base: base)
  }

  /// Returns the class of a model of the scope, of one that may come back, or of one that is added.
  func classSchema(of uuid: UUID) -> ClassSchema? {
    earlierModel(uuid)?.classSchema ?? additions[uuid].flatMap { accepted[$0]?.schema }
      ?? keptSchema(uuid)
  }
}

/// The judgement of the fragments that were not rejected so far.
struct RuleJudgement {
  let check: FragmentValidator
  /// The reasons why fragments are rejected, by their indices.
  private(set) var problems: [Int: String] = [:]
  /// The indices of the fragments that were judged.
  private(set) var judged: Set<Int> = []
  /// The values of properties with rules after the fragments.
  private(set) var values: [PropertyKey: JSONValue] = [:]
  /// The fragments that change the values of unique properties.
  private(set) var uniqueWrites: [PropertyKey: Int] = [:]
  /// The number of models of collections that were looked at.
  var effort = 0

  init(of check: FragmentValidator) {
    self.check = check
    // As they are applied: first the additions, then the changes.
    for isAddition in [true, false] {
      for at in check.fragments.indices
      where check.errors[at] == nil && check.isAppliedAsAddition(at) == isAddition { judge(at) }
    }
    if !check.standIns.isEmpty { judgeStandIns() }
    if check.content.hasUnique { judgeUnique() }
  }

  mutating func reject(_ at: Int, _ problem: String) {
    if problems[at] == nil { problems[at] = problem }
  }

  mutating func noteJudged(_ at: Int) { judged.insert(at) }

  private mutating func judge(_ at: Int) {
    guard let entry = check.accepted[at], let schema = entry.schema, let ruled = schema.ruled
    else { return }
    judged.insert(at)
    var written: [(property: PropertySchema, value: JSONValue)] = []
    for property in ruled {
      let key = PropertyKey(uuid: check.fragments[at].uuid, name: property.wireName)
      let earlier = check.earlierValue(of: property, of: key.uuid)
      let before = values[key] ?? earlier
      guard let value = value(of: property, at, entry, before: before) else { continue }
      written.append((property, value))
      let submitted = entry.properties[key.name].map { property.normalized($0) ?? $0 }
      if let problem = problem(
        with: property, of: key.uuid, schema, submitted: submitted, earlier: earlier, value)
      {
        return reject(at, problem)
      }
    }
    // Only what is accepted counts for the fragments that follow.
    for (property, value) in written {
      let key = PropertyKey(uuid: check.fragments[at].uuid, name: property.wireName)
      let earlier = check.earlierValue(of: property, of: key.uuid)
      values[key] = value
      guard property.rules?.isUnique == true else { continue }
      uniqueWrites[key] = earlier.map { property.areSame($0, value) } == true ? nil : at
    }
  }

  /// Judges the values of the kept models of unknown classes that known properties come to hold, directly or through others,
  /// and that become models of the classes which these expect. No class was known when they got their values.
  private mutating func judgeStandIns() {
    var seen: Set<UUID> = []
    for at in check.fragments.indices where check.errors[at] == nil && problems[at] == nil {
      guard let schema = check.accepted[at]?.schema else { continue }
      var open = [(fragment: check.fragments[at], schema: schema)]
      while let (fragment, schema) = open.popLast() {
        for (key, uuids) in FragmentValidator.links(of: fragment)
        where schema[wireName: key]?.heldClass != nil {
          for uuid in uuids {
            guard let standIn = check.standIns[uuid], let kept = check.keptModel(uuid),
              check.earlierModel(uuid) == nil
            else { continue }
            judged.insert(at)
            // If its fragment is rejected, the next one that names it is looked at in the next judgement.
            guard seen.insert(uuid).inserted else { continue }
            if let problem = problem(with: uuid, as: standIn) { reject(at, problem) }
            open.append((kept, standIn))
          }
        }
      }
    }
  }

  /// Returns the reason why a kept model cannot become one of a class; nil if it can.
  private func problem(with kept: UUID, as schema: ClassSchema) -> String? {
    for property in schema.ruled ?? [] {
      let key = PropertyKey(uuid: kept, name: property.wireName)
      let value =
        values[key] ?? check.earlierValue(of: property, of: kept) ?? property.defaultValue
      let normal = property.normalized(value) ?? value
      if let problem = property.rules?.problem(with: normal, called: key.name) { return problem }
    }
    return nil
  }

  /// Returns the reason why a property cannot get a value; nil if it can.
  ///
  /// - Parameters:
  ///   - submitted: the value in the fragment; nil if there is none.
  ///   - earlier: the value before the change set; nil for a model that is only being added.
  ///   - value: the value that comes of it.
  private func problem(
    with property: PropertySchema, of uuid: UUID, _ schema: ClassSchema, submitted: JSONValue?,
    earlier: JSONValue?, _ value: JSONValue
  ) -> String? {
    guard let rules = property.rules else { return nil }
    // A change set that changes nothing breaks nothing: a value of the server's own app may stand.
    if let earlier, property.areSame(earlier, value) { return nil }
    let name = property.wireName
    if rules.isImmutable, let earlier, !isFirstOfRoot(property, uuid, earlier) {
      return FieldRules.immutableProblem(called: name, of: schema.wireName)
    }
    if let submitted, let problem = rules.problem(with: submitted, called: name) { return problem }
    // A long text is matched only once.
    return submitted == value ? nil : rules.problem(with: value, called: name)
  }

  /// Returns the value that a property has after a fragment; nil if the fragment does not write it.
  ///
  /// - Parameter before: the value before the fragment; nil for a model that is only being added.
  private func value(
    of property: PropertySchema, _ at: Int, _ entry: FragmentValidator.Accepted,
    before: JSONValue?
  ) -> JSONValue? {
    let fragment = check.fragments[at]
    let name = property.wireName
    if let submitted = entry.properties[name] {
      let value = property.normalized(submitted) ?? submitted
      guard let base = fragment.bases[name] else { return value }
      return check.merged(value, base: base, of: property, at)
    }
    let operations = entry.operations[name]
    if !operations.isEmpty {
      return PropertyOperation.apply(
        operations, to: before ?? property.defaultValue,
        within: property.counterRange ?? .unknown)
    }
    return fragment.kind == .add && before == nil ? property.defaultValue : nil
  }

  /// Returns true for a property of the root that still has its default: no client adds the root, so that clients set
  /// it with a change.
  private func isFirstOfRoot(
    _ property: PropertySchema, _ uuid: UUID, _ earlier: JSONValue
  ) -> Bool {
    check.content.root?.uuid == uuid && property.areSame(earlier, property.defaultValue)
  }
}
