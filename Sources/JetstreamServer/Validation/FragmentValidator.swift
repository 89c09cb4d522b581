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

  /// The number of times that fragments do something to a model.
  struct ChangeCount {
    /// The number of fragments that change it. A change set that has few fragments does not count them.
    var changes = 0
    /// The number of UUIDs that operations insert into its unknown properties.
    var insertions = 0
    /// The names of its unknown properties, with those that the fragments looked at so far may add, and their number before
    /// these; nil if none has changed them.
    var unknownKeys: (names: Set<String>, countBefore: Int)?
  }

  let content: any HostedContent
  let memory: any ContentMemory
  let fragments: [SyncFragment]
  /// The fragments that were rejected so far.
  private var rejections = Rejections()
  var accepted: [Accepted?]
  /// The indices of the additions of models that the scope does not have, by UUID.
  private(set) var additions: [UUID: Int] = [:]
  /// The changes of each model, as far as the fragments are looked at.
  var changeCounts: [UUID: ChangeCount] = [:]
  /// The size in bytes up to which operations may make the value of an unknown property longer; nil if unknown properties
  /// and classes are rejected.
  let unknownValueBytes: Int?
  /// The number of models that were looked at for unique values.
  var effort = 0
  /// True if the session may send operations.
  let takesOperations: Bool
  /// The models of the scope that are stored as fragments only, since their classes are unknown.
  let unknownModels: Set<UUID>
  /// The schemas against which models of unknown classes are checked because known properties refer to them, by UUID.
  var standIns: [UUID: ClassSchema] = [:]
  /// The errors of fragments that are rejected in any case, by their indices.
  private let objections: [Int: WireError]
  /// The walk, and the index of the fragment at which it goes on.
  private var next = (walk: Walk.additions, position: 0)

  /// The links of the fragments to additions, while these are looked at. An object, since most change sets add nothing.
  var links: FragmentLinks?
  /// The fragments that were rejected, by their indices.
  private struct Rejections {
    var errors: [Int: WireError] = [:]
    var causes: [Int: Int] = [:]
    /// The index of the first rejected addition of each model, by UUID, also for models that the scope has.
    var additions: [UUID: Int] = [:]
    /// True once an addition was rejected, of a model that the scope does not have.
    var includeNew = false
  }

  /// The number of fragments that may change one model. Clients send one or two; each takes as long to apply as the
  /// collections that it changes are large.
  static let mostChanges = 32

  /// The walks over the fragments, in their order.
  private enum Walk { case additions, changes, values, objections, referrers, holders, rules, none }

  /// Makes a validation that has not begun; see ``advance(_:)``.
  init(
    content: any HostedContent, memory: any ContentMemory, unknown: UnknownContent = .reject,
    unknownValueBytes: Int = .max, takesOperations: Bool = true, fragments: [SyncFragment],
    objections: [Int: WireError] = [:]
  ) {
    self.content = content
    self.memory = memory
    self.unknownValueBytes = unknown == .keep ? unknownValueBytes : nil
    self.takesOperations = takesOperations
    unknownModels = unknown == .keep ? content.unknownModelUUIDs() : []
    self.fragments = fragments
    self.objections = objections
    accepted = Array(repeating: nil, count: fragments.count)
  }

  /// The treatment of unknown properties and classes.
  var unknown: UnknownContent { unknownValueBytes == nil ? .reject : .keep }

  /// Goes on with the validation. Returns true once it is complete.
  mutating func advance(_ budget: inout WorkBudget) -> Bool {
    while next.walk != .none {
      if next.walk == .rules, budget.isSpent { return false }
      let part = budget.take(from: next.position, of: fragments)
      switch next.walk {
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
      next.position = part.upperBound
      guard next.walk == .rules || next.position == fragments.count else { return false }
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
    next.walk = .none
  }

  private mutating func endWalk() {
    next.position = 0
    switch next.walk {
    case .additions: next.walk = .changes
    case .changes:
      if unknown == .keep { findStandIns() }
      next.walk = .values
    case .values: next.walk = .objections
    case .objections: next.walk = .referrers
    case .referrers:
      if rejectsAdditions { rejectReferrers() }
      next.walk = .holders
    case .holders:
      if !additions.isEmpty { rejectUnheld() }
      next.walk = .rules
    case .rules, .none: next.walk = .none
    }
  }

  /// The errors of rejected fragments, by their indices.
  var errors: [Int: WireError] { rejections.errors }

  /// For each fragment that was rejected because another one was: the index of that other fragment, which was rejected
  /// for a reason of its own.
  var causes: [Int: Int] { rejections.causes }

  /// True once an addition was rejected, of a model that the scope does not have.
  var rejectsAdditions: Bool { rejections.includeNew }

  var isClean: Bool { errors.isEmpty }

  /// The reply to a change set of one fragment that is accepted.
  private static let accepted = [FragmentReply()]

  /// Returns the replies to a change set of which all fragments are accepted.
  static func replies(acceptingAll count: Int) -> [FragmentReply] {
    count == 1 ? accepted : Array(repeating: FragmentReply(), count: count)
  }

  /// The replies to the fragments, with the errors found by this validation.
  var replies: [FragmentReply] {
    if errors.isEmpty, causes.isEmpty { return Self.replies(acceptingAll: fragments.count) }
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
        if known.wireClassName == name, countChange(at) {
          accepted[at] = Accepted(schema: known.classSchema, properties: JSONObject())
        } else if known.wireClassName != name {
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
      guard countChange(at) else { continue }
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

  /// Counts a change of a model. Returns false, after rejecting the fragment, if it is one too many.
  private mutating func countChange(_ at: Int) -> Bool {
    if fragments.count <= Self.mostChanges { return true }
    let uuid = fragments[at].uuid
    changeCounts[uuid, default: ChangeCount()].changes += 1
    if changeCounts[uuid]!.changes <= Self.mostChanges { return true }
    reject(
      at,
      "ModelObject with UUID '\(uuid.wireText)' is changed by more than \(Self.mostChanges) "
        + "fragments")
    return false
  }

  /// Rejects fragments for reasons that are not in their form.
  private mutating func takeObjections(_ part: Range<Int>) {
    for at in part where errors[at] == nil {
      guard let error = objections[at] else { continue }
      rejections.errors[at] = error
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

  /// Returns the index of the rejected addition of a model, if there is one.
  private func rejectedAddition(of uuid: UUID) -> Int? {
    if let at = additions[uuid] { return errors[at] == nil ? nil : at }
    return rejections.additions[uuid]
  }

  private mutating func noteRefused(_ at: Int) {
    let uuid = fragments[at].uuid
    if rejections.additions[uuid] == nil { rejections.additions[uuid] = at }
    if additions[uuid] == at { rejections.includeNew = true }
  }

  mutating func reject(_ at: Int, _ problem: String) { reject(at, Problem(problem)) }

  /// Rejects a fragment. The error text begins with the words that older servers use, followed by the model that is
  /// meant.
  mutating func reject(_ at: Int, _ problem: Problem) {
    let fragment = fragments[at]
    rejections.errors[at] = WireError(
      message: "\(problem.text) (\(fragment.className) \(fragment.uuid.wireText))",
      type: problem.type)
    if fragment.kind == .add { noteRefused(at) }
    guard let cause = problem.missing.flatMap(rejectedAddition), cause != at else { return }
    note(cause: cause, of: at)
  }

  /// Notes that a fragment was rejected because another one was, or because of what that one was rejected for.
  mutating func note(cause: Int?, of at: Int) {
    rejections.causes[at] = cause.map { causes[$0] ?? $0 }
  }
}
