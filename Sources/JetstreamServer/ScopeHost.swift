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
    /// Whether somebody else's change of a property was sent to the session and may not have been
    /// seen when it submitted.
    let mayHaveMissed: (PropertyKey) -> Bool
  }

  /// What became of a submission.
  struct Result {
    var replies: [FragmentReply]
    /// What all other sessions are told; empty if nothing was accepted.
    var broadcast: [SyncFragment] = []
    /// What the submitting session has to be told besides the replies.
    var correction: [SyncFragment] = []
  }

  let scope: Scope
  private(set) var sequence = 0
  /// Called with the server's own changes, after they were given a number.
  var onLocalChanges: (([SyncFragment]) -> Void)?

  private var histories: [PropertyKey: CollectionHistory] = [:]
  private var departed: [UUID: (model: ModelObject, sequence: Int)] = [:]
  private var arrived: [ModelObject] = []
  private var token: ObservationToken?

  init(scope: Scope) {
    self.scope = scope
    scope.sealChanges()
    scope.membershipObserver = self
    token = scope.onChanges.listen { [weak self] in self?.localChange($0) }
  }

  func end() {
    token?.cancel()
    scope.membershipObserver = nil
  }

  func departed(_ uuid: UUID) -> ModelObject? { departed[uuid]?.model }

  func modelEntered(_ model: ModelObject) {
    departed[model.uuid] = nil
    if scope.isWritingRemotely { arrived.append(model) }
  }

  /// A submission has its number before it is applied; the server's own changes get theirs after.
  func modelLeft(_ model: ModelObject) {
    departed[model.uuid] = (model, scope.isWritingRemotely ? sequence : sequence + 1)
  }

  /// Whoever puts the model back is told all its values.
  func changesLost(of model: ModelObject, before: JSONObject) {}

  /// Forgets what every session has seen.
  func forget(upTo horizon: Int) {
    if !departed.isEmpty { departed = departed.filter { $0.value.sequence > horizon } }
    for (key, var history) in histories {
      history.forget(upTo: horizon)
      histories[key] = history.isEmpty ? nil : history
    }
  }

  // MARK: The server's own changes

  private func localChange(_ set: ChangeSet) {
    sequence += 1
    for fragment in set.fragments where fragment.kind == .change {
      for (key, value) in fragment.properties
      where scope.schema(named: fragment.className)?[key]?.isCollection == true {
        note(
          PropertyKey(uuid: fragment.uuid, name: key),
          from: set.bases[fragment.uuid]?[key] ?? .array([]), to: value, origin: nil)
      }
    }
    onLocalChanges?(set.fragments)
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
    let check = FragmentValidator(scope: scope, memory: self, fragments: fragments)
    if isAtomic, !check.isClean { return rejectAll(check) }
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
          guard let property = entry.schema[key] else { continue }
          let name = PropertyKey(uuid: fragment.uuid, name: key)
          let current = model.currentJSON(of: property)
          before[name] = before[name] ?? current
          if property.isCollection {
            applied.properties[key] = merged(value, current, name, submitter)
          }
        }
      }
      effective.append(applied)
      positions.append(at)
    }
    guard !effective.isEmpty else { return result }

    sequence += 1
    arrived = []
    let report = scope.apply(effective, alsoKnown: { [self] in departed($0) })
    for (position, error) in report.errors {
      result.replies[positions[position]] = FragmentReply(error: WireError(message: "\(error)"))
    }
    for (name, old) in before {
      guard let model = scope.model(name.uuid), let property = model.schema[name.name],
        property.isCollection
      else { continue }
      let new = model.currentJSON(of: property)
      if new != old { note(name, from: old, to: new, origin: submitter.session) }
    }
    tell(&result, fragments, effective, before, submitter)
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

  private func merged(
    _ value: JSONValue, _ current: JSONValue, _ name: PropertyKey, _ submitter: Submitter
  ) -> JSONValue {
    guard let history = histories[name] else { return value }
    let uuids = history.merge(
      current: FragmentValidator.uuids(in: current), submitted: FragmentValidator.uuids(in: value),
      session: submitter.session, proven: submitter.proven)
    return .array(uuids.map { .string($0.wireText) })
  }

  /// Works out the broadcast, which carries the server's values, and the correction, which tells the
  /// submitter where they differ from its own or where it may have been told something else since.
  private func tell(
    _ result: inout Result, _ fragments: [SyncFragment], _ effective: [SyncFragment],
    _ before: [PropertyKey: JSONValue], _ submitter: Submitter
  ) {
    let added = Set(effective.filter { $0.kind == .add }.map(\.uuid))
    let returned = arrived.filter { $0.scope === scope && !added.contains($0.uuid) }
    result.broadcast += returned.map(addition)
    // The submitter has them too, but not what happened to them in the set in which they left.
    var doubtful = returned
    var corrections: [SyncFragment] = []
    var submitted: [UUID: [SyncFragment]] = [:]
    for fragment in fragments { submitted[fragment.uuid, default: []].append(fragment) }
    for fragment in effective {
      guard let model = scope.model(fragment.uuid) else { continue }
      let schema = model.schema
      let now =
        fragment.kind == .add
        ? model.currentProperties()
        : JSONObject(
          fragment.properties.compactMap { key, _ in
            schema[key].map { (key, model.currentJSON(of: $0)) }
          })
      result.broadcast.append(
        SyncFragment(
          fragment.kind, uuid: fragment.uuid, className: schema.wireName, properties: now))

      let mine = submitted[fragment.uuid]?.last { $0.kind == fragment.kind }?.properties
      var wrong = JSONObject()
      for (key, value) in now {
        guard let property = schema[key] else { continue }
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        let isMissed = fragment.kind == .change && submitter.mayHaveMissed(name)
        if !isMissed, let own = mine?[key], property.areSame(own, value) { continue }
        wrong[key] = value
        doubtful += doubtfulModels(value, own: mine?[key], before: before[name], isMissed: isMissed)
      }
      if !wrong.isEmpty {
        corrections.append(
          SyncFragment(
            .change, uuid: fragment.uuid, className: schema.wireName, properties: wrong))
      }
    }
    var known: Set<UUID> = []
    for model in doubtful {
      for fragment in model.subtreeFragments() where known.insert(fragment.uuid).inserted {
        result.correction.append(fragment)
      }
    }
    result.correction += corrections
  }

  /// Models in a corrected value that the submitter may not have, or may have dropped.
  private func doubtfulModels(
    _ value: JSONValue, own: JSONValue?, before: JSONValue?, isMissed: Bool
  ) -> [ModelObject] {
    let sure = Set(FragmentValidator.uuids(in: (isMissed ? before : own) ?? .null))
    let alsoSure = isMissed ? Set(FragmentValidator.uuids(in: own ?? .null)) : sure
    return FragmentValidator.uuids(in: value).compactMap { uuid in
      sure.contains(uuid) && alsoSure.contains(uuid) ? nil : scope.model(uuid)
    }
  }

  private func addition(of model: ModelObject) -> SyncFragment {
    SyncFragment(
      .add, uuid: model.uuid, className: model.schema.wireName,
      properties: model.currentProperties())
  }
}
