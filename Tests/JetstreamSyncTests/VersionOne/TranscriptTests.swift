import Foundation
import Jetstream
import JetstreamServer
import Testing

/// Replays conversations with the server of protocol 1: a recorded one where it is there, and others of its form.
///
/// What our server does otherwise, on purpose:
/// 1. It sends nothing to others when it has rejected everything, or there was nothing in it. They
///    got `fragments: []`. So the numbers of later messages differ; they are not compared.
/// 2. Its fragment errors name the object behind the words of the old server, and its errors for a
///    whole message or frame say more.
/// 3. It answers messages that it cannot understand, or closes, where the old one was silent.
/// 4. Where the old one sent an illegal close frame, it closes with 4096.
/// 5. It tells a client that does not rebase its own value again where that client may have been
///    told another one since: a `ScopeSync` directly behind the reply.
/// 6. It takes a query parameter for the token only if the rest of its name is in lower case, as the
///    old one does.
///
/// Since the numbers differ, the acknowledgements of the recorded clients are translated.
@Suite("Conversations with the old server")
struct TranscriptTests {
  final class Canvas: ModelObject {
    @Property var name: String? = "Shapes Demo"
    @Property var shapes: ModelArray<Shape> = []
  }

  final class Shape: ModelObject {
    @Property var x: Double?
    @Property var y: Double?
    @Property var width: Double?
    @Property var height: Double?
    @Property var color: Double?
  }

  private struct Line {
    let client: String
    let direction: String
    let object: JSONObject

    init?(_ text: Substring) {
      guard case .object(let object)? = try? JSONValue(parsing: String(text)),
        case .string(let client)? = object["client"],
        case .string(let direction)? = object["dir"]
      else { return nil }
      self.client = client
      self.direction = direction
      self.object = object
    }

    func text(_ key: String) -> String {
      if case .string(let text)? = object[key] { text } else { "" }
    }
  }

  /// The server with the recorded clients, which are told apart by the ids of their connections.
  private final class Replay {
    var sent: [String: [Message]] = [:]
    var closed: [String: (code: Int, reason: String)] = [:]
    var ids: [String: Int] = [:]
    var tokens: [String]
    let scope: Scope
    var server: ServerEngine!
    var now: Duration = .zero

    init(tokens: [String]) {
      self.tokens = tokens
      scope = Scope(name: "Canvas", root: Canvas(), ticker: Ticker.manual())
      let hooks = ServerEngine.Hooks(
        fetch: { [unowned self] _, _, _ in .success(scope) },
        makeToken: { [unowned self] in self.tokens.removeFirst() }, random: { 0.5 })
      server = ServerEngine(hooks: hooks) { [unowned self] in perform($0) }
      server.host(scope)
    }

    private func client(_ id: Int) -> String { ids.first { $0.value == id }?.key ?? "" }

    private func perform(_ action: ServerEngine.Action) {
      switch action {
      case .send(let ids, let frame):
        #expect(Message.isArrayFrame(frame))
        for case .success(let message) in (try? Message.decodeFrame(frame)) ?? [] {
          for id in ids { sent[client(id), default: []].append(message) }
        }
      case .close(let id, let code, let reason): closed[client(id)] = (code, reason)
      case .encode(let scope, let fragments):
        server.encoded(FragmentsText(fragments), of: scope, now: now)
      case .judge: server.judge(now: now)
      case .admit, .probe, .join, .scope: break
      }
    }

    func play(_ line: Line) {
      switch line.direction {
      case "connect":
        ids[line.client] = ids.count + 1
        server.opened(ids.count, params: Self.params(line), now: now)
      case "c2s":
        let bytes = Array(line.text("frame").utf8)
        server.received(
          [
            .frame(
              .init(messages: InMemoryWorld.decode(bytes), isArray: Message.isArrayFrame(bytes)))
          ], on: ids[line.client]!, now: now)
      case "close" where closed[line.client] == nil:
        server.closed(ids[line.client]!, now: now)
      default: break
      }
    }

    private static func params(_ line: Line) -> [String: String] {
      if case .object(let headers)? = line.object["headers"],
        case .string(let token)? = headers["X-Jetstream-SessionToken"]
      {
        return ["sessiontoken": token]
      }
      let query = line.text("url").split(separator: "?").dropFirst().first ?? ""
      let parts = query.split(separator: "=")
      guard parts.count == 2 else { return [:] }
      return [String(parts[0].dropFirst("x-jetstream-".count)): String(parts[1])]
    }
  }

  /// What is compared of a message: everything but numbers of messages, the root's UUID and the ends
  /// of error texts.
  private func essence(_ message: Message, root: UUID) -> String? {
    switch message {
    case .ping(let ping): return "Ping \(ping.resendMissing)"
    case .scopeSync(let sync) where sync.fragments.isEmpty: return nil
    case .scopeSyncReply(let reply):
      let words = reply.fragmentReplies.map { reply in
        reply.error.map { $0.message.split(separator: " (").first.map(String.init) ?? "" } ?? "ok"
      }
      return "reply to \(reply.replyTo): \(words)"
    default:
      guard case .object(var object) = message.json else { return nil }
      object["index"] = nil
      return JSONValue.object(object).canonicalText.replacing(root.wire, with: "root")
    }
  }

  @Test("Our server says what the old one said", arguments: Transcript.all)
  func replay(transcript: Transcript) throws {
    var lines = try transcript.lines().compactMap { Line($0[...]) }
    // Difference 3: these are answered or end the connection; see the tests of bad messages.
    if let cut = lines.firstIndex(where: { $0.text("text").hasPrefix("9.") }) {
      lines.removeSubrange(cut...)
    }
    var expected: [String: [Message]] = [:]
    for line in lines where line.direction == "s2c" {
      for message in try Message.decodeFrame(Array(line.text("frame").utf8)) {
        expected[line.client, default: []].append(try message.get())
      }
    }
    let tokens = ["A", "B", "C"].compactMap { client in
      expected[client]?.lazy.compactMap {
        if case .sessionCreateReply(let reply) = $0 { reply.sessionToken } else { nil }
      }.first
    }
    let replay = Replay(tokens: tokens)
    let root = try #require(replay.scope.root)
    let oldRoot = expected["A"]!.lazy.compactMap {
      if case .scopeState(let state) = $0 { state.rootUUID } else { nil }
    }.first!
    let recorded = oldRoot.wire
    for line in lines {
      var object = line.object
      if line.direction == "c2s" {
        let frame = line.text("frame").replacing(recorded, with: root.uuid.wire)
        object["frame"] = .string(
          translateAcknowledgement(
            frame, of: line.client, expected, replay.sent, oldRoot, root.uuid))
      }
      replay.play(Line(JSONValue.object(object).text[...])!)
    }
    for (client, messages) in expected {
      let wanted = messages.compactMap { essence($0, root: oldRoot) }
      let found = (replay.sent[client] ?? []).compactMap { essence($0, root: root.uuid) }
      #expect(withoutCorrections(found, wanted) == wanted, "client \(client)")
    }
    for line in lines where line.direction == "close" && line.text("reason").hasPrefix("{") {
      let closed = replay.closed[line.client]
      #expect(closed?.code == 4096)
      let wanted = try WireError(json: JSONValue(parsing: line.text("reason")))
      let got = try WireError(json: JSONValue(parsing: closed?.reason ?? ""))
      #expect(got.type == wanted.type && !got.message.isEmpty)
    }
    // Difference 4.
    for client in ["X2", "X4", "X6"] {
      #expect(replay.closed[client]?.code == 4096)
      #expect(replay.closed[client]?.reason.contains("unrecognized-handshake") == true)
    }
  }

  /// The ping with the number that our server gave to the message that the old one's number means.
  /// A client that resumed goes on under another name.
  private func translateAcknowledgement(
    _ frame: String, of client: String, _ expected: [String: [Message]],
    _ sent: [String: [Message]], _ oldRoot: UUID, _ root: UUID
  ) -> String {
    guard case .success(.ping(var ping))? = try? Message.decodeFrame(Array(frame.utf8)).first else {
      return frame
    }
    let name = String(client.prefix(1))
    guard let old = expected[name]?.first(where: { $0.index == ping.ack && ping.ack > 0 }),
      let meant = essence(old, root: oldRoot),
      let ours = sent[name]?.last(where: { essence($0, root: root) == meant })
    else { return frame }
    ping.ack = ours.index
    return Message.ping(ping).json.text
  }

  /// What our server said, without what it tells again where the old one said nothing: difference 5.
  private func withoutCorrections(_ found: [String], _ wanted: [String]) -> [String] {
    var rest = wanted[...]
    return found.filter { text in
      if text == rest.first {
        rest.removeFirst()
        return true
      }
      return !text.contains(#""type":"ScopeSync""#)
    }
  }
}

extension UUID {
  fileprivate var wire: String { uuidString.lowercased() }
}
