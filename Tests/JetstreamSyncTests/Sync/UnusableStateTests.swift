import Foundation
import Testing

@testable import Jetstream

@Suite("States that do not fit the models of a scope")
struct UnusableStateTests {
  private let server = ScriptedServer()
  private let position = ScopePosition(epoch: "e", sequence: 1)
  private let unfit = SyncFragment(.change, uuid: UUID(), className: "Shape", properties: [:])

  private var conflicts: [Conflict] { server.scope.conflicts.items }

  private func expectOne(mine: JSONValue) {
    #expect(server.engine.scopes.isEmpty && server.engine.pendingCount == 0)
    #expect(conflicts.map(\.mine) == [.value(mine)])
    guard case .rejected(let error)? = conflicts.first?.reason else {
      Issue.record("It is not rejected: \(conflicts)")
      return
    }
    #expect(error.type == "invalid-message")
  }

  @Test("What is pending goes to the ledger, but for what the server has accepted")
  func pending() {
    server.joinAtPosition(position)
    server.canvas.likes = 1
    server.scope.flush()
    let handle = server.scope.modify { server.canvas.name = "mine" }
    server.loseSession()
    let standing = ScopeStanding(
      position: ScopePosition(epoch: "e", sequence: 2), decided: 1,
      decisions: [.init(number: 1, fragmentReplies: [], sequence: 2)])
    server.receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0, standing: standing)),
      .scopeState(
        ScopeState(index: 2, scopeIndex: 0, rootUUID: unfit.uuid, fragments: [unfit])))
    expectOne(mine: "mine")
    #expect(handle.state == .abandoned && server.canvas.name == "mine")
  }

  @Test("What was made before a first state that cannot be read goes there, too")
  func unreadable() {
    server.connect()
    server.open()
    server.fetch()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    server.scope.modify { server.canvas.name = "mine" }
    server.receive(text: #"{"type":"ScopeFetchReply","index":1,"replyTo":1}"#)
    expectOne(mine: "mine")
  }

  @Test("What is in a log is in the ledger once, however often the scope is fetched")
  func again() throws {
    var records: [ReplicaRecord] = []
    server.connect()
    let replica = try #require(
      try server.engine.fetch(
        server.scope, params: [:], history: nil, now: server.now, store: { records.append($0) },
        completion: { _ in }))
    let root = server.canvas.uuid
    server.open()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    server.grant(position)
    server.canvas.name = "mine"
    server.scope.flush()
    replica.stored(records.count)
    server.loseSession()
    server.grant(position, [unfit])
    expectOne(mine: "mine")
    #expect(conflicts.map(\.changeSet) == records.compactMap(\.made?.id))

    let history = ReplicaHistory(
      client: replica.request.clientID, root: root, nextNumber: 1, records: records)
    _ = server.takeSent()
    try server.engine.fetch(
      server.scope, params: [:], history: history, now: server.now, store: { _ in },
      completion: { _ in })
    #expect(server.engine.pendingCount == 1)
    let fetch = try #require(server.takeSent().last)
    server.deliver([
      .scopeFetchReply(
        ScopeFetchReply(
          replyTo: fetch.index, scopeIndex: 0, standing: ScopeStanding(position: position))),
      .scopeState(ScopeState(scopeIndex: 0, rootUUID: unfit.uuid, fragments: [unfit])),
    ])
    expectOne(mine: "mine")
  }
}

extension ReplicaRecord {
  fileprivate var made: ChangeSet? {
    if case .made(_, let set) = self { set } else { nil }
  }
}
