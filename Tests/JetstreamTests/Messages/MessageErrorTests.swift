import Testing

@testable import Jetstream

@Suite("Refusing messages", .paced)
struct MessageErrorTests {
  @Test(
    "A bad field is named with its message",
    arguments: [
      ("null", "not an object"),
      ("{}", "message: type is missing"),
      (#"{"index":3}"#, "message 3: type is missing"),
      (#"{"type":1,"index":3}"#, "message 3: type should be a string"),
      (#"{"type":"Nope"}"#, "unknown message type \"Nope\""),
      (#"{"type":"Reply","index":1,"replyTo":1}"#, "unknown message type \"Reply\""),
      (#"{"type":"Ping","ack":1}"#, "Ping: index is missing"),
      (#"{"type":"Ping","index":0}"#, "Ping 0: ack is missing"),
      (
        #"{"type":"Ping","index":0,"ack":1,"checks":[{"scopeIndex":0,"sequence":1,"digest":"+1"}]}"#,
        "Ping 0: checks[0]: digest should be 16 hexadecimal digits"
      ),
      (
        #"{"type":"Ping","index":0,"ack":1,"differences":[{"scopeIndex":0,"parts":""}]}"#,
        "Ping 0: differences[0]: parts should be 4096 hexadecimal digits"
      ),
      (#"{"type":"SessionCreate","index":0}"#, "SessionCreate 0: version is missing"),
      (
        #"{"type":"SessionCreate","index":0,"version":1}"#,
        "SessionCreate 0: version should be a string"
      ),
      (
        #"{"type":"SessionCreate","index":0,"version":"1.0"}"#,
        "SessionCreate 0: version should be a semantic version"
      ),
      (
        #"{"type":"SessionCreateReply","index":0}"#, "SessionCreateReply 0: sessionToken is missing"
      ),
      (
        #"{"type":"SessionCreateReply","index":0,"error":{}}"#,
        "SessionCreateReply 0: error is invalid: message is missing"
      ),
      (
        #"{"type":"SessionCreateReply","index":0,"error":"no"}"#,
        "SessionCreateReply 0: error is invalid: not an object"
      ),
      (
        #"{"type":"SessionCreateReply","index":0,"error":{"message":"no","type":1}}"#,
        "SessionCreateReply 0: error is invalid: type should be a string"
      ),
      (#"{"type":"ScopeFetch","index":1}"#, "ScopeFetch 1: name is missing"),
      (#"{"type":"ScopeFetch","index":1,"name":null}"#, "ScopeFetch 1: name should be a string"),
      (
        #"{"type":"ScopeFetchReply","index":1,"scopeIndex":0}"#,
        "ScopeFetchReply 1: replyTo is missing"
      ),
      (
        #"{"type":"ScopeFetchReply","index":1,"replyTo":1}"#,
        "ScopeFetchReply 1: scopeIndex is missing"
      ),
      (
        #"{"type":"ScopeState","index":2,"scopeIndex":0,"fragments":[]}"#,
        "ScopeState 2: rootUUID is missing"
      ),
      (
        #"{"type":"ScopeState","index":2,"scopeIndex":0,"rootUUID":"x","fragments":[]}"#,
        "ScopeState 2: rootUUID should be a UUID"
      ),
      (#"{"type":"ScopeSync","index":2,"scopeIndex":0}"#, "ScopeSync 2: fragments is missing"),
      (
        #"{"type":"ScopeSync","index":2,"scopeIndex":0,"fragments":{}}"#,
        "ScopeSync 2: fragments should be an array"
      ),
      (
        #"{"type":"ScopeSync","index":2,"scopeIndex":0,"fragments":[null]}"#,
        "ScopeSync 2: fragments[0]: not an object"
      ),
      (
        #"{"type":"ScopeSync","index":2,"scopeIndex":0,"fragments":[],"atomic":null}"#,
        "ScopeSync 2: atomic should be a boolean"
      ),
      (
        #"{"type":"ScopeSync","index":2,"scopeIndex":0,"fragments":[],"atomic":1}"#,
        "ScopeSync 2: atomic should be a boolean"
      ),
      (
        #"{"type":"ScopeSync","index":2,"scopeIndex":0,"fragments":[],"procedure":null}"#,
        "ScopeSync 2: procedure should be a string"
      ),
      (
        #"{"type":"ScopeSync","index":2,"scopeIndex":0,"fragments":[],"procedure":"a"}"#,
        "ScopeSync 2: procedure should have the form Model.name"
      ),
      (
        #"{"type":"ScopeSync","index":2,"scopeIndex":0,"fragments":[],"procedure":"a.b.c"}"#,
        "ScopeSync 2: procedure should have the form Model.name"
      ),
      (
        #"{"type":"ScopeSyncReply","index":2,"replyTo":1}"#,
        "ScopeSyncReply 2: fragmentReplies is missing"
      ),
      (
        #"{"type":"ScopeSyncReply","index":2,"replyTo":1,"fragmentReplies":[{},{"error":true}]}"#,
        "ScopeSyncReply 2: fragmentReplies[1]: error is invalid: not an object"
      ),
      (
        #"{"type":"ScopeSyncReply","index":2,"replyTo":1,"fragmentReplies":[{"modifications":[]}]}"#,
        "ScopeSyncReply 2: fragmentReplies[0]: modifications should be an object"
      ),
      (
        #"{"type":"ScopeSyncReply","index":2,"replyTo":1,"fragmentReplies":[{"lost":["a",1]}]}"#,
        "ScopeSyncReply 2: fragmentReplies[0]: lost should be an array of strings"
      ),
    ])
  func badField(text: String, problem: String) throws {
    let json = try JSONValue(parsing: text)
    do throws(MessageError) {
      Issue.record("read \(try Message(json: json))")
    } catch {
      #expect(error.description == problem)
    }
  }

  @Test(
    "A number of any other kind than whole and not negative is refused",
    arguments: [
      #""1""#, "1.5", "-1", "null", "true", "[1]", "1e300", "9007199254740993.0",
      "18446744073709551615",
    ])
  func numbers(text: String) throws {
    let index = try JSONValue(parsing: #"{"type":"Ping","index":\#(text),"ack":1}"#)
    #expect(
      throws: MessageError.invalid(
        message: "Ping", index: nil, field: "index", problem: "should be a whole number from 0 up")
    ) { try Message(json: index) }
    let ack = try JSONValue(parsing: #"{"type":"Ping","index":4,"ack":\#(text)}"#)
    #expect(
      throws: MessageError.invalid(
        message: "Ping", index: 4, field: "ack", problem: "should be a whole number from 0 up")
    ) { try Message(json: ack) }
  }

  @Test("A whole number may be written as a fraction", arguments: ["3", "3.0", "30e-1", "0.3e1"])
  func integral(text: String) throws {
    let json = try JSONValue(parsing: #"{"type":"Ping","index":0,"ack":\#(text)}"#)
    #expect(try Message(json: json) == .ping(Ping(ack: 3)))
  }

  @Test("One bad fragment makes the message invalid; the error tells which, and of what message")
  func badFragment() throws {
    let json = try JSONValue(
      parsing: #"{"type":"ScopeSync","index":8,"scopeIndex":0,"fragments":["#
        + #"{"type":"change","uuid":"4d01cd3b-ae1a-429c-ae75-4c211b0adefa","clsName":"Shape","#
        + #""properties":{}},{"type":"change","uuid":"4d01cd3b-ae1a-429c-ae75-4c211b0adefa","#
        + #""clsName":"Shape"}]}"#)
    let error = MessageError.invalidElement(
      message: "ScopeSync", index: 8, field: "fragments", position: 1,
      error: .missing(field: "properties"))
    #expect(error.index == 8)
    #expect(throws: MessageError.inScope(0, error)) { try Message(json: json) }
  }

  @Test(
    "Versions are judged as semver does",
    arguments: [
      ("0.1.0", true), ("0.0.0", true), ("9.9.9", true), ("v1.2.3", true), ("1.0.0-beta.2", true),
      ("1.0.0-0a.b-c+build.007", true), ("1.0.0+001", true), ("10.20.30", true),
      ("", false), ("1", false), ("1.0", false), ("1.0.0.0", false), ("01.0.0", false),
      ("1.0.x", false), ("1..0", false), ("-1.0.0", false), ("vv1.0.0", false), ("1.0.0-", false),
      ("1.0.0-01", false), ("1.0.0-a..b", false), ("1.0.0+", false), ("1.0.0+a+b", false),
      ("1.0.9007199254740992", false), ("1.0.99999999999999999999", false), ("1.0.0-é", false),
    ])
  func versions(text: String, isValid: Bool) {
    #expect(SemanticVersion.isValid(text) == isValid)
  }
}
