import Foundation
import Testing

@testable import Jetstream

/// A client that does not apply what others change learns what becomes of its own change sets before it reaches them.
@Suite("Decisions that a client keeps")
struct KeptDecisionTests {
  /// Makes a client that only pushes, and has applied everything up to sequence 1.
  private func pushing() -> ScriptedServer {
    let server = ScriptedServer()
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 1))
    server.engine.setMode(.pushOnly, of: server.scope, now: server.now)
    _ = server.takeSent()
    return server
  }

  /// Changes the name and adds a shape, and returns the message that says so.
  private func edit(_ server: ScriptedServer, _ name: String) throws -> ScopeSync {
    server.scope.modify {
      server.canvas.name = name
      server.canvas.shapes.append(Shape())
    }
    return try #require(server.takeSyncs().last)
  }

  /// Decides a change set at a sequence: rejects its first fragment.
  private func decide(_ server: ScriptedServer, _ sync: ScopeSync, at sequence: Int) {
    let reply = ScopeSyncReply(
      replyTo: sync.index,
      fragmentReplies: sync.fragments.indices.map {
        FragmentReply(error: $0 == 0 ? .rejected("no") : nil)
      }, sequence: sequence)
    server.deliver([.scopeSyncReply(reply)])
  }

  /// Sends the scope's empty state with the grant of another epoch, in which nothing is decided.
  private func loseHistory(_ server: ScriptedServer) throws {
    server.loseSession()
    grant(server, try fetch(server), at: 1, decided: 0, epoch: "other", resumes: false)
    // The client has asked for decisions alone, and asks for the state once it knows.
    let again = try fetch(server)
    let standing = ScopeStanding(position: ScopePosition(epoch: "other", sequence: 1))
    let root = SyncFragment(
      .change, uuid: server.canvas.uuid, className: "Canvas",
      properties: ["name": .null, "shapes": [], "hidden": []])
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(index: 2, replyTo: again.index, scopeIndex: 0, standing: standing)),
      .scopeState(
        ScopeState(index: 3, scopeIndex: 0, rootUUID: root.uuid, fragments: [root])))
  }

  /// The request for the scope that the client has sent last.
  private func fetch(_ server: ScriptedServer) throws -> ScopeFetch {
    try #require(
      server.takeSent().compactMap { if case .scopeFetch(let fetch) = $0 { fetch } else { nil } }
        .last)
  }

  private func grant(
    _ server: ScriptedServer, _ fetch: ScopeFetch, at sequence: Int, decided: Int,
    epoch: String = "e", resumes: Bool = true, isForgotten: Bool = false
  ) {
    var standing = ScopeStanding(
      position: ScopePosition(epoch: epoch, sequence: sequence), resumes: resumes, decided: decided)
    standing.isForgotten = isForgotten
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(index: 1, replyTo: fetch.index, scopeIndex: 0, standing: standing)))
  }

  /// Tells a change set of the stream in the session that was granted last; of this client's own, its number.
  private func tell(_ server: ScriptedServer, _ index: Int, at sequence: Int, number: Int? = nil) {
    let fragment = SyncFragment(
      .change, uuid: server.canvas.uuid, className: "Canvas",
      properties: ["name": .string("\(sequence)")])
    var sync = ScopeSync(index: index, scopeIndex: 0, fragments: [fragment])
    (sync.sequence, sync.number) = (sequence, number)
    server.receive(.scopeSync(sync))
  }

  @Test("They are told to the server, and known in the next session")
  func nextSession() throws {
    let server = pushing()
    decide(server, try edit(server, "one"), at: 3)
    #expect(try edit(server, "two").decided == 1)
    server.loseSession()
    let fetch = try fetch(server)
    #expect(fetch.decided == 1)
    // The server knows nothing more of it than that it is decided.
    grant(server, fetch, at: 3, decided: 1)
    let again = server.takeSyncs()
    #expect(again.map(\.number) == [2] && server.canvas.name == "two")
    #expect(server.engine.state(of: server.scope)?.decidedCount == 1)
    #expect(server.engine.checkInvariants() == [])
    server.engine.setMode(.realtime, of: server.scope, now: server.now)
    let request = try self.fetch(server)
    var standing = ScopeStanding(position: .init(epoch: "e", sequence: 3), resumes: true)
    standing.decided = 1
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(index: 2, replyTo: request.index, scopeIndex: 0, standing: standing)))
    tell(server, 3, at: 2)
    tell(server, 4, at: 3, number: 1)
    #expect(server.engine.pendingCount == 1 && server.rejections.count == 1)
    #expect(server.engine.checkInvariants() == [])
  }

  @Test("One is concluded at its sequence, also if the server does not know whose it is")
  func foreign() throws {
    let server = pushing()
    decide(server, try edit(server, "one"), at: 3)
    server.loseSession()
    grant(server, try fetch(server), at: 3, decided: 0)
    #expect(server.takeSyncs().isEmpty)
    server.engine.setMode(.realtime, of: server.scope, now: server.now)
    let request = try fetch(server)
    let standing = ScopeStanding(position: .init(epoch: "e", sequence: 3), resumes: true)
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(index: 2, replyTo: request.index, scopeIndex: 0, standing: standing)))
    tell(server, 3, at: 2)
    tell(server, 4, at: 3)
    #expect(server.engine.pendingCount == 0 && server.rejections.count == 1)
    #expect(server.takeSyncs().isEmpty && server.canvas.name == "3")
  }

  @Test("When the scope is gone, what they reject is among the conflicts")
  func gone() throws {
    let server = pushing()
    decide(server, try edit(server, "one"), at: 3)
    server.scope.modify { server.canvas.likes = 1 }
    #expect(server.scope.conflicts.isEmpty)
    server.deliver([.scopeLeave(ScopeLeave(scopeIndex: 0, error: .gone("no more")))])
    #expect(server.engine.scopes.isEmpty)
    let items = server.scope.conflicts.items
    #expect(items.map(\.property) == [nil, "likes"])
    #expect(items.map(\.reason) == [.rejected(.rejected("no")), .rejected(.gone("no more"))])
  }

  @Test("What an older copy of the server has lost is sent again")
  func olderCopy() throws {
    let server = pushing()
    decide(server, try edit(server, "one"), at: 3)
    decide(server, try edit(server, "two"), at: 4)
    server.loseSession()
    grant(server, try fetch(server), at: 3, decided: 1)
    #expect(server.takeSyncs().map(\.number) == [2])
    #expect(server.engine.checkInvariants() == [])
  }

  @Test("A full state contains them, also when the server has forgotten the client")
  func state() throws {
    let server = pushing()
    decide(server, try edit(server, "one"), at: 3)
    server.loseSession()
    grant(server, try fetch(server), at: 3, decided: 0, resumes: false, isForgotten: true)
    let root = SyncFragment(
      .change, uuid: server.canvas.uuid, className: "Canvas",
      properties: ["name": "one", "likes": 1])
    server.receive(
      .scopeState(
        ScopeState(index: 2, scopeIndex: 0, rootUUID: server.canvas.uuid, fragments: [root])))
    #expect(server.engine.pendingCount == 0 && server.historyLosses == 0)
    #expect(server.takeSyncs().isEmpty && server.canvas.likes == 1)
  }

  @Test("A server that has lost its history decides them again")
  func lost() throws {
    let server = pushing()
    decide(server, try edit(server, "one"), at: 3)
    try loseHistory(server)
    let again = server.takeSyncs()
    #expect(again.map(\.number) == [1] && again.map(\.decided) == [0])
    #expect(server.historyLosses == 1 && server.engine.pendingCount == 1)
  }

  @Test("A server of version 1 is sent them again")
  func olderServer() throws {
    let server = pushing()
    decide(server, try edit(server, "one"), at: 3)
    let root = SyncFragment(
      .change, uuid: server.canvas.uuid, className: "Canvas", properties: ["name": .null])
    server.replaceSession([root])
    #expect(server.takeSyncs().count == 1 && server.engine.checkInvariants() == [])
  }

  // MARK: With a log

  /// A client with a log in memory, which only pushes and has applied everything up to sequence 1.
  private final class Logged {
    let server = ScriptedServer()
    private(set) var records: [ReplicaRecord] = []
    private(set) var replica: Replica?

    /// Begins with a history; nil for an empty log.
    init(_ history: ReplicaHistory? = nil) throws {
      replica = try server.engine.fetch(
        server.scope, params: [:], mode: .pushOnly, history: history, now: .zero,
        store: { [unowned self] in records.append($0) }, completion: { _ in })
      server.connect()
      server.open()
      server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
      guard history == nil else { return }
      server.grant(ScopePosition(epoch: "e", sequence: 1))
      storeAll()
      _ = server.takeSent()
    }

    /// Reports all records as durable.
    func storeAll() { replica?.stored(records.count) }

    /// The history that another process reads: that of all records.
    func history() throws -> ReplicaHistory {
      guard case .named(let client, let root)? = records.first else {
        throw CocoaError(.coderReadCorrupt)
      }
      let read = try records.map {
        try #require(
          try ReplicaRecord($0.content.kind, json: JSONValue(parsing: $0.content.payload)))
      }
      #expect(read.map(\.content) == records.map(\.content))
      return ReplicaHistory(client: client, root: root, records: read)
    }
  }

  @Test("The server is told of them once their records are durable, and another process knows them")
  func durable() throws {
    let first = try Logged()
    decide(first.server, try editDurably(first, "one"), at: 3)
    #expect(try editDurably(first, "two", storing: false) == nil)
    let known = first.records.contains { if case .known = $0 { true } else { false } }
    #expect(known)
    first.storeAll()
    #expect(first.server.takeSyncs().map(\.decided) == [1])

    let second = try Logged(first.history())
    let fetch = try fetch(second.server)
    #expect(fetch.decided == 1)
    #expect(second.server.engine.state(of: second.server.scope)?.decidedCount == 1)
    #expect(second.server.engine.checkInvariants() == [])
    grant(second.server, fetch, at: 3, decided: 1)
    #expect(second.server.takeSyncs().map(\.number) == [2])
  }

  private func editDurably(
    _ logged: Logged, _ name: String, storing: Bool = true
  ) throws -> ScopeSync? {
    logged.server.scope.modify {
      logged.server.canvas.name = name
      logged.server.canvas.shapes.append(Shape())
    }
    if storing { logged.storeAll() }
    return logged.server.takeSyncs().last
  }

  private func decide(_ server: ScriptedServer, _ sync: ScopeSync?, at sequence: Int) {
    guard let sync else {
      Issue.record("The change set was not sent.")
      return
    }
    decide(server, sync, at: sequence)
  }

  @Test("A snapshot contains them, and so does a log that goes on behind it")
  func snapshot() throws {
    let first = try Logged()
    decide(first.server, try editDurably(first, "one"), at: 3)
    first.storeAll()
    let history = try #require(first.replica?.history)
    #expect(history.pending.map(\.decision?.sequence) == [3])
    let written = try history.pending.map { try ReplicaHistory.Undecided(json: $0.json) }
    #expect(written == history.pending)
    let second = try Logged(history)
    #expect(try fetch(second.server).decided == 1)
    #expect(second.server.engine.state(of: second.server.scope)?.decidedCount == 1)
  }

  @Test("What a server has lost is forgotten in the log, too")
  func forgotten() throws {
    let first = try Logged()
    decide(first.server, try editDurably(first, "one"), at: 3)
    first.storeAll()
    try loseHistory(first.server)
    #expect(first.records.contains(.forgotten(after: 0)))
    // Another process must not take it for decided once the server has decided it anew.
    #expect(first.server.takeSyncs().isEmpty)
    first.storeAll()
    #expect(first.server.takeSyncs().map(\.decided) == [0])
    let second = try Logged(first.history())
    #expect(try fetch(second.server).decided == 0)
    #expect(second.server.engine.state(of: second.server.scope)?.unsentCount == 1)
  }

  @Test(
    "Rejections behind one that is kept are known to the server, too", arguments: [false, true])
  func rejectedBehind(isLogged: Bool) throws {
    let logged = isLogged ? try Logged() : nil
    let server = logged?.server ?? pushing()
    func send(_ name: String) throws -> ScopeSync {
      server.canvas.name = name
      server.scope.flush()
      logged?.storeAll()
      return try #require(server.takeSyncs().last)
    }
    var reply = ScopeSyncReply(
      replyTo: try send("0").index, fragmentReplies: [FragmentReply()], sequence: 3)
    server.deliver([.scopeSyncReply(reply)])
    for number in 1...100 {
      reply = ScopeSyncReply(
        replyTo: try send("\(number)").index,
        fragmentReplies: [FragmentReply(error: .rejected("no"))])
      server.deliver([.scopeSyncReply(reply)])
    }
    logged?.storeAll()
    #expect(try send("last").decided == 101)
    #expect(server.engine.state(of: server.scope)?.decidedCount == 1)
  }

  @Test("The outcome of a call is recorded at once, and plain decisions many at a time")
  func records() throws {
    let logged = try Logged()
    func count() -> Int {
      logged.records.count { if case .known = $0 { true } else { false } }
    }
    for number in 1...100 {
      logged.server.canvas.likes += 1
      logged.server.scope.flush()
      logged.storeAll()
      let reply = ScopeSyncReply(
        replyTo: try #require(logged.server.takeSyncs().last).index,
        fragmentReplies: [FragmentReply()], sequence: 2 + number,
        outcome: number == 100 ? .output(1) : nil)
      logged.server.deliver([.scopeSyncReply(reply)])
      #expect(count() == (number < 64 ? 0 : number < 100 ? 1 : 2))
    }
  }

  @Test("Those that were left to a record of many are recorded when the session ends")
  func sessionEnds() throws {
    let logged = try Logged()
    let sync = try editDurably(logged, "one")
    logged.server.deliver([
      .scopeSyncReply(
        ScopeSyncReply(
          replyTo: try #require(sync?.index),
          fragmentReplies: [FragmentReply(), FragmentReply()], sequence: 3))
    ])
    // The server would have to keep the decision for as long as there are no more.
    #expect(try editDurably(logged, "two")?.decided == 0)
    logged.server.close(4097)
    logged.storeAll()
    logged.server.advance(by: .seconds(1))
    logged.server.open()
    logged.server.receive(
      .sessionCreateReply(SessionCreateReply(sessionToken: "next", protocol: 2)))
    #expect(try fetch(logged.server).decided == 1)
    let next = try Logged(logged.history())
    #expect(try fetch(next.server).decided == 1)
  }

  @Test("A client sends no more than the server has to keep decisions for while its disk is slow")
  func slowDisk() throws {
    let client = try Logged()
    client.server.engine.configuration.limits.unknownDecisions = 3
    var sent: [ScopeSync] = []
    for number in 1...5 {
      client.server.canvas.name = "\(number)"
      client.server.scope.flush()
    }
    let made = client.records.count
    client.storeAll()
    sent += client.server.takeSyncs()
    #expect(sent.compactMap(\.number) == [1, 2, 3])
    for (at, sync) in sent.enumerated() {
      let reply = ScopeSyncReply(
        replyTo: sync.index, fragmentReplies: [FragmentReply()], sequence: 2 + at)
      client.server.deliver([.scopeSyncReply(reply)])
    }
    // All three are confirmed, but another process would not know that.
    #expect(client.server.engine.pendingCount == 2 && client.records.count > made)
    #expect(client.server.takeSyncs().isEmpty)
    client.storeAll()
    #expect(client.server.takeSyncs().compactMap(\.number) == [4, 5])
  }
}
