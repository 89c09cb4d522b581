import Foundation
import Jetstream

/// One hosted scope: puts the change sets of all sessions, and the server's own, into one order.
///
/// Each applied set gets the next sequence number. What sessions may not have seen of it yet is
/// remembered up to the horizon: the number that all of them have proved to know.
final class ScopeHost: MembershipObserver, FragmentValidator.Memory {
  /// How a session stands to a scope when it submits.
  struct Submitter {
    let session: Int
    /// The sequence number up to which the session has provably seen everything.
    let proven: Int
    /// Whether its client keeps pending changes in front of what it is told. Such a client needs no
    /// correction where the effective value is the one that it submitted.
    let rebases: Bool
    /// For a client that does not: properties of which it was told something that it may not have
    /// seen when it submitted.
    let missed: Set<PropertyKey>

    func mayHaveMissed(_ name: PropertyKey) -> Bool { missed.contains(name) }
  }

  /// What became of a submission.
  struct Result {
    var replies: [FragmentReply]
    /// What all other sessions are told; empty if nothing was accepted.
    var broadcast: [SyncFragment] = []
    /// The models in it that nobody had before.
    var newcomers: Set<UUID> = []
    /// What the submitting session has to be told besides the replies.
    var correction: [SyncFragment] = []
  }

  let scope: Scope
  /// What is done with properties and classes that the scope does not know.
  var unknown: UnknownContent
  private(set) var sequence = 0
  /// Called with the server's own changes, after they were given a number.
  var onLocalChanges: ((_ fragments: [SyncFragment], _ newcomers: Set<UUID>) -> Void)?

  private(set) var histories: [PropertyKey: CollectionHistory] = [:]
  private var departed: [UUID: (model: ModelObject, sequence: Int)] = [:]
  private(set) var arrived: [ModelObject] = []
  /// Models that the last submission brought back into the scope without an object: some session may
  /// not have them.
  private(set) var returned: Set<UUID> = []
  /// Models that have left the tree with the last submission.
  private var leaving: Set<UUID> = []
  /// Models whose addition was rejected: what refers to them was sent before that was known.
  private var rejectedAdditions: [UUID: Int] = [:]
  /// Models that came back since the last set: some session may have them.
  private var revived: Set<UUID> = []
  private var token: ObservationToken?

  init(scope: Scope, unknown: UnknownContent = .reject) {
    self.scope = scope
    self.unknown = unknown
    scope.sealChanges()
    scope.addMembershipObserver(self)
    token = scope.onSealedChanges.listen { [weak self] in self?.localChange($0.whole) }
  }

  func end() {
    token?.cancel()
    scope.removeMembershipObserver(self)
  }

  /// A model that has left, and is in no other scope by now.
  func departed(_ uuid: UUID) -> ModelObject? {
    departed[uuid].flatMap { $0.model.scope == nil ? $0.model : nil }
  }

  func modelEntered(_ model: ModelObject) {
    if departed.removeValue(forKey: model.uuid) != nil { revived.insert(model.uuid) }
    if scope.isWritingRemotely { arrived.append(model) }
  }

  /// A submission has its number before it is applied; the server's own changes get theirs after.
  func modelLeft(_ model: ModelObject) {
    departed[model.uuid] = (model, scope.isWritingRemotely ? sequence : sequence + 1)
    if unknown == .keep { leaving.insert(model.uuid) }
  }

  /// Forgets what every session has seen.
  func forget(upTo horizon: Int) {
    if !rejectedAdditions.isEmpty {
      rejectedAdditions = rejectedAdditions.filter { $0.value > horizon }
    }
    if !departed.isEmpty { departed = departed.filter { $0.value.sequence > horizon } }
    for (key, var history) in histories {
      history.forget(upTo: horizon)
      histories[key] = history.isEmpty ? nil : history
    }
  }

  // MARK: The server's own changes

  private func localChange(_ set: ChangeSet) {
    sequence += 1
    let bases = set.bases
    for fragment in set.fragments where fragment.kind == .change {
      let schema = scope.schema(of: fragment)
      for (key, value) in fragment.properties
      where schema?[wireName: key]?.isCollection == true {
        note(
          PropertyKey(uuid: fragment.uuid, name: key),
          from: bases[fragment.uuid]?[key] ?? .array([]), to: value, origin: nil)
      }
    }
    onLocalChanges?(set.fragments, newcomers(among: set.fragments))
  }

  private func newcomers(among fragments: [SyncFragment]) -> Set<UUID> {
    defer { revived = [] }
    return Set(fragments.lazy.filter { $0.kind == .add }.map(\.uuid)).subtracting(revived)
  }

  private func note(_ key: PropertyKey, from old: JSONValue, to new: JSONValue, origin: Int?) {
    histories[key, default: CollectionHistory()].note(
      from: FragmentValidator.uuids(in: old), to: FragmentValidator.uuids(in: new),
      sequence: sequence, origin: origin)
  }

  // MARK: Submissions

  /// Judges a submission, applies what is accepted, and says whom to tell what.
  func submit(_ fragments: [SyncFragment], isAtomic: Bool, by submitter: Submitter) -> Result {
    scope.sealChanges()
    let check = FragmentValidator(
      scope: scope, memory: self, unknown: unknown, fragments: fragments)
    if unknown == .keep { noteRejected(check) }
    if isAtomic, !check.isClean {
      var result = rejectAll(check)
      correct(
        &result, Submission(fragments, [], result.replies.map(\.error), [:]), submitter)
      return result
    }
    var result = Result(replies: check.errors.map { FragmentReply(error: $0) })

    // Collections become what the submission does to them; everything else is taken as it is.
    var effective: [SyncFragment] = []
    var positions: [Int] = []
    var before: [PropertyKey: JSONValue] = [:]
    for (at, fragment) in fragments.enumerated() where check.errors[at] == nil {
      guard let entry = check.accepted[at] else { continue }
      var applied = fragment
      applied.properties = entry.properties
      if let model = scope.model(fragment.uuid) {
        for (key, value) in entry.properties {
          let name = PropertyKey(uuid: fragment.uuid, name: key)
          guard let property = entry.schema?[wireName: key] else {
            applied.properties[key] = unknownMerged(value, name, submitter, &before)
            continue
          }
          let current = model.currentJSON(of: property)
          before[name] = before[name] ?? current
          if property.isCollection {
            applied.properties[key] = merged(value, current, name, submitter)
          }
        }
      } else if let kept = check.keptModel(fragment.uuid) {
        for (key, value) in entry.properties {
          let name = PropertyKey(uuid: fragment.uuid, name: key)
          applied.properties[key] = unknownMerged(value, name, submitter, &before)
        }
        if fragment.kind == .add {
          applied.properties = JSONObject(
            (Array(kept.properties) + Array(applied.properties)).map { ($0.key, $0.value) })
        }
      }
      effective.append(applied)
      positions.append(at)
    }
    guard !effective.isEmpty else {
      correct(&result, Submission(fragments, [], check.errors, before), submitter)
      return result
    }

    sequence += 1
    arrived = []
    returned = []
    leaving = []
    let report = scope.apply(effective, alsoKnown: { [self] in departed($0) })
    for (position, error) in report.errors {
      result.replies[positions[position]] = FragmentReply(error: WireError(message: "\(error)"))
    }
    if unknown == .keep {
      returned = scope.unknownModelUUIDs().subtracting(check.unknownModels).subtracting(leaving)
    }
    for (name, old) in before {
      guard let new = collection(name), new != old else { continue }
      // Somebody else's value may have covered the submitter's own change before it was told of it.
      let isSure = submitter.rebases || !submitter.mayHaveMissed(name)
      note(name, from: old, to: new, origin: isSure ? submitter.session : nil)
    }
    result.broadcast = broadcast(of: effective)
    result.newcomers = newcomers(among: result.broadcast)
    correct(&result, Submission(fragments, effective, check.errors, before), submitter)
    return result
  }

  private func rejectAll(_ check: FragmentValidator) -> Result {
    let first = check.errors.compactMap(\.self).first
    return Result(
      replies: check.errors.map { error in
        FragmentReply(
          error: error
            ?? .rejected("Rejected with its atomic set: \(first?.message ?? "another fragment")"))
      })
  }

  func wasRejected(_ uuid: UUID) -> Bool { rejectedAdditions[uuid] != nil }

  private func noteRejected(_ check: FragmentValidator) {
    for (at, fragment) in check.fragments.enumerated()
    where fragment.kind == .add && scope.model(fragment.uuid) == nil
      && !check.unknownModels.contains(fragment.uuid)
    {
      rejectedAdditions[fragment.uuid] = check.errors[at] == nil ? nil : sequence + 1
    }
  }

  /// The value of a collection, or of an unknown property that looks like one.
  private func collection(_ name: PropertyKey) -> JSONValue? {
    guard let model = scope.model(name.uuid), let property = model.schema[wireName: name.name]
    else { return scope.unknownValue(name).flatMap { Self.isCollection($0) ? $0 : nil } }
    return property.isCollection ? model.currentJSON(of: property) : nil
  }

  /// Whether a value can be a collection of models: nothing but UUIDs, each once.
  private static func isCollection(_ value: JSONValue) -> Bool {
    guard case .array(let elements) = value else { return false }
    let uuids = FragmentValidator.uuids(in: value)
    return uuids.count == elements.count && Set(uuids).count == uuids.count
  }

  /// What an unknown property is set to: what looks like a collection before and after is merged.
  private func unknownMerged(
    _ value: JSONValue, _ name: PropertyKey, _ submitter: Submitter,
    _ before: inout [PropertyKey: JSONValue]
  ) -> JSONValue {
    guard let current = scope.unknownValue(name) else { return value }
    before[name] = before[name] ?? current
    guard Self.isCollection(current), Self.isCollection(value) else { return value }
    return merged(value, current, name, submitter)
  }

  private func merged(
    _ value: JSONValue, _ current: JSONValue, _ name: PropertyKey, _ submitter: Submitter
  ) -> JSONValue {
    guard let history = histories[name] else { return value }
    let uuids = history.merge(
      current: FragmentValidator.uuids(in: current), submitted: FragmentValidator.uuids(in: value),
      session: submitter.session, proven: submitter.proven)
    return .array(uuids.map { .string($0.wireText) })
  }
}
