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
  /// Called with each status.
  var onStatus: ((ClientStatus) -> Void)?
  /// Called for each frame that the client sends.
  var onSend: (() -> Void)?
  /// Called with each diagnostic.
  var onDiagnostic: ((Diagnostic) -> Void)?
  /// The tokens of the sessions that were reported.
  private(set) var reportedTokens: [String] = []
  private(set) var counts: [Int] = []
  private(set) var denials: [SyncError] = []
  private(set) var fetched: [Result<Void, SyncError>] = []
  private(set) var frames: [[UInt8]] = []
  private var sent: [Message] = []
  private var number = 0
  private(set) var now: Duration = .zero
  /// The number of bytes that have arrived on the connection.
  var arrived = 0
  private(set) var rejections: [String] = []
  private(set) var historyLosses = 0
  /// The number of times that a scope was reported as no longer synced.
  private(set) var leaves = 0
  /// The sync states of the scope that were reported.
  private(set) var states: [SyncState] = []
  private(set) var diagnostics: [String] = []
  /// The number of the server's next message, where the test does not give it.
  private(set) var nextIndex = 3

  /// Without a root of its own the scope has a ``Canvas``.
  init(root: ModelObject? = nil, configuration: ClientEngine.Configuration = .init()) {
    scope = Scope(name: "Canvas", root: root ?? canvas, ticker: ticker)
    engine = ClientEngine(
      configuration: configuration, random: { 0.5 },
      perform: { [unowned self] action in
        switch action {
        case .connect(let number, let token):
          self.number = number
          attempts.append(token)
        case .send(let frame):
          frames.append(frame)
          for case .success(let message) in (try? Message.decodeFrame(frame)) ?? [] {
            sent.append(message)
          }
          onSend?()
        case .disconnect: disconnects += 1
        }
      },
      report: { [unowned self] event in
        switch event {
        case .statusChanged(let status):
          statuses.append(status)
          onStatus?(status)
        case .sessionCreated(let token): reportedTokens.append(token)
        case .waitingRepliesChanged(let count): counts.append(count)
        case .sessionDenied(let error): denials.append(error)
        case .rejected(_, let fragment, let error, _):
          rejections.append("\(fragment.className): \(error.message)")
        case .historyLost: historyLosses += 1
        case .left: leaves += 1
        case .stateChanged(let scope):
          if scope === self.scope, let state = engine?.state(of: scope) { states.append(state) }
        case .diagnostic(let diagnostic):
          diagnostics.append("\(diagnostic)")
          onDiagnostic?(diagnostic)
        default: break
        }
      })
  }

  /// What the client has sent since the last call.
  func takeSent() -> [Message] {
    defer { sent = [] }
    return sent
  }

  /// The frames that the client has sent since the last call, as text.
  func takeFrames() -> [String] {
    defer { (frames, sent) = ([], []) }
    return frames.map { String(decoding: $0, as: UTF8.self) }
  }

  func connect() { engine.connect(params: ["user": 1], now: now) }

  func open() { engine.opened(number, now: now) }

  func fetch(_ scope: Scope? = nil, params: JSONValue = ["page": 2]) {
    engine.fetch(scope ?? self.scope, params: params, now: now) { [unowned self] in
      fetched.append($0)
    }
  }

  /// One frame with these messages.
  func receive(_ messages: Message..., channel: Int = 0, size: Int = 0) {
    engine.received(
      number, .success(messages.map { .success($0) }), channel: channel, size: size,
      arrived: arrived, now: now)
  }

  func close(_ code: Int = 0, _ reason: String = "", isPermanent: Bool = false) {
    engine.closed(number, code: code, reason: reason, isPermanent: isPermanent, now: now)
  }

  func advance(by duration: Duration) {
    now += duration
    ticker.advance(by: duration)
    engine.advance(to: now, arrived: arrived)
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

  // MARK: Version 2

  /// Connects and fetches in version 2; the state is the one of this place.
  func joinAtPosition(_ position: ScopePosition) {
    connect()
    open()
    fetch()
    receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    grant(position)
    _ = takeSent()
  }

  /// The session expires, and there is another one; the scope is not granted yet.
  func loseSession() {
    close(4097)
    advance(by: .seconds(1))
    open()
    receive(.sessionCreateReply(SessionCreateReply(sessionToken: "next", protocol: 2)))
  }

  /// Grants the scope with an empty canvas or another state; the server's next message has number 3.
  func grant(_ position: ScopePosition, _ state: [SyncFragment]? = nil) {
    let root = scope.root!.uuid
    let empty = SyncFragment(
      .change, uuid: root, className: "Canvas",
      properties: ["name": .null, "shapes": [], "hidden": []])
    receive(
      .scopeFetchReply(
        ScopeFetchReply(
          index: 1, replyTo: 1, scopeIndex: 0, standing: ScopeStanding(position: position))),
      .scopeState(
        ScopeState(index: 2, scopeIndex: 0, rootUUID: root, fragments: state ?? [empty])))
    nextIndex = 3
  }

  // MARK: Change sets

  /// The change sets that the client has sent since the last call.
  func takeSyncs() -> [ScopeSync] {
    takeSent().compactMap { if case .scopeSync(let sync) = $0 { sync } else { nil } }
  }

  /// One frame with these messages, which get the server's next numbers.
  func deliver(_ messages: [Message]) {
    let stamped = messages.map { message in
      var message = message
      message.index = nextIndex
      nextIndex += 1
      return Result<Message, MessageError>.success(message)
    }
    engine.received(number, .success(stamped), now: now)
  }

  /// The replies to one message.
  func reply(to index: Int, _ replies: FragmentReply...) {
    deliver([.scopeSyncReply(ScopeSyncReply(replyTo: index, fragmentReplies: replies))])
  }

  /// What others have changed.
  func tell(_ fragments: SyncFragment...) {
    deliver([.scopeSync(ScopeSync(scopeIndex: 0, fragments: fragments))])
  }

  /// One frame as text; `#` stands for the server's next number.
  func receive(text: String) {
    let text = text.split(separator: "#", omittingEmptySubsequences: false)
      .joined(separator: "\(nextIndex)")
    nextIndex += 1
    engine.received(number, Message.frame(Array(text.utf8)), now: now)
  }

  /// The session expires, and the next one begins with this state.
  func replaceSession(_ fragments: [SyncFragment]) {
    close(4097)
    advance(by: .seconds(1))
    open()
    receive(.sessionCreateReply(SessionCreateReply(sessionToken: "next")))
    receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0)),
      .scopeState(
        ScopeState(
          index: 2, scopeIndex: 0, rootUUID: fragments[0].uuid, fragments: fragments)))
    nextIndex = 3
  }

  /// Lets go of the engine, as an app does that forgets its client.
  func release() { engine = nil }
}

extension ClientEngine.Configuration {
  /// For servers that decide sets in any order, to see what pending sets do to each other.
  static var anyOrder: ClientEngine.Configuration {
    var result = ClientEngine.Configuration()
    result.answersAreOrdered = false
    return result
  }
}

/// What a handle has told, and how often.
final class Fate {
  let handle: ChangeSetHandle
  private(set) var states: [ChangeSetHandle.State] = []
  private(set) var ends: [ChangeSetError?] = []

  /// Whether the handle could tell anything: it was not decided yet when this was made.
  private let wasOpen: Bool

  init(_ handle: ChangeSetHandle) {
    self.handle = handle
    wasOpen = !handle.state.isFinal
    handle.onStateChange.listen { [weak self] in self?.states.append($0) }
    handle.whenFinished { [weak self] in self?.ends.append($0) }
  }

  /// Whether everything was told that belongs to the state, once.
  var isConsistent: Bool {
    guard handle.state.isFinal else {
      return states.isEmpty && ends.isEmpty
    }
    let isWhole = handle.state == .accepted
    return states == (wasOpen ? [handle.state] : [])
      && (handle.error == nil) == isWhole && ends == [handle.error]
  }
}
