import Jetstream
import JetstreamServer
import JetstreamWebSocket
import Testing

/// A submission that is wrong, and what the answer has to say. `$ROOT` and `$SHAPE` stand for the
/// canvas and its shape, `$NEW` for a UUID that nobody has.
struct BadFragment: Sendable, CustomTestStringConvertible {
  let kind: String
  let target: String
  let properties: String
  let answer: String

  init(_ kind: String, _ target: String, _ properties: String, _ answer: String) {
    self.kind = kind
    self.target = target
    self.properties = properties
    self.answer = answer
  }

  var testDescription: String { "\(kind) \(target) \(properties)" }

  static let new = "aaaaaaaa-0000-4000-8000-000000000001"

  @MainActor
  func fill(_ text: String, _ room: LiveRoom) -> String {
    text.replacing("$ROOT", with: room.root).replacing("$SHAPE", with: room.shape)
      .replacing("$NEW", with: Self.new)
  }

  @MainActor
  func json(_ room: LiveRoom) -> String {
    let parts = target.split(separator: " ")
    return fill(
      #"{"type":"\#(kind)","uuid":"\#(parts[1])","clsName":"\#(parts[0])","properties":"#
        + properties + "}", room)
  }
}

@Suite("Messages that make no sense, while others keep working", .live, .timeLimit(.minutes(5)))
@MainActor
struct HostileMessageTests {
  @Test(
    "A wrong fragment is answered with object and property",
    arguments: [
      BadFragment("add", "Nope $NEW", "{}", "No such class type 'Nope' (Nope $NEW)"),
      .init("change", "Shape $SHAPE", #"{"nope":1}"#, "No property at 'nope' (Shape $SHAPE)"),
      .init("change", "Shape $SHAPE", #"{"x":1,"nope":1}"#, "No property at 'nope' (Shape $SHAPE)"),
      .init("change", "Shape $SHAPE", #"{"isHovered":true}"#, "'isHovered' (Shape $SHAPE)"),
      .init("change", "Shape $SHAPE", #"{"x":"5"}"#, "Not valid type at 'x'"),
      .init("change", "Shape $SHAPE", #"{"x":true}"#, "Not valid type at 'x'"),
      .init("change", "Shape $SHAPE", #"{"x":{"a":[1]}}"#, "Not valid type at 'x'"),
      .init("change", "Shape $SHAPE", #"{"label":5}"#, "Not valid type at 'label'"),
      .init("change", "Shape $SHAPE", #"{"tags":5}"#, "Not valid type at 'tags'"),
      .init("change", "Shape $SHAPE", #"{"tags":[1,"a"]}"#, "Not valid type at 'tags'"),
      .init(
        "change", "Shape $SHAPE", #"{"tags":[9223372036854775808]}"#, "at 'tags', should be array"),
      .init("change", "Canvas $ROOT", #"{"name":false}"#, "Not valid type at 'name'"),
      .init(
        "change", "Canvas $ROOT", #"{"selected":"$NEW"}"#, "No such ModelObject '$NEW' at 'sel"),
      .init("change", "Canvas $ROOT", #"{"selected":5}"#, "'selected' as non-UUID (Canvas $ROOT)"),
      .init(
        "change", "Canvas $ROOT", #"{"selected":"me"}"#, "'selected' as non-UUID (Canvas $ROOT"),
      .init("change", "Canvas $ROOT", #"{"selected":"$ROOT"}"#, "is a Canvas, should be a Shape"),
      .init("change", "Canvas $ROOT", #"{"shapes":["$ROOT"]}"#, "'shapes' is a Canvas"),
      .init(
        "change", "Canvas $ROOT", #"{"shapes":["$NEW"]}"#, "No such ModelObject '$NEW' at 'sha"),
      .init(
        "change", "Canvas $ROOT", #"{"shapes":["$SHAPE","$SHAPE"]}"#, "occurs twice at 'shapes"),
      .init(
        "change", "Canvas $ROOT", #"{"shapes":null}"#, "without array value at 'shapes' (Canva"),
      .init("change", "Canvas $ROOT", #"{"shapes":{}}"#, "without array value at 'shapes' (Canvas"),
      .init("change", "Canvas $ROOT", #"{"shapes":[1]}"#, "'shapes', should be array of UUIDs"),
      .init("change", "Shape $NEW", #"{"x":1}"#, "ModelObject not found (Shape $NEW)"),
      .init(
        "add", "Shape $NEW", #"{"x":1}"#, "No parents, parent sync fragment failed (Shape $NEW)"),
      .init("add", "Shape $NEW", #"{"x":[]}"#, "Not valid type at 'x', should be"),
      .init("add", "Canvas $SHAPE", "{}", "already exists: it is a Shape, not a Canvas"),
    ])
  func wrongFragments(bad: BadFragment) async throws {
    let room = try await LiveRoom()
    let answer = bad.fill(bad.answer, room)
    let replies = try await room.withstand {
      let peer = try await BadPeer.joined(port: room.port)
      let text = bad.json(room)
      try peer.send(#"{"type":"ScopeSync","index":2,"scopeIndex":0,"fragments":[\#(text)]}"#)
      return try await peer.replies(to: 2)
    }
    try #require(replies.count == 1)
    let message = try #require(replies[0].error?.message)
    #expect(message.contains(answer), "\(message)")
    #expect(message.contains(bad.fill(bad.target, room)), "\(message)")
  }

  @Test(
    "A field of the wrong type is answered, and the session goes on",
    arguments: [
      (#""scopeIndex":"0","fragments":[]"#, "ScopeSync 2: scopeIndex should be a whole number"),
      (#""scopeIndex":1.5,"fragments":[]"#, "scopeIndex should be a whole number"),
      (#""scopeIndex":7,"fragments":[$F]"#, "Scope at index 7 was not found"),
      (#""fragments":[]"#, "scopeIndex is missing"),
      (#""scopeIndex":0"#, "fragments is missing"),
      (#""scopeIndex":0,"fragments":{}"#, "fragments should be an array"),
      (#""scopeIndex":0,"fragments":[5]"#, "fragments[0]: not an object"),
      (#""scopeIndex":0,"fragments":[$F],"atomic":1"#, "atomic should be a boolean"),
      (#""scopeIndex":0,"fragments":[$F],"procedure":5"#, "procedure should be a string"),
      (##""scopeIndex":0,"fragments":[$F],"procedure":"a""##, "procedure should have the form"),
      (##""scopeIndex":0,"fragments":[$F],"procedure":"Canvas.wipe""##, "no procedure Canvas.wipe"),
      (#""scopeIndex":0,"fragments":[{"type":"delete"}]"#, "fragments[0]: type should be"),
      (#""scopeIndex":0,"fragments":[{"type":"add","uuid":5}]"#, "uuid should be a string"),
      (#""scopeIndex":0,"fragments":[{"type":"add","uuid":"x"}]"#, "uuid should be a UUID"),
      (#""scopeIndex":0,"fragments":[{"type":"add","uuid":"$U"}]"#, "clsName is missing"),
      (#""scopeIndex":0,"fragments":[{"type":"add","uuid":"$U","clsName":1}]"#, "clsName should"),
      (
        #""scopeIndex":0,"fragments":[{"type":"add","uuid":"$U","clsName":"Shape"}]"#,
        "properties is"
      ),
      (
        #""scopeIndex":0,"fragments":[{"type":"add","uuid":"$U","clsName":"Shape","properties":null}]"#,
        "properties should be an object"
      ),
    ])
  func wrongFields(fields: String, answer: String) async throws {
    let room = try await LiveRoom()
    let change =
      #"{"type":"change","uuid":"\#(room.shape)","clsName":"Shape","properties":{"x":1}}"#
    let filled = fields.replacing("$F", with: change).replacing("$U", with: BadFragment.new)
    let (replies, later) = try await room.withstand {
      let peer = try await BadPeer.joined(port: room.port)
      try peer.send(#"{"type":"ScopeSync","index":2,\#(filled)}"#)
      let replies = try await peer.replies(to: 2)
      try peer.send(#"{"type":"ScopeSync","index":3,"scopeIndex":0,"fragments":[]}"#)
      return (replies, try await peer.replies(to: 3))
    }
    #expect(replies.first?.error?.message.contains(answer) == true, "\(replies)")
    #expect(later.isEmpty)
  }

  @Test(
    "A message that cannot be answered ends the connection",
    arguments: [
      (#"{"type":"ScopeSync","scopeIndex":0,"fragments":[]}"#, "index is missing"),
      (#"{"type":"ScopeSync","index":"2","scopeIndex":0,"fragments":[]}"#, "index should be"),
      (#"{"type":"ScopeSync","index":-1,"scopeIndex":0,"fragments":[]}"#, "index should be"),
      (#"{"type":"Ping","index":0,"ack":"all"}"#, "ack should be"),
      (#"{"type":"Ping","index":0}"#, "ack is missing"),
      (#"{"index":2}"#, "type is missing"),
      (#"{"type":5,"index":2}"#, "type should be a string"),
      ("[[]]", "not an object"),
    ])
  func unanswerable(text: String, problem: String) async throws {
    let room = try await LiveRoom()
    let status = try await room.withstand {
      let peer = try await BadPeer.joined(port: room.port)
      try peer.send(text)
      return await peer.end()
    }
    #expect(status?.code == 1007)
    #expect(status?.reason.contains(problem) == true, "\(status?.reason ?? "")")
  }

  @Test("A numbered message of an unknown type is not asked for again")
  func unknownNumberedType() async throws {
    let room = try await LiveRoom()
    let answer = try await room.withstand {
      let peer = try await BadPeer(port: room.port)
      try peer.send(#"{"type":"SessionCreate","index":0,"version":"0.1.0","protocol":2}"#)
      _ = try await peer.next { $0.type == "SessionCreateReply" }
      try peer.send(#"{"type":"Dance","index":1}"#)
      try peer.send(#"{"type":"Ping","index":0,"ack":0,"sent":1}"#)
      try peer.send(#"{"type":"ScopeFetch","index":2,"name":"Canvas"}"#)
      return try await peer.next { message in
        if case .ping(let ping) = message { ping.resendMissing } else { true }
      }
    }
    #expect(answer.type == "ScopeFetchReply")
  }

  @Test("What a newer version may say is skipped or tolerated")
  func unknownThings() async throws {
    let room = try await LiveRoom()
    let (fetch, replies) = try await room.withstand {
      let peer = try await BadPeer.joined(port: room.port)
      try peer.send(#"{"type":"Dance","index":2,"steps":[1]}"#)
      try peer.send(#"{"type":"SessionCreate","index":2,"version":"0.1.0"}"#)
      try peer.send(#"{"type":"ScopeFetch","index":3,"name":5}"#)
      let fetch = try await peer.next { $0.type == "ScopeFetchReply" }
      try peer.send(
        #"{"type":"ScopeSync","index":4,"scopeIndex":0,"mood":{"a":[null]},"fragments":[{"type":"#
          + #""change","uuid":"\#(room.shape)","clsName":"Shape","properties":{"x":0},"why":1}]}"#)
      return (fetch, try await peer.replies(to: 4))
    }
    #expect(room.log.contains { $0.contains("unknown message type \"Dance\"") })
    guard case .scopeFetchReply(let reply) = fetch else { return }
    #expect(reply.error?.message.contains("name should be a string") == true)
    #expect(replies == [FragmentReply()])
  }
}
