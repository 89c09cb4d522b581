import Foundation
import Testing

@testable import Jetstream

@Suite("The timer of a client")
struct ReconnectTimerTests {
  /// A transport that opens no connection: the test stands in for it.
  private struct Silent: Transport {
    func open(headers: [(String, String)]) async throws -> any TransportConnection {
      for await _ in AsyncStream<Never>.makeStream().stream {}
      throw CancellationError()
    }
  }

  private final class Line: TransportConnection {
    func receive() async throws -> [UInt8]? { nil }
    func send(_ frame: [UInt8]) {}
    func close(code: Int, reason: String) {}
    var closeStatus: (code: Int, reason: String)? { nil }
  }

  /// The actor of a client, whose ticker no other test uses.
  private actor Home {
    private let canvas = Canvas()

    private func deliver(_ messages: [Message], to client: Client) {
      let bytes = Message.encodeFrame(messages, asArray: true)
      client.received(
        MessageFrame(bytes, limits: .trusted), size: bytes.count,
        number: client.engine.connection.number)
    }

    func takeIdentityWhenResumed() {
      let client = Client(transport: Silent())
      let scope = Scope(name: "Canvas", root: canvas)
      client.beginConnecting()
      client.opened(Line(), number: client.engine.connection.number)
      client.engine.fetch(scope, params: [:], now: client.ticker.now) { _ in }
      deliver(
        [.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2))], to: client)
      let root = SyncFragment(
        .change, uuid: canvas.uuid, className: "Canvas", properties: [:])
      let standing = ScopeStanding(position: ScopePosition(epoch: "e", sequence: 1))
      deliver(
        [
          .scopeFetchReply(
            ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0, standing: standing)),
          .scopeState(
            ScopeState(index: 2, scopeIndex: 0, rootUUID: root.uuid, fragments: [root])),
        ], to: client)
      scope.pauseIncoming()
      canvas.likes = 1
      scope.flush()
      let reused = FragmentReply(error: .setNumberReused(1))
      deliver(
        [.scopeSyncReply(ScopeSyncReply(index: 3, replyTo: 2, fragmentReplies: [reused]))],
        to: client)
      #expect(client.status == .online && client.pendingCount == 1)
      scope.resumeIncoming()
      #expect(client.status == .waiting && client.pendingCount == 1)
      #expect(client.timer.due == client.engine.nextDeadline)
      client.close()
    }
  }

  @Test("It is set when a scope that resumes has the client reconnect")
  func resumed() async {
    await Home().takeIdentityWhenResumed()
  }
}
