import Foundation
import Testing

@testable import Jetstream

@Suite("Messages", .paced)
struct MessageTests {
  let uuid = UUID(wireText: "4d01cd3b-ae1a-429c-ae75-4c211b0adefa")!

  private func read(_ text: String) throws -> Message {
    try Message(json: JSONValue(parsing: text))
  }

  @Test("Optional fields have their defaults")
  func defaults() throws {
    #expect(
      try read(#"{"index":7,"type":"SessionCreate","version":"v1.2.3"}"#)
        == .sessionCreate(SessionCreate(index: 7, version: "v1.2.3", params: [:])))
    #expect(
      try read(#"{"index":1,"type":"ScopeFetch","name":"Canvas"}"#)
        == .scopeFetch(ScopeFetch(index: 1, name: "Canvas", params: [:])))
    #expect(
      try read(#"{"index":1,"type":"ScopeFetch","name":"Canvas","params":[1]}"#)
        == .scopeFetch(ScopeFetch(index: 1, name: "Canvas", params: [1])))
    #expect(try read(#"{"index":0,"type":"Ping","ack":2}"#) == .ping(Ping(ack: 2)))
    #expect(
      try read(#"{"index":0,"type":"Ping","ack":2,"resendMissing":1}"#) == .ping(Ping(ack: 2)))
    #expect(
      try read(#"{"index":2,"type":"ScopeSync","scopeIndex":0,"fragments":[]}"#)
        == .scopeSync(ScopeSync(index: 2, scopeIndex: 0, fragments: [])))
  }

  @Test("A request for a scope has a schema only if one is given, and null is none")
  func schema() throws {
    let plain = ScopeFetch(index: 1, name: "Canvas")
    #expect(!Message.scopeFetch(plain).json.text.contains("schema"))
    #expect(
      try read(#"{"index":1,"type":"ScopeFetch","name":"Canvas","schema":null}"#)
        == .scopeFetch(plain))
    // It is read as data, whatever it is: the server decides if it is a schema.
    for schema in [["version": 1], [], "text"] as [JSONValue] {
      let message = Message.scopeFetch(ScopeFetch(index: 1, name: "Canvas", schema: schema))
      #expect(try read(message.json.text) == message)
    }
    #expect(WireError.schemaWanted.type == "schema-wanted")
    #expect(WireError.schemaWanted.retryAfter == nil && WireError.schemaWanted.denial == nil)
  }

  @Test("The browser's key order and unknown keys are read")
  func otherOrder() throws {
    let message = try read(
      #"{"index":3,"type":"ScopeSync","future":[1],"atomic":false,"fragments":[{"clsName":"Shape","#
        + #""properties":{"x":1},"type":"add","uuid":"4D01CD3B-AE1A-429C-AE75-4C211B0ADEFA"}],"#
        + #""scopeIndex":1}"#)
    let fragment = SyncFragment(.add, uuid: uuid, className: "Shape", properties: ["x": 1])
    #expect(
      message
        == .scopeSync(ScopeSync(index: 3, scopeIndex: 1, fragments: [fragment], atomic: false)))
  }

  @Test("Nested property values of newer peers are read")
  func nestedValues() throws {
    let message = try read(
      #"{"type":"ScopeSync","index":1,"scopeIndex":0,"fragments":[{"type":"change","#
        + #""uuid":"4d01cd3b-ae1a-429c-ae75-4c211b0adefa","clsName":"Shape","#
        + #""properties":{"a":{"b":[[1],"x",null]}}}]}"#)
    guard case .scopeSync(let sync) = message else {
      Issue.record("\(message)")
      return
    }
    #expect(sync.fragments[0].properties["a"] == ["b": [[1], "x", .null]])
  }

  @Test("A null error is no error")
  func nullError() throws {
    #expect(
      try read(#"{"type":"SessionCreateReply","index":0,"sessionToken":"t","error":null}"#)
        == .sessionCreateReply(SessionCreateReply(sessionToken: "t")))
    #expect(
      try read(
        #"{"type":"ScopeSyncReply","index":1,"replyTo":1,"fragmentReplies":[{"error":null}]}"#)
        == .scopeSyncReply(ScopeSyncReply(index: 1, replyTo: 1, fragmentReplies: [.init()])))
  }

  @Test("One number accepts several fragments as they are, unless the reply is one of version 1")
  func accepted() throws {
    func text(_ replies: [FragmentReply], sequence: Int?) -> String {
      Message.scopeSyncReply(
        ScopeSyncReply(replyTo: 1, fragmentReplies: replies, sequence: sequence)
      ).json.text
    }
    let plain = Array(repeating: FragmentReply(), count: 3)
    let head = #"{"type":"ScopeSyncReply","index":0,"replyTo":1,"#
    #expect(text(plain, sequence: 4) == head + #""accepted":3,"sequence":4}"#)
    #expect(text(plain, sequence: nil) == head + #""fragmentReplies":[{},{},{}]}"#)
    #expect(text([plain[0]], sequence: 4) == head + #""fragmentReplies":[{}],"sequence":4}"#)
    let denied = plain + [FragmentReply(error: .rejected("no"))]
    #expect(text(denied, sequence: 4).contains(#""fragmentReplies":[{},{},{},{"error""#))
    for (count, isRead) in [
      (0, false), (1, false), (3, true), (1 << 20, true), (1 << 20 + 1, false),
    ] {
      let message = try? read(head + #""accepted":\#(count),"sequence":4}"#)
      guard case .scopeSyncReply(let reply)? = message else {
        #expect(!isRead, "\(count)")
        continue
      }
      #expect(isRead && reply.fragmentReplies.count == count && reply.sequence == 4)
      #expect(reply.fragmentReplies.areAllPlain)
    }
  }

  @Test("A procedure goes out with atomic, as old servers demand")
  func procedure() {
    let sync = ScopeSync(scopeIndex: 0, fragments: [], procedure: "Cart.checkout")
    #expect(sync.atomic == false)
    #expect(ScopeSync(scopeIndex: 0, fragments: []).atomic == nil)
    #expect(
      Message.scopeSync(sync).json.text
        == #"{"type":"ScopeSync","index":0,"scopeIndex":0,"fragments":[],"atomic":false,"#
        + #""procedure":"Cart.checkout"}"#)
  }

  @Test("Every message can be renumbered")
  func index() {
    let error = WireError.sessionCreationDenied
    let messages: [Message] = [
      .sessionCreate(SessionCreate(version: "0.1.0")),
      .sessionCreateReply(SessionCreateReply(error: error)),
      .scopeFetch(ScopeFetch(name: "Canvas")),
      .scopeFetchReply(ScopeFetchReply(replyTo: 1, error: error)),
      .scopeState(ScopeState(scopeIndex: 0, rootUUID: uuid, fragments: [])),
      .scopeSync(ScopeSync(scopeIndex: 0, fragments: [])),
      .scopeSyncReply(ScopeSyncReply(replyTo: 1, fragmentReplies: [])),
      .scopeLeave(ScopeLeave(scopeIndex: 0, error: error)),
      .ping(Ping(ack: 0)),
    ]
    for message in messages {
      var copy = message
      #expect(copy.index == 0)
      copy.index = 42
      #expect(copy.index == 42)
      #expect(copy.type == message.type)
      copy.index = 0
      #expect(copy == message)
    }
    #expect(Set(messages.map(\.type)) == Message.types)
  }

  @Test("Leaving a scope is read as it is written, with and without a reason")
  func leaving() throws {
    for error in [nil, WireError.gone("over"), .notNow("later", retryAfter: .seconds(2))] {
      let message = Message.scopeLeave(ScopeLeave(index: 3, scopeIndex: 7, error: error))
      #expect(try Message(json: message.json) == message)
    }
    #expect(
      throws: MessageError.missing(message: "ScopeLeave", index: 3, field: "scopeIndex")
    ) { try Message(json: ["type": "ScopeLeave", "index": 3]) }
  }

  @Test("What an error means for a scope is in its type")
  func denials() {
    #expect(WireError.notNow("a", retryAfter: .seconds(1)).denial == .notNow)
    #expect(WireError(message: "a", type: "other", retryAfter: .seconds(1)).denial == .notNow)
    #expect(WireError.notYou("a").denial == .notYou && WireError.notThere("a").denial == .notThere)
    #expect(WireError.gone("a").denial == .gone && WireError.rejected("a").denial == nil)
    let final: [Denial] = [.notThere, .gone]
    #expect(final.allSatisfy(\.isFinal) && !Denial.notNow.isFinal && !Denial.notYou.isFinal)
  }

  @Test("Replies tell their two outcomes apart")
  func outcomes() {
    let denied = ScopeFetchReply(replyTo: 1, error: .rejected("Not yours"))
    #expect(denied.scopeIndex == nil)
    #expect(denied.error?.type == "rejected")
    let granted = SessionCreateReply(sessionToken: "t")
    #expect(granted.sessionToken == "t")
    #expect(granted.error == nil)
  }
}

@Suite("Frames", .paced)
struct FrameTests {
  private func frame(_ text: String) throws -> [Result<Message, MessageError>] {
    try Message.decodeFrame(Array(text.utf8))
  }

  @Test("A frame is an object or an array of objects")
  func forms() throws {
    let ping = Message.ping(Ping(ack: 1))
    let text = #"{"type":"Ping","index":0,"ack":1,"resendMissing":false}"#
    #expect(try frame(text) == [.success(ping)])
    #expect(try frame(" [\(text)]") == [.success(ping)])
    #expect(try frame("[\(text),\(text)]") == [.success(ping), .success(ping)])
    #expect(try frame("[]") == [])
  }

  @Test("Each member is read on its own; arrays do not nest")
  func members() throws {
    let ping = #"{"type":"Ping","index":0,"ack":1}"#
    #expect(
      try frame("[\(ping),{\"type\":\"Nope\",\"index\":1},[\(ping)],null,\(ping)]") == [
        .success(.ping(Ping(ack: 1))), .failure(.unknownType("Nope", index: 1)),
        .failure(.notAnObject),
        .failure(.notAnObject), .success(.ping(Ping(ack: 1))),
      ])
    #expect(try frame("[[]]") == [.failure(.notAnObject)])
  }

  @Test("Anything else is no frame", arguments: ["null", "1", #""x""#, "true"])
  func noFrame(text: String) {
    #expect(throws: FrameError.notMessages) { try frame(text) }
  }

  @Test("Bad JSON and limits are reported with their place")
  func badJSON() {
    #expect(throws: FrameError.notJSON(JSONError(.unexpectedEnd, at: 0))) { try frame("") }
    #expect(throws: FrameError.notJSON(JSONError(.unexpectedCharacter, at: 1))) { try frame("[}") }
    #expect(throws: FrameError.notJSON(JSONError(.tooLong, at: 3))) {
      try Message.decodeFrame(Array("[1,2]".utf8), limits: JSONLimits(maxBytes: 3))
    }
  }

  @Test("Only one message can go without an array")
  func encoding() throws {
    let ping = Message.ping(Ping(ack: 1))
    let text = #"{"type":"Ping","index":0,"ack":1,"resendMissing":false}"#
    func encoded(_ messages: [Message], asArray: Bool) -> String {
      String(decoding: Message.encodeFrame(messages, asArray: asArray), as: UTF8.self)
    }
    #expect(encoded([ping], asArray: false) == text)
    #expect(encoded([ping], asArray: true) == "[\(text)]")
    #expect(encoded([ping, ping], asArray: false) == "[\(text),\(text)]")
    #expect(encoded([], asArray: false) == "[]")
  }

  @Test(
    "An array is told from a bare object",
    arguments: [
      ("[]", true), (" \r\n\t[", true), ("{}", false), ("", false), ("null", false),
    ])
  func arrayFrames(text: String, isArray: Bool) {
    #expect(Message.isArrayFrame(Array(text.utf8)) == isArray)
  }
}
