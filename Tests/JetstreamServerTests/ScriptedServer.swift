import Jetstream
import JetstreamServer
import Testing

/// A client's engine whose server is the test.
final class ScriptedServer {
  let ticker = Ticker.manual()
  let canvas = Canvas()
  let scope: Scope
  private(set) var engine: ClientEngine!
  /// The token of each attempt to connect.
  private(set) var attempts: [String?] = []
  private(set) var disconnects = 0
  private(set) var statuses: [ClientStatus] = []
  private(set) var counts: [Int] = []
  private(set) var denials: [SyncError] = []
  private(set) var fetched: [Result<Void, SyncError>] = []
  private var sent: [Message] = []
  private var number = 0
  private(set) var now: Duration = .zero

  init() {
    scope = Scope(name: "Canvas", root: canvas, ticker: ticker)
    engine = ClientEngine(
      random: { 0.5 },
      perform: { [unowned self] action in
        switch action {
        case .connect(let number, let token):
          self.number = number
          attempts.append(token)
        case .send(let frame):
          for case .success(let message) in (try? Message.decodeFrame(frame)) ?? [] {
            sent.append(message)
          }
        case .disconnect: disconnects += 1
        }
      },
      report: { [unowned self] event in
        switch event {
        case .statusChanged(let status): statuses.append(status)
        case .waitingRepliesChanged(let count): counts.append(count)
        case .sessionDenied(let error): denials.append(error)
        default: break
        }
      })
  }

  /// What the client has sent since the last call.
  func takeSent() -> [Message] {
    defer { sent = [] }
    return sent
  }

  func connect() { engine.connect(params: ["user": 1], now: now) }

  func open() { engine.opened(number, now: now) }

  func fetch(_ scope: Scope? = nil, params: JSONValue = ["page": 2]) {
    engine.fetch(scope ?? self.scope, params: params, now: now) { [unowned self] in
      fetched.append($0)
    }
  }

  /// One frame with these messages.
  func receive(_ messages: Message...) {
    engine.received(number, .success(messages.map { .success($0) }), now: now)
  }

  func close(_ code: Int = 0, _ reason: String = "") {
    engine.closed(number, code: code, reason: reason, now: now)
  }

  func advance(by duration: Duration) {
    now += duration
    ticker.advance(by: duration)
    engine.advance(to: now)
  }

  func state(_ index: Int, scope: Scope? = nil, at scopeIndex: Int = 0) -> Message {
    let scope = scope ?? self.scope
    return .scopeState(
      ScopeState(
        index: index, scopeIndex: scopeIndex, rootUUID: scope.root!.uuid,
        fragments: scope.fullState()))
  }

  func sync(_ index: Int, _ properties: JSONObject) -> Message {
    .scopeSync(
      ScopeSync(
        index: index, scopeIndex: 0,
        fragments: [
          SyncFragment(.change, uuid: canvas.uuid, className: "Canvas", properties: properties)
        ]))
  }

  /// Connects, gets a session and fetches the scope; the server's next message has number 3.
  func join() {
    connect()
    open()
    fetch()
    receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret")))
    receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0)), state(2))
    _ = takeSent()
  }
}
