import Foundation
import Jetstream

/// Calls of procedures.
///
/// A call is begun when its turn comes among the client's change sets, and decided once, when it commits or fails. Until then,
/// what the client sends behind it waits; see ``UndecidedSets``.
extension ServerEngine {
  /// The largest number of undecided change sets in a scope that one session has left, each under another client's identity,
  /// and that all sessions of a user have left or ended with. A session with more begins no call.
  private static let mostLeft = (bySession: 16, byUser: 256)

  /// Begins a call of a procedure, if the session may make it.
  func call(
    _ name: String, _ arrival: Arrival, as text: FragmentsText?, checksum: UInt32,
    on subscription: Subscription
  ) {
    let (sync, session, host) = (arrival.sync, arrival.session, subscription.host)
    let submitter = submitter(of: arrival, to: subscription)
    guard subscription.isLive, !host.hasEnded else { return }
    if hasLeftTooManyCalls(session.info, in: host) {
      return answer(sync, to: session, rejecting: .tooManyCalls)
    }
    let id = submitter.author.map {
      ProcedureRequest.Call.identity(
        of: sync, by: $0.client, number: $0.number, in: host.content.name)
    }
    let request = ProcedureRequest(
      .init(
        id: id ?? hooks.makeCallID(), name: name, changes: sync.fragments,
        arguments: sync.arguments),
      of: session.info, in: host.content, deadline: now + configuration.procedureTime
    ) { [weak self, weak host] request, body in
      guard let self, let host else { throw CancellationError() }
      try commit(request, in: host, body)
    }
    let call = RunningCall(
      request, sync, checksum: checksum, submitter, subscription)
    host.undecided[call.sender] = call
    if let error = objection(to: sync, as: text, from: session, in: host) {
      return fail(call, in: host, error)
    }
    guard let procedure = hooks.procedure(name) else {
      return fail(call, in: host, .couldNotApplySync(reason: "there is no procedure \(name)"))
    }
    if let error = objection(to: call, of: procedure, in: host) {
      return fail(call, in: host, error)
    }
    procedure.run(request)
  }

  /// Returns the error with which a call cannot be one of a procedure, as the scope is now; nil if it can.
  private func objection(
    to call: RunningCall, of procedure: ServedProcedure, in host: ScopeHost
  ) -> WireError? {
    let reason = procedure.objection(to: call.sync.arguments) {
      host.changes(of: call.sync.fragments, asOperations: call.submitter.usesOperations)
    }
    return reason.map { .couldNotApplySync(reason: $0) }
  }

  /// Returns true if no further call is begun for a session.
  private func hasLeftTooManyCalls(_ session: SessionInfo, in host: ScopeHost) -> Bool {
    let left = host.undecided.left { $0.isOfSameUser(as: session) }
    return left.count >= Self.mostLeft.byUser
      || left.reduce(0) { $0 + $1.roughSize } >= configuration.keptLimit.bytes
      || left.count { $0.origin.token == session.token } >= Self.mostLeft.bySession
  }

  /// Makes the change set of a procedure, and decides its call.
  private func commit(
    _ request: ProcedureRequest, in host: ScopeHost, _ body: (ModelObject) throws -> JSONValue
  ) throws {
    guard host.content.canModify else { throw ScopeHost.CommitWithinChanges() }
    // The server's own changes come first in the order. Those who are told of them may end the call.
    host.content.seal()
    guard let call = request.call as? RunningCall, call.isOpen else { throw CancellationError() }
    request.rejections = nil
    if call.isReadOnly || call.session?.subscriptions.access.isReadOnly(host) == true {
      throw WireError.readOnly
    }
    var submitter = call.currentSubmitter
    submitter.origin.date = submitter.origin.date ?? hooks.date()
    let changes = call.sync.arguments == nil ? call.sync.fragments : nil
    if changes != nil {
      // Others may have filled the scope since the call has begun.
      let bytes = call.sync.fragments.roughSize
      if let limit = limit(exceededBy: call.sync, of: bytes, in: host) { throw reached(limit) }
      submitter.room = room(in: host)
      // A change may have become another one: what the client adds is there by now, or its counter is higher.
      if call.isOutdated(at: host.sequence), let procedure = hooks.procedure(request.name) {
        if let error = objection(to: call, of: procedure, in: host) { throw error }
        call.meetsConstraints(at: host.sequence)
      }
    }
    try turn {
      let result = try host.records.step {
        var result: ScopeHost.Result
        do {
          result = try host.commit(changes, of: call.sync.fragments.count, by: submitter) { root in
            let output = try body(root)
            // A rule or the procedure itself may have taken the client's rights away.
            guard call.isOpen else { throw CancellationError() }
            return output
          }
        } catch let error as ScopeHost.RejectedChanges {
          request.rejections = error.replies
          report(error.problems, from: call.session, in: host)
          if let limit = error.exceeded { hooks.limitReached(limit) }
          throw error.replies.firstError ?? .rejected("The client's changes are rejected")
        }
        // An observer of the change set has taken the scope away: it is in no log.
        if host.hasEnded { throw CancellationError() }
        if call.sync.arguments == nil { result.outcome = nil }
        keepDecision(on: call, in: host, result)
        return result
      }
      if let item = result.item { broadcast(item, of: host, except: nil) }
      for (item, set) in result.behind { host.onLocalChanges?(item, set) }
      finish(call, in: host, result, isCancelled: false)
    }
  }

  /// Ends a decided call, answers it, and goes on with what has waited behind it.
  func finish(
    _ call: RunningCall, in host: ScopeHost, _ result: ScopeHost.Result, isCancelled: Bool
  ) {
    if host.undecided[call.sender] === call { host.undecided[call.sender] = nil }
    call.request.end(isCancelled: isCancelled)
    answer(call, result)
  }

  func keepDecision(
    on call: RunningCall, in host: ScopeHost, _ result: ScopeHost.Result
  ) {
    let decision = call.submitter.author.map {
      ScopeRecord.Decision(
        client: $0.client, number: $0.number, checksum: call.checksum,
        fragmentReplies: result.keptReplies, outcome: result.outcome)
    }
    host.keep(result.item, result.set, isRemote: true, decision)
    call.subscription.map(noteUnstored)
    trimClients(of: host)
    report(result.problems, from: call.session, in: host)
  }

  /// Does what is done in one turn, and sends what it leads to.
  func turn<Failure>(_ action: () throws(Failure) -> Void) throws(Failure) {
    if isHandling { return try action() }
    isHandling = true
    defer {
      isHandling = false
      flush()
    }
    try action()
  }
}

extension ScopeHost {
  /// Returns fragments as constraints judge them: with the values that the properties have which they change, and with the
  /// classes of the models, whatever their client says. An addition of a model that the scope has is the change that it
  /// makes.
  ///
  /// - Parameter asOperations: true for a client that sends operations, and says what it knew of a model that it adds again.
  func changes(of fragments: [SyncFragment], asOperations: Bool) -> ChangeSet {
    var known: [PropertyKey: JSONValue] = [:]
    var fragments = fragments.compactMap { fragment in
      guard fragment.kind == .add, let model = content.sharedModel(fragment.uuid) else {
        return fragment
      }
      var change = fragment
      if asOperations {
        nameKnownEntries(in: &change, model.classSchema, known: fragment.bases)
        change = addedAgain(change, model, known: fragment.bases)
      }
      return leavingOut(&known, from: change, of: model)
    }
    var values: [UUID: JSONObject] = [:]
    var added: [UUID: String] = [:]
    for fragment in fragments where fragment.kind == .add {
      added[fragment.uuid] = fragment.className
    }
    for at in fragments.indices where fragments[at].kind == .change {
      let fragment = fragments[at]
      guard let model = content.sharedModel(fragment.uuid) else {
        let name = added[fragment.uuid] ?? content.unknownModel(fragment.uuid)?.className
        if let name { fragments[at].className = name }
        continue
      }
      if model.wireClassName != fragment.className {
        fragments[at].className = model.wireClassName
      }
      for key in fragment.properties.map(\.key) + fragment.operations.map(\.key) {
        guard let property = model.classSchema[wireName: key],
          values[fragment.uuid]?[key] == nil
        else { continue }
        values[fragment.uuid, default: [:]][key] = model.currentJSON(of: property)
      }
    }
    return ChangeSet(fragments: fragments, bases: values)
  }

  /// Returns a change without the values that the model has already; nil if nothing is left.
  ///
  /// - Parameter known: the values of models that were read.
  private func leavingOut(
    _ known: inout [PropertyKey: JSONValue], from change: SyncFragment, of model: any HostedModel
  ) -> SyncFragment? {
    var result = change
    (result.kind, result.className, result.bases) = (.change, model.wireClassName, [:])
    func current(_ key: String, _ property: PropertySchema) -> JSONValue {
      let name = PropertyKey(uuid: change.uuid, name: key)
      if let value = known[name] { return value }
      let value = model.currentJSON(of: property)
      known[name] = value
      return value
    }
    for (key, value) in change.properties {
      guard let property = model.classSchema[wireName: key] else { continue }
      if property.areSame(value, current(key, property)) { result.properties[key] = nil }
    }
    for entry in change.operations {
      guard let property = model.classSchema[wireName: entry.key], property.isCollection else {
        continue
      }
      let held = Set(FragmentValidator.uuids(in: current(entry.key, property)))
      let new = entry.operations.filter { $0.model.map { !held.contains($0) } ?? true }
      result.operations[entry.key] = new
    }
    return result.properties.isEmpty && result.operations.isEmpty ? nil : result
  }
}

extension SessionInfo {
  /// Returns true if another session is of the same principal or, without one, from the same address.
  fileprivate func isOfSameUser(as other: SessionInfo) -> Bool {
    if principal != nil || other.principal != nil { return principal?.id == other.principal?.id }
    guard let addressGroup else { return token == other.token }
    return addressGroup == other.addressGroup
  }
}
