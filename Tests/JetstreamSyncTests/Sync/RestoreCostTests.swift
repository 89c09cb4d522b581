import Foundation
import JetstreamServer
import Testing

@testable import Jetstream

@Suite("The cost of reading what a process before has left")
struct RestoreCostTests {
  private let server = ScriptedServer()
  private let shapes = (0..<1000).map { _ in UUID() }
  private let added = (0..<50).map { _ in UUID() }

  /// A state with 1000 shapes, and change sets that add one each, of which the last is not decided.
  private var history: ReplicaHistory {
    let root = server.canvas.uuid
    let list = JSONValue.array(shapes.map { .string($0.wireText) })
    let state =
      [SyncFragment(.change, uuid: root, className: "Canvas", properties: ["shapes": list])]
      + shapes.map { SyncFragment(.add, uuid: $0, className: "Shape", properties: [:]) }
    var result = ReplicaHistory(
      client: UUID(), root: root,
      base: ReplicaBase(
        position: ScopePosition(epoch: "e", sequence: 1), root: root, fragments: state))
    for (at, shape) in added.enumerated() {
      let fragments = [
        SyncFragment(.add, uuid: shape, className: "Shape", properties: [:]),
        SyncFragment(
          .change, uuid: root, className: "Canvas", properties: [:],
          operations: ["shapes": [.insert(shape, .start)]]),
      ]
      result.records.append(.made(number: at + 1, ChangeSet(fragments: fragments, undo: [])))
      if shape == added.last { break }
      let replies = fragments.map { _ in FragmentReply() }
      result.records.append(
        .decided(.init(number: at + 1, replies: replies, effective: nil, sequence: at + 2)))
    }
    return result
  }

  @Test("The elements of a collection are not looked at for the change sets that change it")
  func collection() throws {
    server.connect()
    let replica = try #require(
      try server.engine.fetch(
        server.scope, params: [:], history: history, now: .zero, store: { _ in },
        completion: { _ in }))
    #expect(server.canvas.shapes.map(\.uuid) == added.reversed() + shapes)
    #expect(server.engine.pendingCount == 1 && replica.overlay.computedCount == 0)
    // They are when the server rejects one.
    server.open()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    let position = ScopePosition(epoch: "e", sequence: added.count)
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(
          index: 1, replyTo: 1, scopeIndex: 0,
          standing: ScopeStanding(position: position, resumes: true))))
    let sync = try #require(server.takeSyncs().first)
    let no = FragmentReply(error: .rejected("no"))
    server.receive(
      .scopeSyncReply(
        ScopeSyncReply(index: 2, replyTo: sync.index, fragmentReplies: [no, no])))
    #expect(server.canvas.shapes.map(\.uuid) == added.dropLast().reversed() + shapes)
    #expect(server.engine.pendingCount == 0 && server.engine.checkInvariants() == [])
  }
}
