import Foundation
import Jetstream

/// The procedures that a server runs for clients.
extension Server {
  /// Serves a procedure: runs it on the models of the scope in which a client calls it, in the order of all changes.
  ///
  /// ```swift
  /// server.procedure(Sell.self)
  /// ```
  ///
  /// All scopes whose root is of the procedure's class have it; `SessionInfo` and rules play no part in it, since a procedure is
  /// the app's own code. Clients that may not change the scope may not call it. A second procedure with the same name takes
  /// the place of the first.
  public func procedure<P: Procedure>(_: P.Type) {
    serve(P.name, takesArguments: true) { server, request in
      do {
        try request.commit(try request.arguments(of: P.self))
      } catch {
        server.runner.engine.ended(request, after: error, P.Failure.self)
      }
    }
  }

  /// Serves a procedure whose calls `handler` decides. It is called on the server's actor, in a task of its own for each call,
  /// and may wait; the scope goes on meanwhile. See ``ProcedureRequest``, also for a handler that has to take something back
  /// if the call fails.
  ///
  /// ```swift
  /// server.procedure(CheckOut.self) { checkOut, request in
  ///   let role = try await members.role(of: request.session.principal?.id, in: request.scope)
  ///   guard role == .writer else { throw WireError.rejected("Only members can buy") }
  ///   try request.commit(checkOut)
  /// }
  /// ```
  ///
  /// A call fails with the procedure's `Failure` that the handler throws, or with a `WireError`. Any other error is reported,
  /// and the client is told no more than that the procedure has failed; so is a handler that returns without a commit. What it
  /// throws after a commit, or after its call was cancelled, is reported.
  public func procedure<P: Procedure>(
    _: P.Type, handler: @escaping (P, ProcedureRequest) async throws -> Void
  ) {
    serve(P.name, takesArguments: true) { server, request in
      server.run(request, failing: P.Failure.self) {
        try await handler(try request.arguments(of: P.self), request)
      }
    }
  }

  /// Serves a procedure without arguments, which clients call with `Scope.modify(procedure:constraints:message:author:_:)`, also
  /// those of version 1: their changes are the call.
  ///
  /// ```swift
  /// server.procedure("Cart.checkOut", constraints: [Constraint(.change, "Cart", ["isOrdered": .value(true)])]) { request in
  ///   try request.commit { (cart: Cart) in cart.number = numbers.next() }
  /// }
  /// ```
  ///
  /// A commit applies the client's changes, all or none, and then what its closure does, as one change set. Changes of which
  /// one meets none of `constraints` are rejected before the handler is called.
  ///
  /// - Parameters:
  ///   - name: the name, two words with a dot between them.
  ///   - constraints: the requirements of the procedure. Without any, all changes that the rules of the scope permit are.
  ///   - handler: decides about the call. By default it commits the changes of the client.
  public func procedure(
    _ name: String, constraints: [Constraint] = [],
    handler: @escaping (ProcedureRequest) async throws -> Void = {
      try $0.commit { (_: ModelObject) in }
    }
  ) {
    serve(name, takesArguments: false, constraints) { server, request in
      server.run(request, failing: Never.self) { try await handler(request) }
    }
  }

  private func serve(
    _ name: String, takesArguments: Bool, _ constraints: [Constraint] = [],
    _ run: @escaping (Server, ProcedureRequest) -> Void
  ) {
    precondition(
      name.utf8.count { $0 == UInt8(ascii: ".") } == 1,
      "The name of procedure '\(name)' should be two words with a dot between them.")
    runner.procedures[name] = ServedProcedure(
      takesArguments: takesArguments, constraints: constraints
    ) { [weak self] request in
      if let self { run(self, request) }
    }
  }

  /// Calls a handler in a task of its own.
  private func run<Failure: Error & Encodable>(
    _ request: ProcedureRequest, failing: Failure.Type, _ handler: @escaping () async throws -> Void
  ) {
    let call = AppQuestion(handler) { [weak self] outcome in
      guard let self else { return }
      runner.questions.handlerEnded(for: request)
      switch outcome {
      case .success: runner.engine.ended(request)
      case .failure(let error): runner.engine.ended(request, after: error, failing)
      }
    }
    runner.questions.keep(call, for: request)
    let task = call.begin(on: actor)
    request.onCancel = { task.cancel() }
    request.requireHome = { [actor] in
      actor.value?.preconditionIsolated(
        "A request for a procedure was used outside of the server's actor: an async closure with a capture list does not stay "
          + "there unless it is isolated to the actor.")
    }
  }
}
