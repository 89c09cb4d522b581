import Foundation
import Jetstream
import Testing

/// After a restart a server tells at once how it has decided all sets of a client, with its full state.
@Suite("Decisions that come with a full state")
struct DecisionOrderTests {
  private let server = ScriptedServer()
  private let first = ScopePosition(epoch: "one", sequence: 1)

  /// Two sets write the name; the server has taken both, and answers with a full state in which it is `name`.
  private func decideBoth(name: JSONValue) {
    server.joinAtPosition(first)
    for name in ["older", "newer"] {
      server.canvas.name = name
      server.scope.flush()
    }
    server.loseSession()
    let fetch = server.takeSent().last { if case .scopeFetch = $0 { true } else { false } }
    var standing = ScopeStanding(
      position: ScopePosition(epoch: "one", sequence: 40), decided: 2,
      decisions: [
        .init(number: 1, fragmentReplies: [FragmentReply()], sequence: 2),
        .init(number: 2, fragmentReplies: [FragmentReply()], sequence: 3),
      ])
    standing.resumes = false
    let root = server.scope.root!.uuid
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(index: 1, replyTo: fetch?.index ?? 0, scopeIndex: 0, standing: standing)),
      .scopeState(
        ScopeState(
          index: 2, scopeIndex: 0, rootUUID: root,
          fragments: [
            SyncFragment(.change, uuid: root, className: "Canvas", properties: ["name": name])
          ])))
  }

  @Test("The last of two writes is the one that others have overwritten")
  func overwritten() {
    decideBoth(name: "theirs")
    #expect(server.scope.conflicts.items.map(\.mine) == [.value("newer")])
    #expect(server.scope.conflicts.items.first?.theirs == "theirs")
  }

  @Test("A state that shows the last of two writes has overwritten neither")
  func kept() {
    decideBoth(name: "newer")
    #expect(server.scope.conflicts.isEmpty && server.engine.pendingCount == 0)
  }

  /// Returns a grant of the scope after all `sequence` change sets. Of the client's own, the first is decided, at sequence 20.
  private func grant(
    _ index: Int, to fetch: Message?, at sequence: Int, resumes: Bool
  ) -> Message {
    let standing = ScopeStanding(
      position: ScopePosition(epoch: "one", sequence: sequence), resumes: resumes, decided: 1,
      decisions: [.init(number: 1, fragmentReplies: [FragmentReply()], sequence: 20)])
    return .scopeFetchReply(
      ScopeFetchReply(
        index: index, replyTo: fetch?.index ?? 0, scopeIndex: 0, standing: standing))
  }

  /// Returns the client's last request for the scope since the last call.
  private func takeFetch() -> Message? {
    server.takeSent().last { if case .scopeFetch = $0 { true } else { false } }
  }

  /// Returns a full state with this name.
  private func state(_ index: Int, name: JSONValue) -> Message {
    let root = server.scope.root!.uuid
    return .scopeState(
      ScopeState(
        index: index, scopeIndex: 0, rootUUID: root,
        fragments: [
          SyncFragment(.change, uuid: root, className: "Canvas", properties: ["name": name])
        ]))
  }

  /// Returns the server's reply to a change set that it has already received through an earlier connection.
  private func replyAgain(_ index: Int, to sync: ScopeSync) -> Message {
    var reply = ScopeSyncReply(
      replyTo: sync.index, fragmentReplies: [FragmentReply()], effective: [])
    reply.index = index
    return .scopeSyncReply(reply)
  }

  @Test(
    "The later of two own writes is the last one, although its decision is learned first",
    arguments: ["newer", "theirs"])
  func laterDecidedFirst(name: String) throws {
    server.joinAtPosition(first)
    server.engine.setMode(.pushOnly, of: server.scope, now: server.now)
    for name in ["older", "newer"] {
      server.canvas.name = name
      server.scope.flush()
    }
    server.loseSession()
    // The first is decided, but the client does not want to be sent what precedes it. The second is still on its way
    // through the lost connection, and arrives before it is sent again.
    server.receive(grant(1, to: takeFetch(), at: 20, resumes: true))
    let sent = try #require(server.takeSyncs().first)
    #expect(sent.number == 2)
    server.receive(replyAgain(2, to: sent))
    #expect(server.engine.pendingCount == 1)
    server.engine.setMode(.realtime, of: server.scope, now: server.now)
    server.receive(
      grant(3, to: takeFetch(), at: 40, resumes: false), state(4, name: .string(name)))
    #expect(server.engine.pendingCount == 0 && server.canvas.name == name)
    let mine = server.scope.conflicts.items.map(\.mine)
    #expect(mine == (name == "newer" ? [] : [.value("newer")]))
  }

  @Test("A state that shows a later own write at a known sequence has overwritten no earlier one")
  func laterPlaced() throws {
    server.joinAtPosition(first)
    server.canvas.name = "older"
    server.scope.flush()
    let older = try #require(server.takeSyncs().first)
    // An earlier connection has brought the change set, and the server has sent it like another client's.
    var sync = ScopeSync(index: 0, scopeIndex: 0, fragments: older.fragments)
    sync.sequence = 2
    server.receive(.scopeSync(sync), replyAgain(3, to: older))
    server.canvas.name = "newer"
    server.scope.flush()
    let newer = try #require(server.takeSyncs().first)
    let reply = ScopeSyncReply(
      index: 4, replyTo: newer.index, fragmentReplies: [FragmentReply()], sequence: 3)
    server.receive(.scopeSyncReply(reply))
    #expect(server.engine.pendingCount == 0 && server.canvas.name == "newer")
    server.loseSession()
    server.receive(
      grant(1, to: takeFetch(), at: 40, resumes: false), state(2, name: "newer"))
    #expect(server.canvas.name == "newer" && server.scope.conflicts.isEmpty)
  }

  @Test("A set whose decision was lost with a frame is not taken as accepted")
  func lostDecision() throws {
    server.joinAtPosition(first)
    server.canvas.name = "mine"
    server.scope.flush()
    _ = server.takeSent()
    // The server has left out the name, and the reply that says so is lost.
    var sync = ScopeSync(index: 0, scopeIndex: 0, fragments: [])
    (sync.sequence, sync.number) = (2, 1)
    server.receive(.scopeSync(sync))
    #expect(server.engine.pendingCount == 1 && server.canvas.name == "mine")
    server.advance(by: .seconds(1))
    let fetch = try #require(
      server.takeSent().lazy.compactMap {
        if case .scopeFetch(let fetch) = $0 { fetch } else { nil }
      }.first)
    #expect(fetch.since?.sequence == 1)
    let refused = FragmentReply(error: .rejected("No"))
    var standing = ScopeStanding(
      position: ScopePosition(epoch: "one", sequence: 2), decided: 1,
      decisions: [.init(number: 1, fragmentReplies: [refused], sequence: 2)])
    standing.resumes = true
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(index: 3, replyTo: fetch.index, scopeIndex: 0, standing: standing)),
      .scopeSync(sync))
    #expect(server.engine.pendingCount == 0 && server.canvas.name == nil)
    #expect(server.rejections == ["Canvas: No"])
  }

  @Test("A held reply behind its change set does not have later change sets applied twice")
  func lateReply() throws {
    server.joinAtPosition(first)
    server.canvas.name = "mine"
    server.scope.flush()
    let index = try #require(server.takeSyncs().last).index
    server.scope.pauseIncoming()
    let root = server.scope.root!.uuid
    var own = ScopeSync(
      index: 0, scopeIndex: 0,
      fragments: [
        SyncFragment(.change, uuid: root, className: "Canvas", properties: ["name": "mine"])
      ])
    (own.sequence, own.number) = (2, 1)
    var other = ScopeSync(
      index: 0, scopeIndex: 0,
      fragments: [
        SyncFragment(
          .change, uuid: root, className: "Canvas", properties: [:],
          operations: ["likes": [.add(3)]])
      ])
    other.sequence = 3
    // One connection has lost the reply and brought the stream behind it; the next one brings all of it.
    server.receive(.scopeSync(own), .scopeSync(other))
    let reply = ScopeSyncReply(
      index: 3, replyTo: index, fragmentReplies: [FragmentReply()], sequence: 2)
    server.receive(.scopeSyncReply(reply), .scopeSync(own), .scopeSync(other))
    server.scope.resumeIncoming()
    #expect(server.canvas.likes == 3, "the addition counts once")
    #expect(server.canvas.name == "mine" && server.engine.pendingCount == 0)
    #expect(server.rejections.isEmpty)
    server.advance(by: .seconds(11))
    let seen = server.takeSent().compactMap { message -> Int? in
      if case .ping(let ping) = message { ping.seen.last?.sequence } else { nil }
    }
    #expect(seen.last == 3)
  }

  @Test(
    "What the server says to be missing is asked for once the app no longer pauses incoming changes"
  )
  func toldWhilePaused() throws {
    server.joinAtPosition(first)
    server.scope.pauseIncoming()
    var sync = ScopeSync(
      index: 0, scopeIndex: 0,
      fragments: [
        SyncFragment(
          .change, uuid: server.scope.root!.uuid, className: "Canvas", properties: ["likes": 1])
      ])
    sync.sequence = 2
    var ping = Ping(ack: 1)
    ping.told = [Ping.Place(scopeIndex: 0, sequence: 3)]
    server.receive(.scopeSync(sync))
    server.receive(.ping(ping))
    #expect(server.takeSent().allSatisfy { if case .scopeFetch = $0 { false } else { true } })
    server.scope.resumeIncoming()
    server.advance(by: .seconds(1))
    #expect(server.canvas.likes == 1)
    let since = server.takeSent().compactMap {
      if case .scopeFetch(let fetch) = $0 { fetch.since?.sequence } else { nil }
    }
    #expect(since == [2])
  }
}
