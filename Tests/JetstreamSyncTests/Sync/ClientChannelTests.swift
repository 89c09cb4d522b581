import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A client whose server has a scope in another channel than channel 0.
@Suite("Channels of a client's session")
struct ClientChannelTests {
  private let server = ScriptedServer()
  private let position = ScopePosition(epoch: "one", sequence: 7)

  private func moved(_ index: Int, to channel: Int, answering fetch: Int = 1) -> Message {
    .scopeFetchReply(
      ScopeFetchReply(index: index, replyTo: fetch, answer: .moved(channel: channel)))
  }

  private func granted(_ index: Int, answering fetch: Int = 1) -> Message {
    .scopeFetchReply(
      ScopeFetchReply(
        index: index, replyTo: fetch, scopeIndex: 7, standing: ScopeStanding(position: position)))
  }

  private func connect() {
    server.connect()
    server.open()
    server.fetch()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    _ = server.takeFrames()
  }

  /// Connects, and has the scope in channel 3.
  private func join() {
    connect()
    server.receive(moved(1, to: 3))
    server.receive(granted(1), server.state(2, at: 7), channel: 3)
    _ = server.takeFrames()
  }

  @Test("A scope is asked for in the channel that the server names, with that channel's numbers")
  func move() {
    connect()
    server.receive(moved(1, to: 3))
    let fetch = #"{"channel":3,"messages":[{"type":"ScopeFetch","index":1,"name":"Canvas""#
    let frames = server.takeFrames()
    #expect(frames.count == 1 && frames.first?.hasPrefix(fetch) == true, "\(frames)")
    #expect(server.fetched.isEmpty)
    server.receive(granted(1), server.state(2, at: 7), channel: 3)
    #expect(server.fetched.count == 1)
    server.canvas.name = "new"
    server.scope.flush()
    let set = #"{"channel":3,"messages":[{"type":"ScopeSync","index":2,"scopeIndex":7,"#
    let sent = server.takeFrames()
    #expect(sent.count == 1 && sent.first?.hasPrefix(set) == true, "\(sent)")
  }

  @Test("Each channel is acknowledged on its own")
  func acknowledge() {
    join()
    server.advance(by: .seconds(12))
    let seen = #""seen":[{"scopeIndex":7,"sequence":7}]"#
    #expect(
      server.takeFrames() == [
        #"{"type":"Ping","index":0,"ack":1,"resendMissing":false,"sent":1}"#,
        #"{"channel":3,"messages":[{"type":"Ping","index":0,"ack":2,"resendMissing":false,"sent":1,\#(seen)}]}"#,
      ])
  }

  @Test("A new connection resumes each channel, and nothing new is sent before all have answered")
  func resume() {
    join()
    server.close()
    server.advance(by: .seconds(1))
    server.open()
    let seen = #""seen":[{"scopeIndex":7,"sequence":7}]"#
    #expect(
      server.takeFrames() == [
        #"{"type":"Ping","index":0,"ack":1,"resendMissing":true}"#,
        #"{"channel":3,"messages":[{"type":"Ping","index":0,"ack":2,"resendMissing":true,\#(seen)}]}"#,
      ])
    server.canvas.name = "offline"
    server.scope.flush()
    server.receive(.ping(Ping(ack: 1, resendMissing: true)))
    #expect(server.takeFrames().isEmpty && server.engine.status != .online)
    server.receive(.ping(Ping(ack: 1, resendMissing: true)), channel: 3)
    #expect(server.engine.status == .online)
    #expect(server.takeFrames().count == 1)
  }

  @Test("A gap in one channel is one, whatever has arrived in another")
  func gap() {
    join()
    server.receive(.ping(Ping(ack: 1, sent: 2)), channel: 3)
    #expect(server.engine.status == .online)
    server.receive(.ping(Ping(ack: 1, sent: 2)))
    #expect(server.diagnostics.last?.contains("messages up to 2 are missing") == true)
  }

  @Test("A session that is lost is lost in all channels, and the next one asks in channel 0")
  func lost() {
    join()
    server.close(4097)
    server.advance(by: .seconds(1))
    server.open()
    _ = server.takeFrames()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "next", protocol: 2)))
    let frames = server.takeFrames()
    #expect(
      frames.count == 1 && frames.first?.hasPrefix(#"{"type":"ScopeFetch","index":1,"#) == true)
    server.receive(granted(1), channel: 3)
    #expect(
      server.diagnostics.last?
        .hasSuffix("skipped a frame of channel 3, which the session does not have") == true)
  }

  @Test("A server that sends the client in a circle is refused", arguments: [0, 3])
  func circle(channel: Int) {
    connect()
    if channel > 0 { server.receive(moved(1, to: channel)) }
    server.receive(moved(1, to: channel), channel: channel)
    guard case .failure(let error)? = server.fetched.first else {
      Issue.record("The fetch goes on: \(server.takeFrames())")
      return
    }
    #expect("\(error)".contains("from channel \(channel) to \(channel)"), "\(error)")
  }

  private func removed(_ index: Int) -> Message {
    let error = WireError.notNow("It moves", retryAfter: .seconds(5))
    return .scopeLeave(ScopeLeave(index: index, scopeIndex: 7, error: error))
  }

  @Test(
    "A scope that is granted once more, after it was removed, is used in the channel of the grant")
  func grantedAgain() {
    join()
    server.engine.sync(server.scope, now: server.now) { _ in }
    #expect(server.takeFrames().count == 1)
    let standing = ScopeStanding(position: position)
    let reply = ScopeFetchReply(index: 4, replyTo: 2, scopeIndex: 9, standing: standing)
    server.receive(removed(3), channel: 3)
    server.receive(.scopeFetchReply(reply), server.state(5, at: 9), channel: 3)
    server.canvas.name = "new"
    server.scope.flush()
    let sent = server.takeFrames()
    #expect(
      sent.contains { $0.hasPrefix(#"{"channel":3,"#) && $0.contains(#""scopeIndex":9"#) },
      "\(sent)")
  }

  @Test("A scope that is not where it was any more is asked for in channel 0 again")
  func refusedThere() {
    join()
    server.receive(removed(3), channel: 3)
    server.advance(by: .seconds(6))
    #expect(server.takeFrames().last?.hasPrefix(#"{"type":"ScopeFetch","index":2"#) == true)
    server.receive(moved(2, to: 3, answering: 2))
    #expect(
      server.takeFrames().last?.hasPrefix(#"{"channel":3,"messages":[{"type":"ScopeF"#) == true)
    // It was removed once more meanwhile, and is in another channel.
    let error = WireError.rejected("There is no scope 'Canvas'")
    server.receive(
      .scopeFetchReply(ScopeFetchReply(index: 4, replyTo: 2, error: error)), channel: 3)
    server.advance(by: .seconds(9))
    #expect(
      server.takeFrames().contains { $0.hasPrefix(#"{"type":"ScopeFetch","index":3"#) })
  }

  @Test("A scope that is left while another channel resumes is left at the server")
  func leaveWhileResuming() {
    join()
    server.close()
    server.advance(by: .seconds(1))
    server.open()
    server.receive(.ping(Ping(ack: 1, resendMissing: true)), channel: 3)
    _ = server.takeFrames()
    _ = server.engine.leave(server.scope, now: server.now)
    server.receive(.ping(Ping(ack: 1, resendMissing: true)))
    #expect(server.engine.status == .online)
    let sent = server.takeFrames()
    #expect(sent.contains { $0.contains("ScopeLeave") }, "\(sent)")
  }

  @Test("A server cannot make a client use ever more channels")
  func many() {
    connect()
    for round in 1...300 {
      server.receive(moved(round, to: round, answering: round))
      server.receive(granted(1), server.state(2, at: 7), removed(3), channel: round)
      server.advance(by: .seconds(6))
      server.receive(.ping(Ping(ack: 1)))
    }
    #expect(
      server.diagnostics.contains {
        $0.contains("The server sends the client from channel 0 to 256 for the scope")
      })
    _ = server.takeFrames()
    server.advance(by: .seconds(12))
    #expect(server.takeFrames().count <= 257)
  }
}
