import Foundation
import Jetstream
import JetstreamServer
import Testing

/// Two engines of one server: one that creates the sessions, and one that has the scope, in channel 1.
@Suite("Channels of a server's session")
struct ServerChannelTests {
  private final class World {
    private(set) var front: ServerEngine!
    private(set) var back: ServerEngine!
    /// The frames that were sent on each connection.
    private(set) var sent: [Int: [String]] = [:]
    private(set) var closed: [Int: String] = [:]
    var joins: [ServerEngine.Join] = []
    var principal: Principal?
    let canvas = Canvas()
    /// The rights of all sessions; nil if all may do everything.
    var access: Result<ScopeAccess, WireError>?
    var judgesAtOnce = true

    init() {
      let scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
      func hooks(_ channel: Int?) -> ServerEngine.Hooks {
        var hooks = ServerEngine.Hooks(
          channel: { _ in channel },
          authenticate: { [unowned self] _, _ in .accepted(principal) },
          fetch: { _, _, _ in .success(scope) }, makeToken: { "token" },
          random: { 0.5 })
        hooks.access = { [unowned self] _, _, _ in access.map { .decided($0) } ?? .unguarded }
        return hooks
      }
      let perform = { [unowned self] (action: ServerEngine.Action) in
        switch action {
        case .send(let ids, let frame):
          for id in ids { sent[id, default: []].append(String(decoding: frame, as: UTF8.self)) }
        case .close(let id, _, let reason): closed[id] = closed[id] ?? reason
        case .join(let join): joins.append(join)
        case .encode(let scope, let fragments):
          back.encoded(FragmentsText(fragments), of: scope, now: .zero)
        case .judge: if judgesAtOnce { back.judge(now: .zero) }
        case .admit, .probe, .scope: break
        }
      }
      var configuration = ServerEngine.Configuration()
      configuration.channel = .init(of: 2)
      var frontHooks = hooks(1)
      frontHooks.sessionTakenAway = { [unowned self] in
        back.endSession($0.token, isTakenAway: true, now: .zero)
      }
      front = ServerEngine(configuration: configuration, hooks: frontHooks, perform: perform)
      configuration.channel = .init(number: 1, of: 2)
      back = ServerEngine(configuration: configuration, hooks: hooks(nil), perform: perform)
      back.host(scope)
    }

    func receive(_ text: String, on id: Int, by engine: ServerEngine? = nil) {
      let read = MessageFrame(Array(text.utf8))
      let frame = ServerEngine.Frame(messages: read.messages, isArray: text.hasPrefix("["))
      (engine ?? front).received([.frame(frame)], on: id, now: .zero)
    }

    func create(on id: Int) {
      front.opened(id, params: [:], now: .zero)
      receive(
        #"{"type":"SessionCreate","index":0,"version":"0.2.0","protocol":2,"params":{}}"#, on: id)
    }

    /// Lets the sessions join that were asked to.
    func join() {
      for join in joins {
        back.join(join, now: .zero)
        front.joined(join, now: .zero)
      }
      joins = []
    }

    func takeSent(_ id: Int) -> [String] { sent.removeValue(forKey: id) ?? [] }
  }

  private let world = World()
  private let fetch = #"{"type":"ScopeFetch","index":1,"name":"Canvas","params":{}}"#

  @Test("A fetch is answered with the channel once the other engine knows the session")
  func join() {
    world.create(on: 1)
    _ = world.takeSent(1)
    world.receive(fetch, on: 1)
    #expect(world.takeSent(1).isEmpty && world.joins.count == 1)
    world.join()
    #expect(
      world.takeSent(1) == [#"[{"type":"ScopeFetchReply","index":1,"replyTo":1,"channel":1}]"#])
    world.receive(#"{"channel":1,"messages":[\#(fetch)]}"#, on: 1, by: world.back)
    let granted =
      #"{"channel":1,"messages":[{"type":"ScopeFetchReply","index":1,"replyTo":1,"scopeIndex":1,"#
    #expect(world.takeSent(1).first?.hasPrefix(granted) == true)
    #expect(world.front.identity(on: 1).otherChannels == [1])
  }

  @Test("A resumed session has the claims of its new credentials in each channel")
  func claims() {
    func role(in engine: ServerEngine, on id: Int) -> JSONValue? {
      engine.identity(on: id).principal?.claims["role"]
    }
    world.principal = Principal("u", claims: ["role": "editor"])
    world.create(on: 1)
    world.receive(fetch, on: 1)
    world.join()
    #expect(role(in: world.back, on: 1) == "editor")
    world.principal = Principal("u", claims: ["role": "reader"])
    let token = ["sessiontoken": "token"]
    world.front.opened(2, params: token, now: .zero)
    world.back.opened(2, params: token, as: world.front.identity(on: 2).principal, now: .zero)
    #expect(role(in: world.front, on: 2) == "reader" && role(in: world.back, on: 2) == "reader")
  }

  @Test("Of two connections that resume a session, each engine keeps the later one")
  func order() {
    world.create(on: 1)
    world.receive(fetch, on: 1)
    world.join()
    let token = ["sessiontoken": "token"]
    for id in [2, 3] { world.front.opened(id, params: token, now: .zero) }
    for id in [3, 2] { world.back.opened(id, params: token, now: .zero) }
    #expect(world.closed.keys.sorted() == [1, 2])
    let ping = #"{"type":"Ping","index":0,"ack":0,"resendMissing":true}"#
    world.receive(#"{"channel":1,"messages":[\#(ping)]}"#, on: 3, by: world.back)
    #expect(world.takeSent(3).first?.hasPrefix(#"{"channel":1,"messages":[{"type":"Ping""#) == true)
  }

  @Test("A scope that was left in another channel is not given back without a question")
  func leftElsewhere() {
    world.access = .success(.readWrite)
    world.create(on: 1)
    world.receive(fetch, on: 1)
    world.join()
    func send(_ message: String) -> String {
      _ = world.takeSent(1)
      world.receive(#"{"channel":1,"messages":[\#(message)]}"#, on: 1, by: world.back)
      return world.takeSent(1).joined()
    }
    #expect(send(fetch).contains(#""scopeIndex":1"#))
    #expect(send(fetch.replacing(#""index":1"#, with: #""index":2"#)).contains(#""scopeIndex":1"#))
    _ = send(#"{"type":"ScopeLeave","index":3,"scopeIndex":1}"#)
    let again = send(fetch.replacing(#""index":1"#, with: #""index":4"#))
    #expect(again.contains(#""type":"not-now""#) && again.contains("channel 0"), "\(again)")
  }

  @Test(
    "A session that the app ends leaves nothing undecided in another channel",
    arguments: [true, false])
  func takenAway(isTakenAway: Bool) {
    world.judgesAtOnce = false
    world.create(on: 1)
    world.receive(fetch, on: 1)
    world.join()
    world.receive(#"{"channel":1,"messages":[\#(fetch)]}"#, on: 1, by: world.back)
    let change = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["likes": 5])
    var sync = ScopeSync(
      index: 2, scopeIndex: 1, fragments: Array(repeating: change, count: 5_000))
    sync.number = 1
    world.receive(
      #"{"channel":1,"messages":[\#(Message.scopeSync(sync).json.text)]}"#, on: 1, by: world.back)
    #expect(world.canvas.likes == 0)
    world.back.endSession("token", isTakenAway: isTakenAway, now: .zero)
    for _ in 0..<100 { world.back.judge(now: .zero) }
    #expect(world.canvas.likes == (isTakenAway ? 0 : 5))
  }

  @Test(
    "A fetch behind a message that ends the connection is put off, and so is one that cannot join")
  func putOff() {
    world.create(on: 1)
    world.receive(#"[{"type":"Ping","index":0,"ack":"x"},\#(fetch)]"#, on: 1)
    #expect(world.closed[1] != nil && world.joins.isEmpty)
    world.front.opened(2, params: ["sessiontoken": "token"], now: .zero)
    world.receive(#"{"type":"Ping","index":0,"ack":0,"resendMissing":true}"#, on: 2)
    let answer = world.takeSent(2).joined()
    #expect(answer.contains(#""type":"not-now""#) && answer.contains(#""replyTo":1"#), "\(answer)")
    world.receive(fetch.replacing(#""index":1"#, with: #""index":2"#), on: 2)
    let join = world.joins.removeLast()
    world.front.declined(join, now: .zero)
    #expect(world.takeSent(2).joined().contains(#""replyTo":2,"error":"#))
    #expect(world.front.identity(on: 2).otherChannels.isEmpty)
  }

  @Test("A client whose session the app ends gets the app's reason, whatever other channels do")
  func reason() {
    world.create(on: 1)
    world.receive(fetch, on: 1)
    world.join()
    #expect(world.front.endSession("token", telling: .rejected("You are blocked")))
    #expect(world.closed[1]?.contains("You are blocked") == true, "\(world.closed)")
    #expect(world.front.sessionCount == 0 && world.back.sessionCount == 0)
  }

  @Test("A session that has joined on a connection goes on with it when it is resumed there")
  func joinedFirst() {
    world.create(on: 1)
    world.receive(fetch, on: 1)
    world.join()
    world.back.opened(1, params: ["sessiontoken": "token"], now: .zero)
    #expect(world.closed.isEmpty)
  }

  @Test("A session that ends in one channel ends in the other")
  func end() {
    world.create(on: 1)
    world.receive(fetch, on: 1)
    world.join()
    world.front.endSession("token", now: .zero)
    #expect(world.front.sessionCount == 0 && world.back.sessionCount == 1)
    world.back.endSession("token", now: .zero)
    #expect(world.back.sessionCount == 0)
    #expect(world.closed[1] == "the session has ended in another channel")
  }
}
