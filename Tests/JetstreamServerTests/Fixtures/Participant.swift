import Jetstream
import JetstreamServer
import Pacing
import Testing

/// A client with its own replica of the drawing.
@MainActor
final class Participant {
  let canvas = Canvas()
  let scope: Scope
  let client: Client

  convenience init(port: UInt16) async throws {
    try await self.init(
      Client(
        url: "ws://127.0.0.1:\(port)",
        backoff: Backoff(first: .milliseconds(1), limit: .milliseconds(20))))
  }

  init(_ client: Client) async throws {
    self.client = client
    scope = Scope(name: "Canvas", root: canvas)
    try await client.connect()
    try await client.fetch(scope)
  }

  /// Waits, woken up by the model's observers, until `condition` holds.
  func observe<Model: ModelObject>(_ model: Model, until condition: @escaping (Model) -> Bool) async
  {
    if condition(model) { return }
    await recordOverdue {
      try await awaitCall { done in
        model.observeTreeChange(self) { _ in if condition(model) { done(()) } }
      }
    }
    model.removeObservers(self)
  }

  /// Waits until the server has decided everything.
  func settle() async {
    scope.flush()
    await client.settle()
  }
}

extension Client {
  /// Waits until nothing is pending.
  func settle() async {
    if pendingCount == 0 { return }
    await recordOverdue {
      try await awaitCall { done in
        onSyncStateChange.listen(self) { me, _ in if me.pendingCount == 0 { done(()) } }
      }
    }
  }
}

/// Records what `body` throws, for tests to which it is enough that they fail.
func recordOverdue(
  isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Void
) async {
  do { try await body() } catch { Issue.record(error) }
}
