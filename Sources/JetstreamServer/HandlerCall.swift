/// The call of a procedure's handler, in a task of its own.
///
/// The task keeps the call and not the server: a handler that never returns keeps no server alive that the app has let go
/// of.
final class HandlerCall {
  private weak var server: Server?
  private let handler: () async throws -> Void
  /// Takes the error of the handler; nil if it has returned.
  private let ended: (Server, (any Error)?) -> Void

  init(
    of server: Server, _ handler: @escaping () async throws -> Void,
    ended: @escaping (Server, (any Error)?) -> Void
  ) {
    (self.server, self.handler, self.ended) = (server, handler, ended)
  }

  /// Calls the handler.
  func run() async {
    var failure: (any Error)?
    do {
      try await handler()
    } catch {
      failure = error
    }
    guard let server else { return }
    server.runner.handlers[ObjectIdentifier(self)] = nil
    ended(server, failure)
  }
}
