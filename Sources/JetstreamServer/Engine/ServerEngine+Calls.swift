import Foundation
import Jetstream

/// Calls of procedures.
///
/// A call is begun when its turn comes among the client's change sets, and decided once, when it commits or fails. Until then,
/// what the client sends behind it waits; see ``UndecidedSets``.
extension ServerEngine {
  /// The largest number of undecided change sets in a scope that one session has left, each under another client's identity,
  /// and that all sessions of a user have left or ended with. Calls count that were dropped and whose handlers go on. A
  /// session with more begins no call.
  private static let mostLeft = (bySession: 16, byUser: 256)

  /// Begins a call of a procedure, if the session may make it.
  func call(
    _ name: String, _ arrival: Arrival, as text: FragmentsText?, checksum: UInt32,
    on subscription: Subscription
  ) {
    let (sync, session, host) = (arrival.sync, arrival.session, subscription.host)
    let submitter = submitter(of: arrival, to: subscription)
    guard subscription.isLive, !host.hasEnded else { return }
    let id = submitter.author.map {
      ProcedureRequest.Call.identity(
        of: sync, by: $0.client, number: $0.number, in: host.content)
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
    if hasLeftTooManyCalls(session.info, in: host) { return fail(call, in: host, .tooManyCalls) }
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
      host.order.changes(of: call.sync.fragments, asOperations: call.submitter.usesOperations)
    }
    return reason.map { .couldNotApplySync(reason: $0) }
  }

  /// Returns true if no further call is begun for a session.
  private func hasLeftTooManyCalls(_ session: SessionInfo, in host: ScopeHost) -> Bool {
    let left =
      host.undecided.left { $0.isOfSameUser(as: session) }
      + host.undecided.dropped { $0.isOfSameUser(as: session) }
    return left.count >= Self.mostLeft.byUser
      || left.reduce(0) { $0 + $1.roughSize } >= configuration.keptLimit.bytes
      || left.count { $0.origin.token == session.token } >= Self.mostLeft.bySession
  }

  /// Makes the change set of a procedure, and decides its call.
  private func commit(
    _ request: ProcedureRequest, in host: ScopeHost, _ body: (ModelObject) throws -> JSONValue
  ) throws {
    guard host.content.canModify else { throw ScopeOrder.CommitWithinChanges() }
    // The server's own changes come first in the order. Those who are told of them may end the call.
    host.content.seal()
    guard let call = request.call as? RunningCall, call.isOpen else { throw CancellationError() }
    request.rejections = nil
    if call.isReadOnly || call.session?.subscriptions.access.isReadOnly(host) == true {
      throw WireError.readOnly
    }
    var submitter = call.currentSubmitter
    submitter.origin.date = submitter.origin.date ?? dateOfTurn()
    let changes = call.sync.arguments == nil ? call.sync.fragments : nil
    if changes != nil {
      // Others may have filled the scope since the call has begun.
      let bytes = call.sync.fragments.roughSize
      if let limit = limit(exceededBy: call.sync, of: bytes, from: call.session, in: host) {
        throw reached(limit)
      }
      submitter.room = room(in: host)
      // A change may have become another one: what the client adds is there by now, or its counter is higher.
      if call.isOutdated(at: host.sequence), let procedure = hooks.procedure(request.name) {
        if let error = objection(to: call, of: procedure, in: host) { throw error }
        call.meetsConstraints(at: host.sequence)
      }
    }
    try turn {
      let result = try host.order.records.step {
        let result: ScopeOrder.Result
        var effort = 0
        defer { if let session = call.session { note(effort: effort, of: session) } }
        do {
          result = try host.order.commit(
            changes, of: call.sync.fragments.count, by: submitter, effort: &effort
          ) { root in
            let output = try body(root)
            // A rule or the procedure itself may have taken the client's rights away.
            guard call.isOpen else { throw CancellationError() }
            return output
          }
        } catch let error as ScopeOrder.RejectedChanges {
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
      for (item, set) in result.behind { host.order.onLocalChanges?(item, set) }
      finish(call, in: host, result, as: .committed)
    }
  }

  /// Ends a decided call, answers it, and goes on with what has waited behind it.
  func finish(
    _ call: RunningCall, in host: ScopeHost, _ result: ScopeOrder.Result,
    as end: ProcedureRequest.End
  ) {
    if host.undecided[call.sender] === call { host.undecided[call.sender] = nil }
    // An observer of the change set may have had it dropped.
    host.undecided.noteEnded(call)
    call.request.end(as: end)
    answer(call, result)
  }

  func keepDecision(
    on call: RunningCall, in host: ScopeHost, _ result: ScopeOrder.Result
  ) {
    let decision = call.submitter.author.map {
      ScopeRecord.Decision(
        client: $0.client, number: $0.number, checksum: call.checksum,
        fragmentReplies: result.keptReplies, outcome: result.outcome)
    }
    host.order.keep(result.item, result.set, isRemote: true, decision)
    if let session = call.session { noteUnstored(session, host) }
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

extension SessionInfo {
  /// Returns true if another session is of the same principal or, without one, from the same address.
  fileprivate func isOfSameUser(as other: SessionInfo) -> Bool {
    if principal != nil || other.principal != nil { return principal?.id == other.principal?.id }
    guard let addressGroup else { return token == other.token }
    return addressGroup == other.addressGroup
  }
}
