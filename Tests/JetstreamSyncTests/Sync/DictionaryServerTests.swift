import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A server that knows dictionaries of models from a schema alone, and peers that speak the protocol by hand.
@Suite("A server of dictionaries without their classes", .live, .timeLimit(.minutes(5)))
@MainActor
struct DictionaryServerTests {
  private static let schemaText = """
    {"version":1,"root":"Club","classes":[
      {"name":"Club","properties":[{"name":"members","type":"dictionary of reference to Person"}]},
      {"name":"Person","properties":[{"name":"name","type":"string","default":""}]}]}
    """

  /// One connection.
  private final class Peer {
    private let connection: any TransportConnection
    private var messages: [Message] = []
    private var next = 1

    init(_ server: Server, protocol version: Int) async throws {
      connection = try await server.makeTransport().open(headers: [])
      let spoken = version > 1 ? #""protocol":\#(version),"# : ""
      let create = #"{"type":"SessionCreate","index":0,"version":"0.1.0",\#(spoken)"params":{}}"#
      try connection.send(Array(create.utf8))
      _ = try await send(.scopeFetch(ScopeFetch(name: "Club")))
    }

    func send(_ message: Message) async throws -> Int {
      var message = message
      message.index = next
      next += 1
      try connection.send(Message.encodeFrame([message], asArray: false))
      return message.index
    }

    /// Waits for a message of which something can be found.
    func find<Found>(_ found: (Message) -> Found?) async throws -> Found {
      while true {
        if let found = messages.lazy.compactMap(found).first { return found }
        let frame = try #require(try await connection.receive())
        messages += try Message.decodeFrame(frame).map { try $0.get() }
      }
    }

    func state() async throws -> [SyncFragment] {
      try await find { if case .scopeState(let state) = $0 { state.fragments } else { nil } }
    }

    func submit(_ fragments: [SyncFragment]) async throws -> [String?] {
      let index = try await send(.scopeSync(ScopeSync(scopeIndex: 0, fragments: fragments)))
      let replies: [FragmentReply] = try await find {
        if case .scopeSyncReply(let reply) = $0, reply.replyTo == index {
          reply.fragmentReplies
        } else {
          nil
        }
      }
      return replies.map(\.error?.message)
    }

    func told() async throws -> [SyncFragment] {
      defer { messages = [] }
      return try await find { if case .scopeSync(let sync) = $0 { sync.fragments } else { nil } }
    }

    func close() { connection.close(code: 1000, reason: "") }
  }

  @Test("Entries are told to peers of both versions, and are there after a restart")
  func restart() async throws {
    let directory = try TemporaryDirectory()
    let schema = try ScopeSchema(JSONValue(parsing: Self.schemaText))
    let log = try FragmentLog(directory.path)
    var server = Server()
    try await server.host("Club", schema: schema, log: log)
    let first = try await Peer(server, protocol: 2)
    let second = try await Peer(server, protocol: 1)
    let root = try #require(try await first.state().first)
    #expect(root.properties.isEmpty)
    #expect(try await second.state().first == root)

    let (ada, bob) = (UUID(), UUID())
    func put(_ properties: JSONObject) -> SyncFragment {
      SyncFragment(.change, uuid: root.uuid, className: "Club", properties: properties)
    }
    func person(_ uuid: UUID, _ name: String) -> SyncFragment {
      SyncFragment(.add, uuid: uuid, className: "Person", properties: ["name": .string(name)])
    }
    let (adaValue, bobValue) = (JSONValue.string(ada.wireText), JSONValue.string(bob.wireText))
    #expect(
      try await first.submit([
        person(ada, "Ada"), person(bob, "Bob"),
        put(["members/a": adaValue, "members/b/c": bobValue, "members/x": adaValue]),
      ]) == [nil, nil, nil])
    #expect(try await second.told().last?.properties.count == 3)
    #expect(try await second.submit([put(["members/a": bobValue, "members/b/c": .null])]) == [nil])
    #expect(
      try await first.told().last == put(["members/a": bobValue, "members/b/c": .null]))
    let errors = try await second.submit([
      put(["members/a": .string(root.uuid.wireText)]), put(["members/a": .string(UUID().wireText)]),
      put(["members": .null]),
    ])
    #expect(errors[0]?.contains("is a Club, should be a Person") == true)
    #expect(errors[1]?.contains("No such ModelObject") == true)
    #expect(errors[2]?.contains("No property at 'members'") == true)
    first.close()
    second.close()
    try await server.remove("Club")
    await server.stop()

    server = Server()
    try await server.host("Club", schema: schema, log: FragmentLog(directory.path))
    for version in [1, 2] {
      let late = try await Peer(server, protocol: version)
      #expect(
        try await late.state() == [
          put(["members/a": bobValue, "members/x": adaValue]), person(bob, "Bob"),
          person(ada, "Ada"),
        ])
      late.close()
    }
    try await server.remove("Club")
    await server.stop()
  }
}
