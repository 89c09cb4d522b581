import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A client whose server needs the schema of a scope before it can open it.
@Suite("Schemas that a client brings")
struct ClientSchemaTests {
  private let server = ScriptedServer()
  private let position = ScopePosition(epoch: "one", sequence: 7)
  private var canvasSchema: JSONValue { get throws { try wire(ScopeSchema(of: Canvas.self).json) } }

  /// Returns JSON as the other side reads it.
  private func wire(_ json: JSONValue) throws -> JSONValue { try JSONValue(parsing: json.text) }

  /// Connects and asks for the scope.
  private func connect(version: Int = 2, _ scope: Scope? = nil) throws {
    server.connect()
    server.open()
    server.fetch(scope)
    server.receive(
      .sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: version)))
    #expect(try takeFetch().schema == nil)
  }

  /// Returns the only request for a scope that the client has sent since the last call.
  private func takeFetch() throws -> ScopeFetch {
    let fetches = takeFetches()
    try #require(fetches.count == 1, "\(fetches)")
    return fetches[0]
  }

  private func takeFetches() -> [ScopeFetch] {
    server.takeSent().compactMap { if case .scopeFetch(let fetch) = $0 { fetch } else { nil } }
  }

  private func denied(
    _ index: Int, answering fetch: Int, _ error: WireError = .schemaWanted
  ) -> Message {
    .scopeFetchReply(ScopeFetchReply(index: index, replyTo: fetch, error: error))
  }

  private func moved(_ index: Int, to channel: Int, answering fetch: Int) -> Message {
    .scopeFetchReply(
      ScopeFetchReply(index: index, replyTo: fetch, answer: .moved(channel: channel)))
  }

  private func granted(_ index: Int, answering fetch: Int) -> Message {
    .scopeFetchReply(
      ScopeFetchReply(
        index: index, replyTo: fetch, scopeIndex: 0, standing: ScopeStanding(position: position)))
  }

  @Test("The scope is asked for again at once, with its schema, until it is granted")
  func wanted() throws {
    try connect()
    server.receive(denied(1, answering: 1))
    let fetch = try takeFetch()
    #expect(fetch.index == 2 && fetch.name == "Canvas" && fetch.params == ["page": 2])
    #expect(try fetch.schema == canvasSchema)
    #expect(server.fetched.isEmpty)
    server.receive(granted(2, answering: 2), server.state(3))
    #expect(server.fetched.count == 1)
    #expect(throws: Never.self) { try server.fetched[0].get() }
    server.engine.sync(server.scope, now: server.now) { _ in }
    #expect(try takeFetch().schema == nil)
  }

  @Test("The schema that a client brings is one that a server reads")
  func readable() throws {
    let scope = Scope(
      name: "New", root: NewCanvas(), models: [Circle.self], ticker: server.ticker)
    try connect(scope)
    server.receive(denied(1, answering: 1))
    let json = try #require(try takeFetch().schema)
    let expected = ScopeSchema(of: NewCanvas.self, and: [Circle.self]).json
    #expect(try json == wire(expected))
    #expect(json.text.contains(#""name":"Circle","superclasses":["Shape"]"#))
    #expect(try ScopeSchema(json).json.text == expected.text)
  }

  @Test("A class that becomes known with a model is in the schema")
  func laterClass() throws {
    let canvas = NewCanvas()
    let scope = Scope(name: "New", root: canvas, ticker: server.ticker)
    #expect(scope.wireSchema?.json.text == ScopeSchema(of: NewCanvas.self).json.text)
    canvas.shapes.append(Circle())
    let expected = ScopeSchema(of: NewCanvas.self, and: [Circle.self]).json.text
    #expect(scope.wireSchema?.json.text == expected)
  }

  @Test("A server that still asks for the schema when it has it refuses the scope")
  func wantedTwice() throws {
    try connect()
    server.receive(denied(1, answering: 1))
    _ = try takeFetch()
    server.receive(denied(2, answering: 2))
    #expect(takeFetches().isEmpty)
    let result = try #require(server.fetched.first)
    #expect(throws: SyncError.scopeDenied(scope: "Canvas", error: .schemaWanted)) {
      try result.get()
    }
  }

  @Test("A scope that may return is asked for later, first without the schema")
  func refusedLater() throws {
    server.joinAtPosition(position)
    server.loseSession()
    _ = try takeFetch()
    server.receive(denied(1, answering: 1))
    // The answer is no refusal.
    #expect(server.engine.state(of: server.scope)?.stall == nil)
    let fetch = try takeFetch()
    #expect(try fetch.schema == canvasSchema && fetch.since == position)
    server.receive(denied(2, answering: 2))
    #expect(
      server.engine.state(of: server.scope)?.stall == .refused(WireError.schemaWanted.message))
    #expect(takeFetches().isEmpty)
    server.advance(by: .seconds(5))
    #expect(try takeFetch().schema == nil)
    server.receive(denied(3, answering: 3))
    #expect(try takeFetch().schema == canvasSchema)
    server.receive(granted(4, answering: 4), server.state(5))
    #expect(server.engine.state(of: server.scope)?.stall == nil)
  }

  @Test("Being asked for the schema does not lengthen the pause after a refusal")
  func notCounted() throws {
    var pauses: [String] = []
    for isAsked in [false, true] {
      let other = ClientSchemaTests()
      other.server.joinAtPosition(position)
      other.server.loseSession()
      _ = try other.takeFetch()
      if isAsked {
        other.server.receive(other.denied(1, answering: 1))
        _ = try other.takeFetch()
      }
      let index = isAsked ? 2 : 1
      other.server.receive(
        other.denied(index, answering: index, WireError(message: "not yet")))
      let text = try #require(
        other.server.diagnostics.last { $0.contains("is refused for now") })
      pauses.append(text)
    }
    #expect(pauses[0] == pauses[1])
  }

  @Test("A client that is sent to another channel, and asked for the schema there, brings it there")
  func movedThenWanted() throws {
    try connect()
    server.receive(moved(1, to: 3, answering: 1))
    #expect(try takeFetch().schema == nil)
    _ = server.takeFrames()
    server.receive(denied(1, answering: 1), channel: 3)
    let frame = try #require(server.takeFrames().first)
    #expect(frame.hasPrefix(#"{"channel":3,"messages":[{"type":"ScopeFetch","index":2,"#))
    #expect(frame.contains(#""schema":{"version":1,"root":"Canvas","#))
    server.receive(granted(2, answering: 2), server.state(3), channel: 3)
    #expect(server.fetched.count == 1)
  }

  @Test("A client that has brought the schema brings it to the channel to which it is sent then")
  func wantedThenMoved() throws {
    try connect()
    server.receive(denied(1, answering: 1))
    _ = try takeFetch()
    _ = server.takeFrames()
    server.receive(moved(2, to: 3, answering: 2))
    let frame = try #require(server.takeFrames().first)
    #expect(frame.hasPrefix(#"{"channel":3,"messages":[{"type":"ScopeFetch","index":1,"#))
    #expect(frame.contains(#""schema":{"version":1,"root":"Canvas","#))
    server.receive(denied(1, answering: 1), channel: 3)
    #expect(takeFetches().isEmpty && server.fetched.count == 1)
  }

  @Test("In another session a scope is asked for without its schema first")
  func nextSession() throws {
    try connect()
    server.receive(denied(1, answering: 1))
    #expect(try takeFetch().schema != nil)
    server.loseSession()
    #expect(try takeFetch().schema == nil)
    server.receive(denied(1, answering: 1))
    #expect(try takeFetch().schema == canvasSchema)
  }

  @Test("After a lost connection a scope that is refused for now is asked for without its schema")
  func reconnected() throws {
    try connect()
    server.receive(denied(1, answering: 1))
    #expect(try takeFetch().schema != nil)
    server.receive(denied(2, answering: 2, .notNow("It is being opened", retryAfter: .seconds(9))))
    server.close()
    server.advance(by: .seconds(1))
    server.open()
    server.receive(.ping(Ping(ack: 2, resendMissing: true)))
    #expect(takeFetches().isEmpty)
    server.advance(by: .seconds(11))
    #expect(try takeFetch().schema == nil)
  }

  @Test("A request with a schema that was lost with its connection is sent again as it was")
  func resent() throws {
    try connect()
    server.receive(denied(1, answering: 1))
    let fetch = try takeFetch()
    server.close()
    server.advance(by: .seconds(1))
    server.open()
    server.receive(.ping(Ping(ack: 1, resendMissing: true)))
    #expect(try takeFetch() == fetch)
    server.receive(denied(2, answering: 2))
    #expect(takeFetches().isEmpty && server.fetched.count == 1)
  }

  @Test("A scope that was granted before is asked for with its schema if a server asks for it")
  func grantedBefore() throws {
    server.joinAtPosition(position)
    server.canvas.name = "pending"
    server.scope.flush()
    _ = server.takeSent()
    server.engine.sync(server.scope, now: server.now) { _ in }
    let again = try takeFetch()
    server.receive(denied(3, answering: again.index))
    let fetch = try takeFetch()
    #expect(try fetch.schema == canvasSchema)
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(
          index: 4, replyTo: fetch.index, scopeIndex: 5,
          standing: ScopeStanding(position: position, resumes: true))))
    // The change set goes to the scope that is granted now.
    #expect(server.takeSyncs().map(\.scopeIndex) == [5])
  }

  @Test("A scope that was left meanwhile is not asked for again")
  func left() throws {
    try connect()
    _ = server.engine.leave(server.scope, now: server.now)
    server.receive(denied(1, answering: 1))
    #expect(takeFetches().isEmpty)
  }

  @Test("In a session of version 1 the answer is a refusal like any other")
  func oldServer() throws {
    try connect(version: 1)
    server.receive(denied(1, answering: 1))
    #expect(takeFetches().isEmpty && server.fetched.count == 1)
  }

  @Test("A scope without a root has no schema, and is refused")
  func noRoot() throws {
    let scope = Scope(name: "Empty", ticker: server.ticker)
    try connect(scope)
    server.receive(denied(1, answering: 1))
    #expect(takeFetches().isEmpty && server.fetched.count == 1)
  }

  @Test("A schema that is longer than a server reads is not sent")
  func tooLong() throws {
    let scope = Scope(name: "Long", root: LongDefault(), ticker: server.ticker)
    #expect(throws: SchemaError.self) { try ScopeSchema(scope.wireSchema?.json ?? .null) }
    try connect(scope)
    server.receive(denied(1, answering: 1))
    #expect(takeFetches().isEmpty && server.fetched.count == 1)
  }
}

/// A class whose schema is longer than a server reads.
private final class LongDefault: ModelObject {
  @Property var text = String(repeating: "long ", count: 60_000)
}
