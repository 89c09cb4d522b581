import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// The remote change sets of one frame have one record in a client's log: a server leaves out values that later ones of them
/// replace.
@Suite("Records of the change sets of one frame")
struct FrameRecordTests {
  private let server = ScriptedServer()
  private let log = Log()

  private final class Log {
    var records: [ReplicaRecord] = []
  }

  init() throws {
    server.connect()
    server.open()
    let replica = try server.engine.fetch(
      server.scope, params: .null, history: nil, now: server.now,
      store: { [log] in log.records.append($0) }, completion: { _ in })
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    server.grant(ScopePosition(epoch: "a", sequence: 0))
    replica?.stored(1_000)
    _ = server.takeSent()
    log.records = []
  }

  private func told(_ sequence: Int, _ properties: JSONObject...) -> Message {
    var sync = ScopeSync(
      scopeIndex: 0,
      fragments: properties.map {
        SyncFragment(.change, uuid: server.canvas.uuid, className: "Canvas", properties: $0)
      })
    sync.sequence = sequence
    sync.origin.author = "Ada \(sequence)"
    return .scopeSync(sync)
  }

  private func confirmed(_ sequence: Int, _ properties: JSONObject...) -> ReplicaRecord {
    guard case .scopeSync(let sync) = told(sequence) else { preconditionFailure() }
    return .confirmed(
      properties.map {
        SyncFragment(.change, uuid: server.canvas.uuid, className: "Canvas", properties: $0)
      }, sequence: sequence, origin: sync.origin)
  }

  @Test("Several have one record, which reads as it was written; a single one has its own")
  func together() throws {
    server.receive(told(1), told(2, ["name": "b"]), told(3))
    server.receive(told(4, ["name": "c"]))
    #expect(server.canvas.name == "c")
    let all = ReplicaRecord.together([confirmed(1), confirmed(2, ["name": "b"]), confirmed(3)])
    #expect(log.records == [all, confirmed(4, ["name": "c"])])
    for record in log.records {
      let (kind, payload) = (record.content.kind, record.content.payload)
      #expect(try ReplicaRecord(kind, json: JSONValue(parsing: payload)) == record)
    }
  }

  @Test("A client's own change set among them has its record in its place")
  func ownChangeSet() throws {
    server.canvas.likes = 1
    server.scope.flush()
    server.engine.replicas.first?.stored(1_000)
    let own = try #require(server.takeSyncs().first)
    log.records = []
    let reply = ScopeSyncReply(
      index: 3, replyTo: own.index, fragmentReplies: [FragmentReply()], sequence: 3)
    server.receive(
      told(1), told(2, ["name": "b"]), .scopeSyncReply(reply), told(4), told(5, ["name": "c"]))
    #expect(server.canvas.name == "c" && server.engine.pendingCount == 0)
    #expect(log.records.count == 3)
    #expect(log.records.first == .together([confirmed(1), confirmed(2, ["name": "b"])]))
    #expect(log.records.last == .together([confirmed(4), confirmed(5, ["name": "c"])]))
  }

  @Test("A record of several is refused if it is not an array of change sets")
  func invalid() {
    let kind = confirmed(1).content.kind
    for sets: JSONValue in [7, [7], [["fragments": 7]]] {
      #expect(throws: FragmentError.self) {
        try ReplicaRecord(kind, json: ["sets": sets])
      }
    }
  }
}
