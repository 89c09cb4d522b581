import Foundation
import Jetstream
import Testing

/// A conversation with a server of protocol 1: one made up from a seed, or the one that was recorded with the original
/// server, where the folder with data is there.
enum Transcript: Sendable, CustomTestStringConvertible {
  case made(seed: UInt64)
  case recorded(path: String)

  /// All that there are: some that are always the same, a fresh one, and the recorded one.
  static let all: [Transcript] =
    [1, 2, 3, .random(in: 4...1_000_000)].map { .made(seed: $0) }
    + (recording.map { [.recorded(path: $0)] } ?? [])

  /// The recording, in the folder that JETSTREAM_DATA names, or in `shared/data` beside the package.
  private static let recording: String? = {
    var folders = ProcessInfo.processInfo.environment["JETSTREAM_DATA"].map { [$0] } ?? []
    var place = URL(filePath: #filePath).deletingLastPathComponent()
    while folders.isEmpty || place.path != "/" {
      place.deleteLastPathComponent()
      folders.append(place.appending(path: "shared/data").path)
    }
    return folders.map { $0 + "/v1-transcript.jsonl" }
      .first { FileManager.default.isReadableFile(atPath: $0) }
  }()

  var testDescription: String {
    switch self {
    case .made(let seed): "made, seed \(seed)"
    case .recorded: "recorded"
    }
  }

  /// A JSON object for each thing that happens.
  func lines() throws -> [String] {
    switch self {
    case .made(let seed): SampleTranscript.lines(seed: seed)
    case .recorded(let path):
      try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init)
    }
  }
}

/// A made-up conversation of three clients with a server of protocol 1, in the form of the recorded one and with its
/// sections, for tests that run without that.
///
/// What the server says here follows from the protocol, not from our server: it numbers what it tells each session,
/// keeps that until it is acknowledged, tells others before it answers, and tells them of sets of which it has accepted
/// nothing. A seed decides shapes, values and who writes what, and always leads to the same lines.
private struct SampleTranscript {
  /// What the server knows of a session.
  private struct Session {
    var connection: String
    let token: String
    var isConnected = true
    var sent = 0
    var received = 0
    var written = 0
    var kept: [(index: Int, text: String)] = []
  }

  /// What a client writes, and the server's answer to it.
  private struct Attempt {
    let fragment: String
    /// The error's JSON; nil if the fragment is accepted.
    var error: String?
  }

  private var lines: [String] = []
  private var sessions: [String: Session] = [:]
  private var generator: Generator
  private let root: String
  /// The shapes that there are, each with its properties as JSON.
  private var shapes: [(uuid: String, properties: [(name: String, value: String)])] = []

  private init(seed: UInt64) {
    generator = Generator(state: seed)
    root = generator.uuid()
  }

  /// One line for each thing that happens, as JSON.
  fileprivate static func lines(seed: UInt64) -> [String] {
    var transcript = SampleTranscript(seed: seed)
    transcript.begin()
    transcript.edit()
    transcript.reject()
    transcript.ping()
    transcript.reorder()
    transcript.resume()
    transcript.failToBegin()
    transcript.sendNonsense()
    return transcript.lines
  }

  // MARK: The sections

  private mutating func begin() {
    note("1. session create, fetch, state")
    for client in ["A", "B"] { join(client) }
    note("2. add + change of root.shapes; reply to the author, broadcast to the other")
    for _ in 0..<2 + generator.roll(3) {
      let uuid = generator.uuid()
      let properties = ["x", "y", "width", "height", "color"].map { ($0, generator.number()) }
      shapes.append((uuid, properties))
      let list = shapes.map { "\"\($0.uuid)\"" }.joined(separator: ",")
      submit(
        "A",
        [
          Attempt(fragment: Self.fragment("add", uuid, "Shape", properties)),
          Attempt(fragment: Self.fragment("change", root, "Canvas", [("shapes", "[\(list)]")])),
        ])
    }
  }

  private mutating func edit() {
    note("3. both change, and a third client is told it all in its state")
    for _ in 0..<4 { change(by: generator.roll(2) == 0 ? "A" : "B") }
    join("C")
    for _ in 0..<3 { change(by: ["A", "B", "C"][generator.roll(3)]) }
  }

  private mutating func reject() {
    note("4. rejected fragments")
    let uuid = shapes[0].uuid
    let wrongType = #"{"message":"Not valid type at 'x', should be Number"}"#
    let text = Attempt(
      fragment: Self.fragment("change", uuid, "Shape", [("x", #""not a number""#)]),
      error: wrongType)
    let unknown = Attempt(
      fragment: Self.fragment("change", generator.uuid(), "Shape", [("x", generator.number())]),
      error: #"{"message":"ModelObject not found"}"#)
    let unnamed = Attempt(
      fragment: Self.fragment("change", uuid, "Shape", [("nope", generator.number())]),
      error: #"{"message":"No property at 'nope'"}"#)
    submit("A", [text, unknown, unnamed, accepted(shapes.count - 1)].shuffled(using: &generator))
    submit(
      "A",
      [Attempt(fragment: Self.fragment("change", uuid, "Shape", [("x", "true")]), error: wrongType)]
    )
    let index = number("A")
    receive("A", Self.sync(index, [accepted(0).fragment], scope: 7))
    sessions["A"]?.received = index
    reply(
      to: "A", index,
      [#"{"error":{"message":"Scope at index 7 was not found","type":"scope-index-not-found"}}"#])
  }

  private mutating func ping() {
    note("5. ping")
    acknowledge("A")
    resend("A")
    for _ in 0..<2 { change(by: "B") }
    resend("A")
  }

  private mutating func reorder() {
    note("6. duplicate, gap, batch")
    // Had before, so nobody says anything.
    receive("A", Self.sync(sessions["A"]!.written, []))
    sessions["A"]!.written += 10
    submit("A", [])
    let attempts = [accepted(0), accepted(0)]
    let indices = attempts.map { _ in number("A") }
    let texts = zip(indices, attempts).map { Self.sync($0, [$1.fragment]) }
    receive("A", "[" + texts.reversed().joined(separator: ",") + "]")
    for (index, attempt) in zip(indices, attempts) { take("A", index, [attempt]) }
  }

  private mutating func resume() {
    note("7. lost connection, header resume")
    let (url, token) = (Self.url, sessions["A"]!.token)
    let seen = sessions["A"]!.sent
    lose("A")
    for _ in 0..<2 { change(by: "B") }
    connect("A2", url, headers: ["X-Jetstream-SessionToken": token])
    sessions["A"]!.connection = "A2"
    sessions["A"]!.isConnected = true
    resend("A", seen: seen)
    change(by: "A")
    note("7b. query-string resume and bad token")
    lose("A")
    connect("A3", "\(url)?x-jetstream-sessiontoken=\(token)")
    sessions["A"]!.connection = "A3"
    sessions["A"]!.isConnected = true
    submit("A", [])
    connect("X", url, headers: ["X-Jetstream-SessionToken": "nonsense"])
    close(
      "X", code: 4096,
      reason: #"{"message":"Session token unrecognized","type":"session-token-unrecognized"}"#)
    connect("X2", "\(url)?X-Jetstream-SessionToken=\(token)")
    line("X2", "c2s", [("frame", Self.sync(21, []))])
    close("X2", code: 1006)
  }

  private mutating func failToBegin() {
    note("8. bad first messages")
    let words = #"{"message":"Could not parse message input, input was not JSON"}"#
    for (client, frame, reason) in [
      ("X3", "garbage", words), ("X4", #"{"type":"ScopeFetch","index":1,"name":"Canvas"}"#, ""),
      ("X5", #"{"type":"SessionCreate","index":0}"#, #"{"message":"Requires version"}"#),
      ("X6", #"[{"type":"SessionCreate","index":0,"version":"0.1.0"}]"#, ""),
    ] {
      connect(client, Self.url)
      line(client, "c2s", [("frame", frame)])
      close(client, code: reason.isEmpty ? 1006 : 4096, reason: reason)
    }
  }

  private mutating func sendNonsense() {
    note("9. unknown and malformed messages in a session")
    for frame in Self.nonsense { line("B", "c2s", [("frame", frame)]) }
    note("10. wait for the server inactivity ping")
    let ack = sessions["B"]!.received
    tell("B", [#"{"type":"Ping","index":0,"ack":\#(ack),"resendMissing":false}"#])
  }

  /// Frames that a client sends wrong on purpose, as in the recorded conversation.
  private static let nonsense = [
    "garbage", #"{"type":"Nope","index":7}"#,
    #"{"type":"ScopeSync","scopeIndex":0,"fragments":[]}"#,
    #"{"type":"ScopeSync","index":8,"scopeIndex":0,"fragments":[{"type":"change","#
      + #""uuid":"4d01cd3b-ae1a-429c-ae75-4c211b0adefa","properties":{"x":1}}]}"#,
    #"[{"type":"ScopeSync","index":9,"scopeIndex":0,"fragments":[]},{"type":"Nope","index":10}]"#,
  ]

  // MARK: What clients do

  private mutating func join(_ client: String) {
    let token = generator.token()
    sessions[client] = Session(connection: client, token: token)
    connect(client, Self.url)
    receive(client, #"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{}}"#)
    tell(client, [#"{"type":"SessionCreateReply","index":0,"sessionToken":"\#(token)"}"#])
    let index = number(client)
    receive(client, #"{"type":"ScopeFetch","index":\#(index),"name":"Canvas","params":{}}"#)
    sessions[client]?.received = index
    queue(client) {
      #"{"type":"ScopeFetchReply","index":\#($0),"replyTo":\#(index),"scopeIndex":0}"#
    }
    let list = shapes.map { "\"\($0.uuid)\"" }.joined(separator: ",")
    let all =
      [
        Self.fragment(
          "change", root, "Canvas", [("name", #""Shapes Demo""#), ("shapes", "[\(list)]")])
      ] + shapes.map { Self.fragment("add", $0.uuid, "Shape", $0.properties) }
    let text = all.joined(separator: ",")
    queue(client) { [root] in
      #"{"type":"ScopeState","index":\#($0),"scopeIndex":0,"rootUUID":"\#(root)","#
        + #""fragments":[\#(text)]}"#
    }
  }

  /// One client writes to one or two properties of a shape.
  private mutating func change(by client: String) {
    submit(client, [accepted(generator.roll(shapes.count))])
  }

  private mutating func accepted(_ shape: Int) -> Attempt {
    let names = generator.roll(2) == 0 ? [generator.roll(5)] : [0, 1]
    let values = names.map { (shapes[shape].properties[$0].name, generator.number()) }
    for (at, value) in zip(names, values) { shapes[shape].properties[at].value = value.1 }
    return Attempt(fragment: Self.fragment("change", shapes[shape].uuid, "Shape", values))
  }

  private mutating func submit(_ client: String, _ attempts: [Attempt]) {
    let index = number(client)
    receive(client, Self.sync(index, attempts.map(\.fragment)))
    take(client, index, attempts)
  }

  private mutating func acknowledge(_ client: String) {
    let ack = sessions[client]!.sent
    receive(client, #"{"type":"Ping","index":0,"ack":\#(ack),"resendMissing":false}"#)
    sessions[client]!.kept.removeAll { $0.index <= ack }
  }

  /// A client asks for what it has not had, which is what is kept behind `seen`.
  private mutating func resend(_ client: String, seen: Int? = nil) {
    let ack = seen ?? sessions[client]!.kept.first.map { $0.index - 1 } ?? sessions[client]!.sent
    receive(client, #"{"type":"Ping","index":0,"ack":\#(ack),"resendMissing":true}"#)
    sessions[client]!.kept.removeAll { $0.index <= ack }
    let received = sessions[client]!.received
    tell(
      client,
      [#"{"type":"Ping","index":0,"ack":\#(received),"resendMissing":true}"#]
        + sessions[client]!.kept.map(\.text))
  }

  /// The next number of a client's messages.
  private mutating func number(_ client: String) -> Int {
    sessions[client]!.written += 1
    return sessions[client]!.written
  }

  // MARK: What the server does

  /// Tells the others what is accepted, and then its author what has become of it.
  private mutating func take(_ client: String, _ index: Int, _ attempts: [Attempt]) {
    sessions[client]!.received = index
    let accepted = attempts.filter { $0.error == nil }.map(\.fragment).joined(separator: ",")
    for other in sessions.keys.sorted() where other != client {
      queue(other) {
        #"{"type":"ScopeSync","index":\#($0),"scopeIndex":0,"fragments":[\#(accepted)]}"#
      }
    }
    reply(to: client, index, attempts.map { $0.error.map { #"{"error":\#($0)}"# } ?? "{}" })
  }

  private mutating func reply(to client: String, _ index: Int, _ replies: [String]) {
    let list = replies.joined(separator: ",")
    queue(client) {
      #"{"type":"ScopeSyncReply","index":\#($0),"replyTo":\#(index),"fragmentReplies":[\#(list)]}"#
    }
  }

  /// Numbers a message, keeps it, and sends it if there is a connection.
  private mutating func queue(_ client: String, _ message: (Int) -> String) {
    sessions[client]!.sent += 1
    let text = message(sessions[client]!.sent)
    sessions[client]!.kept.append((sessions[client]!.sent, text))
    if sessions[client]!.isConnected { tell(client, [text]) }
  }

  private mutating func tell(_ client: String, _ messages: [String]) {
    let frame = "[" + messages.joined(separator: ",") + "]"
    line(sessions[client]!.connection, "s2c", [("frame", frame)])
  }

  // MARK: Texts

  private static let url = "ws://127.0.0.1:3100/"

  private static func sync(_ index: Int, _ fragments: [String], scope: Int = 0) -> String {
    #"{"type":"ScopeSync","index":\#(index),"scopeIndex":\#(scope),"fragments":["#
      + fragments.joined(separator: ",") + "]}"
  }

  private static func fragment(
    _ type: String, _ uuid: String, _ name: String, _ properties: [(name: String, value: String)]
  ) -> String {
    let list = properties.map { "\"\($0.name)\":\($0.value)" }.joined(separator: ",")
    return #"{"type":"\#(type)","uuid":"\#(uuid)","clsName":"\#(name)","properties":{\#(list)}}"#
  }

  // MARK: Lines

  private mutating func note(_ text: String) { line("-", "note", [("text", text)]) }

  private mutating func receive(_ client: String, _ frame: String) {
    line(sessions[client]!.connection, "c2s", [("frame", frame)])
  }

  private mutating func connect(
    _ client: String, _ url: String, headers: [String: String] = [:]
  ) {
    let object = JSONObject(headers.map { ($0, .string($1)) })
    line(client, "connect", [("url", url)], ["headers": .object(object)])
  }

  /// A client's connection breaks.
  private mutating func lose(_ client: String) {
    close(sessions[client]!.connection, code: 1006)
    sessions[client]!.isConnected = false
  }

  private mutating func close(_ client: String, code: Int64, reason: String = "") {
    line(client, "close", [("reason", reason)], ["code": .integer(code)])
  }

  private mutating func line(
    _ client: String, _ direction: String, _ texts: [(String, String)],
    _ more: [String: JSONValue] = [:]
  ) {
    let seconds = JSONValue.double(Double(lines.count) / 100)
    let members: [(String, JSONValue)] =
      [("t", seconds), ("client", .string(client)), ("dir", .string(direction))]
      + texts.map { ($0, .string($1)) } + more.map { ($0, $1) }
    lines.append(JSONValue.object(JSONObject(members)).text)
  }
}

/// Chance (SplitMix64).
private struct Generator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  mutating func roll(_ count: Int) -> Int { Int.random(in: 0..<count, using: &self) }

  /// A number as JSON has it, with and without a fraction.
  mutating func number() -> String {
    let whole = roll(2000) - 1000
    return roll(3) == 0 ? "\(Double(whole) + 0.5)" : "\(whole)"
  }

  mutating func uuid() -> String {
    func bytes() -> UInt8 { UInt8(truncatingIfNeeded: next()) }
    let id = UUID(
      uuid: (
        bytes(), bytes(), bytes(), bytes(), bytes(), bytes(), bytes() & 0x0F | 0x40, bytes(),
        bytes() & 0x3F | 0x80, bytes(), bytes(), bytes(), bytes(), bytes(), bytes(), bytes()
      ))
    return id.uuidString.lowercased()
  }

  mutating func token() -> String {
    let letters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    return String((0..<86).map { _ in letters[roll(letters.count)] })
  }
}
