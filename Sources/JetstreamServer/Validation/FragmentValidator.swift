import Foundation
import Jetstream

/// Checks the fragments of one submission against a scope, before anything is changed.
///
/// It walks over the fragments several times. Between two parts of a walk the scope may change: then what was found is no
/// more than a reason to reject fragments, as it was at some time.
struct FragmentValidator {
  /// A fragment that was accepted, for a model that exists or is being added.
  struct Accepted {
    /// The schema of the model; nil for an unknown class, as long as no known property refers to the model.
    var schema: ClassSchema?
    /// The values that can be applied unchanged.
    var properties: JSONObject
    /// The operations that can be applied unchanged.
    var operations: PropertyOperations = [:]
  }

  let content: any HostedContent
  let memory: any ContentMemory
  let fragments: [SyncFragment]
  /// The errors of rejected fragments, by their indices.
  private(set) var errors: [Int: WireError] = [:]
  /// For each fragment that was rejected because another one was: the index of that other fragment, which was rejected
  /// for a reason of its own.
  var causes: [Int: Int] = [:]
  var accepted: [Accepted?]
  /// The index of the first rejected addition of each model, by UUID, also for models that the scope has.
  private var refused: [UUID: Int] = [:]
  /// The indices of the additions of models that the scope does not have, by UUID.
  private(set) var additions: [UUID: Int] = [:]
  let unknown: UnknownContent
  /// True if the session may send operations.
  let takesOperations: Bool
  /// The models of the scope that are stored as fragments only, since their classes are unknown.
  let unknownModels: Set<UUID>
  /// The schemas against which models of unknown classes are checked because known properties refer to them, by UUID.
  var standIns: [UUID: ClassSchema] = [:]
  /// The errors of fragments that are rejected in any case, by their indices.
  private let objections: [Int: WireError]
  private var walk = Walk.additions
  /// The index of the fragment at which the walk goes on.
  private var position = 0

  /// The links of the fragments to additions, while these are looked at. An object, since most change sets add nothing.
  var links: FragmentLinks?
  /// True once an addition was rejected, of a model that the scope does not have.
  private(set) var rejectsAdditions = false

  /// The walks over the fragments, in their order.
  private enum Walk { case additions, changes, values, objections, referrers, holders, rules, none }

  /// Makes a validation that has not begun; see ``advance(_:)``.
  init(
    content: any HostedContent, memory: any ContentMemory, unknown: UnknownContent = .reject,
    takesOperations: Bool = true, fragments: [SyncFragment], objections: [Int: WireError] = [:]
  ) {
    self.content = content
    self.memory = memory
    self.unknown = unknown
    self.takesOperations = takesOperations
    unknownModels = unknown == .keep ? content.unknownModelUUIDs() : []
    self.fragments = fragments
    self.objections = objections
    accepted = Array(repeating: nil, count: fragments.count)
  }

  /// Goes on with the validation. Returns true once it is complete.
  mutating func advance(_ budget: inout WorkBudget) -> Bool {
    while walk != .none {
      if walk == .rules, budget.isSpent { return false }
      let part = budget.take(from: position, of: fragments)
      switch walk {
      case .additions: checkAdditions(part)
      case .changes: checkChanges(part)
      case .values: checkValues(part)
      case .objections: if !objections.isEmpty { takeObjections(part) }
      case .referrers: if rejectsAdditions { findReferrers(part) }
      case .holders: if !additions.isEmpty { findHolders(part) }
      // Most classes have none. They are looked at again until none is broken.
      case .rules: checkRules()
      case .none: break
      }
      position = part.upperBound
      guard walk == .rules || position == fragments.count else { return false }
      endWalk()
    }
    return true
  }

  /// Does all of a validation that has not begun: the same walks, without a look at the budget.
  mutating func finish() {
    let all = fragments.indices
    checkAdditions(all)
    checkChanges(all)
    if unknown == .keep { findStandIns() }
    checkValues(all)
    if !objections.isEmpty { takeObjections(all) }
    checkLinks()
    checkRules()
    walk = .none
  }

  private mutating func endWalk() {
    position = 0
    switch walk {
    case .additions: walk = .changes
    case .changes:
      if unknown == .keep { findStandIns() }
      walk = .values
    case .values: walk = .objections
    case .objections: walk = .referrers
    case .referrers:
      if rejectsAdditions { rejectReferrers() }
      walk = .holders
    case .holders:
      if !additions.isEmpty { rejectUnheld() }
      walk = .rules
    case .rules, .none: walk = .none
    }
  }

  var isClean: Bool { errors.isEmpty }

  /// The reply to a change set of one fragment that is accepted.
  private static let accepted = [FragmentReply()]

  /// The replies to the fragments, with the errors found by this validation.
  var replies: [FragmentReply] {
    if errors.isEmpty, causes.isEmpty {
      return fragments.count == 1
        ? Self.accepted : Array(repeating: FragmentReply(), count: fragments.count)
    }
    return fragments.indices.map { FragmentReply(error: errors[$0], causedBy: causes[$0]) }
  }

  /// The reason why a fragment is rejected.
  struct Problem {
    let text: String
    /// The model that is missing, if that is the reason.
    var missing: UUID?
    /// The type of the error; nil for none.
    var type: String?

    init(_ text: String, missing: UUID? = nil, type: String? = nil) {
      (self.text, self.missing, self.type) = (text, missing, type)
    }
  }

  // MARK: Steps

  private mutating func checkAdditions(_ part: Range<Int>) {
    // Reads fragments where they stand: each copy would be retained and released for nothing.
    for at in part where fragments[at].kind == .add {
      let fragment = fragments[at]
      let name = fragment.className
      if additions[fragment.uuid] != nil {
        reject(at, "ModelObject with UUID '\(fragment.uuid.wireText)' is added twice")
      } else if let known = content.model(fragment.uuid),
        known.wireClassName != name || content.sharedModel(fragment.uuid) != nil
      {
        if known.wireClassName == name {
          accepted[at] = Accepted(schema: known.classSchema, properties: JSONObject())
        } else {
          reject(
            at,
            "ModelObject with UUID '\(fragment.uuid.wireText)' already exists: it is a "
              + "\(known.wireClassName), not a \(name)")
        }
      } else if let other = otherClass(of: fragment) {
        reject(
          at,
          "ModelObject with UUID '\(fragment.uuid.wireText)' already exists: it is a "
            + "\(other), not a \(name)")
      } else if let schema = content.schema(named: name) {
        additions[fragment.uuid] = at
        accepted[at] = Accepted(schema: schema, properties: JSONObject())
      } else if unknown == .keep {
        additions[fragment.uuid] = at
        accepted[at] = Accepted(schema: nil, properties: JSONObject())
      } else {
        reject(at, "No such class type '\(name)'")
      }
    }
  }

  private mutating func checkChanges(_ part: Range<Int>) {
    for at in part where fragments[at].kind == .change {
      let uuid = fragments[at].uuid
      if let model = content.sharedModel(uuid) {
        accepted[at] = Accepted(schema: model.classSchema, properties: JSONObject())
      } else if let added = additions[uuid], let addition = accepted[added] {
        accepted[at] = Accepted(schema: addition.schema, properties: JSONObject())
      } else if let kept = keptModel(uuid) {
        accepted[at] = Accepted(
          schema: content.schema(named: kept.className), properties: JSONObject())
      } else {
        reject(at, Problem("ModelObject not found", missing: uuid))
      }
    }
  }

  /// Rejects fragments for reasons that are not in their form.
  private mutating func takeObjections(_ part: Range<Int>) {
    for at in part where errors[at] == nil {
      guard let error = objections[at] else { continue }
      errors[at] = error
      if fragments[at].kind == .add { noteRefused(at) }
    }
  }

  /// Returns the class of a detached model that an addition would bring back; nil if the addition names that class, or
  /// if there is no such model.
  private func otherClass(of addition: SyncFragment) -> String? {
    let known =
      memory.departed(addition.uuid)?.wireClassName
      ?? content.unknownModel(addition.uuid)?.className
    return known == addition.className ? nil : known
  }

  private mutating func checkValues(_ part: Range<Int>) {
    for at in part {
      guard let entry = accepted[at] else { continue }
      // Reads fragments where they stand: each copy would be retained and released for nothing.
      let (kind, properties) = (fragments[at].kind, fragments[at].properties)
      if !fragments[at].operations.isEmpty {
        if !takesOperations, let key = fragments[at].operations.first?.key {
          reject(at, "Operations at '\(key)', which this version of the protocol does not have")
          continue
        }
        if let problem = problem(with: fragments[at].operations, of: fragments[at], entry.schema) {
          reject(at, problem)
          continue
        }
        accepted[at]!.operations = fragments[at].operations
      }
      if unknown == .keep, let problem = sizeProblem(of: fragments[at], schema: entry.schema) {
        reject(at, problem)
        continue
      }
      var leftOut: Set<String> = []
      for (key, value) in properties {
        let found = entry.schema?[wireName: key]
        guard let property = found, property.isSynced else {
          guard unknown == .keep else {
            reject(at, Problem("No property at '\(key)'"))
            break
          }
          // Clients cannot write local properties.
          if found == nil, let problem = rejectedReference(in: value, at: key) {
            reject(at, problem)
            break
          }
          if found != nil { leftOut.insert(key) }
          continue
        }
        // Old peers name every property in an addition, with null where they have no value.
        let problem = problem(of: value, for: property)
        if kind == .add, value == .null, !takesOperations || problem != nil {
          leftOut.insert(key)
          continue
        }
        if let problem =
          problem
          ?? mergeProblem(of: value, inFragment: at, for: property).map({ Problem($0) })
        {
          reject(at, problem)
          break
        }
      }
      if errors[at] != nil { continue }
      accepted[at]!.properties =
        leftOut.isEmpty
        ? properties
        : JSONObject(
          properties.filter { !leftOut.contains($0.key) }.map { ($0.key, $0.value) })
    }
  }

  private func problem(of value: JSONValue, for property: PropertySchema) -> Problem? {
    let key = property.wireName
    if property.isCollection {
      guard case .array(let elements) = value else {
        return Problem("Collection type without array value at '\(key)'")
      }
      var seen: Set<UUID> = []
      for element in elements {
        guard case .string(let text) = element, let uuid = UUID(wireText: text) else {
          return Problem("Not valid type at '\(key)', should be array of UUIDs")
        }
        if !seen.insert(uuid).inserted {
          return Problem("ModelObject '\(text)' occurs twice at '\(key)'")
        }
        if let problem = referenceProblem(uuid, text, property) { return problem }
      }
      return nil
    }
    if property.isReference {
      if value == .null { return nil }
      guard case .string(let text) = value, let uuid = UUID(wireText: text) else {
        return Problem("Cannot set property at '\(key)' as non-UUID")
      }
      return referenceProblem(uuid, text, property)
    }
    if property.accepts(value) { return nil }
    guard let sentence = property.problem(with: value) else {
      return Problem("Not valid type at '\(key)', should be \(property.type)")
    }
    return Problem("Not valid at '\(key)': \(sentence.prefix(Self.maxSentence))")
  }

  func referenceProblem(
    _ uuid: UUID, _ text: String, _ property: PropertySchema
  ) -> Problem? {
    let target: ClassSchema
    if let model = content.sharedModel(uuid) ?? memory.departed(uuid) {
      target = model.classSchema
    } else if let at = additions[uuid], let schema = accepted[at]?.schema {
      target = schema
    } else if let schema = keptSchema(uuid) {
      target = schema
    } else {
      return Problem("No such ModelObject '\(text)' at '\(property.wireName)'", missing: uuid)
    }
    if property.canHold(target) { return nil }
    return Problem(
      "ModelObject '\(text)' at '\(property.wireName)' is a \(target.wireName), should be a "
        + className(property))
  }

  private func className(_ property: PropertySchema) -> String {
    switch property.type {
    case .reference(let name), .collection(let name): name
    default: "\(property.type)"
    }
  }

  /// Returns the index of the rejected addition of a model, if there is one.
  private func rejectedAddition(of uuid: UUID) -> Int? {
    if let at = additions[uuid] { return errors[at] == nil ? nil : at }
    return refused[uuid]
  }

  private mutating func noteRefused(_ at: Int) {
    let uuid = fragments[at].uuid
    if refused[uuid] == nil { refused[uuid] = at }
    if additions[uuid] == at { rejectsAdditions = true }
  }

  // MARK: Pieces

  /// The largest number of characters of a property type's own error text that are sent.
  private static let maxSentence = 500

  static func uuids(in value: JSONValue) -> [UUID] {
    switch value {
    case .string(let text): UUID(wireText: text).map { [$0] } ?? []
    case .array(let elements): elements.flatMap(uuids)
    default: []
    }
  }

  private mutating func reject(_ at: Int, _ problem: String) { reject(at, Problem(problem)) }

  /// Rejects a fragment. The error text begins with the words that older servers use, followed by the model that is
  /// meant.
  mutating func reject(_ at: Int, _ problem: Problem) {
    let fragment = fragments[at]
    errors[at] = WireError(
      message: "\(problem.text) (\(fragment.className) \(fragment.uuid.wireText))",
      type: problem.type)
    if fragment.kind == .add { noteRefused(at) }
    guard let cause = problem.missing.flatMap(rejectedAddition), cause != at else { return }
    causes[at] = causes[cause] ?? cause
  }
}
