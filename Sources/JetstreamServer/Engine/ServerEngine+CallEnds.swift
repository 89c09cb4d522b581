import Foundation
import Jetstream

/// The ends of calls that make no change set.
extension ServerEngine {
  /// Ends a request whose handler has returned. Without a commit, its call has failed.
  package func ended(_ request: ProcedureRequest) {
    // Behind the reports: the app may drop the call when it is told.
    defer { noteEnd(of: request) }
    guard request.isOpen else { return }
    report("its handler has returned without a commit", about: request)
    fail(request, .failed(request.name))
  }

  /// Ends a request whose handler has thrown an error. Clients are told of errors of the type `Failure`, and of those that are
  /// meant for them; the operator is told of others.
  package func ended<Failure: Error & Encodable>(
    _ request: ProcedureRequest, after error: any Error, _: Failure.Type
  ) {
    defer { noteEnd(of: request) }
    guard request.isOpen else {
      if error is CancellationError { return }
      let when = request.ending == .committed ? "behind its commit" : "after it was cancelled"
      return report("thrown \(when): \(error)", about: request)
    }
    // The replies of a commit that was rejected belong to its error: a handler may go on, and throw another one.
    if let rejections = request.rejections, (error as? WireError) != rejections.firstError {
      request.rejections = nil
    }
    switch error {
    case let failure as Failure:
      let sentence = (failure as? any LocalizedError)?.errorDescription ?? "\(failure)"
      fail(request, .rejected(sentence), thrown: try? JSONValue(encoding: failure))
    case let error as WireError: fail(request, error)
    default:
      report("\(error)", about: request)
      fail(request, .failed(request.name))
    }
  }

  private func noteEnd(of request: ProcedureRequest) {
    guard let call = request.call as? RunningCall else { return }
    call.host?.undecided.noteEnded(call)
  }

  /// Fails the calls that take too long.
  func advanceCalls() {
    for host in work.undecidedHosts.all {
      // The end of one call runs code of the app, which may end another one.
      for call in host.undecided.lateCalls(at: now) where call.isOpen {
        report("it has taken too long", about: call.request)
        // The app may have ended the session when it was told: the client calls again then, and nothing is decided.
        guard call.isOpen else { continue }
        call.request.rejections = nil
        fail(call, in: host, .rejected("Procedure \(call.request.name) has taken too long"))
      }
    }
  }

  private func fail(_ request: ProcedureRequest, _ error: WireError, thrown: JSONValue? = nil) {
    guard let call = request.call as? RunningCall, call.isOpen, let host = call.host else { return }
    fail(call, in: host, error, thrown: thrown)
  }

  /// Decides that a call has failed.
  ///
  /// - Parameter thrown: the error as JSON, for clients that know its type.
  func fail(
    _ call: RunningCall, in host: ScopeHost, _ error: WireError, thrown: JSONValue? = nil
  ) {
    let fragments = call.sync.fragments
    // The error may be as long as what the client has sent, and is not repeated for each fragment.
    let replies = fragments.indices.map { FragmentReply(error: $0 == 0 ? error : nil) }
    let result = ScopeOrder.Result(
      replies: call.request.rejections ?? ScopeOrder.rejectingAll(replies))
    if call.sync.arguments != nil {
      result.outcome = .failure(error, thrown: thrown)
    } else {
      host.order.noteRejectedAdditions(among: fragments, error)
    }
    if !call.submitter.usesOperations {
      host.order.correct(result, rejecting: fragments, call.currentSubmitter)
    }
    turn {
      keepDecision(on: call, in: host, result)
      finish(call, in: host, result, as: .failed)
    }
  }

  private func report(_ text: String, about request: ProcedureRequest) {
    hooks.report(
      Diagnostic(
        .error, .scope, session: request.session.number, scope: request.scope,
        "procedure \(request.name): \(text)"))
  }
}

extension [FragmentReply] {
  /// The first error that is not the consequence of another one; nil if there is none.
  var firstError: WireError? { first { $0.error != nil && $0.causedBy == nil }?.error }
}

extension WireError {
  fileprivate static func failed(_ procedure: String) -> WireError {
    .rejected("Procedure \(procedure) has failed")
  }
}
