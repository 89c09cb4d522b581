import Foundation
import Jetstream
import JetstreamServer

/// A server and clients in one thread: real engines and real frames, which are handed over at once, and a
/// clock that is moved by hand.
final class SyncWorld {
  let scope: Scope
  let canvas: Canvas
  private var server: ServerEngine!
  private var peers: [Peer] = []
  private var now: Duration = .zero
  private var links: [Int: Link] = [:]
  private var nextLink = 1
  private var events: [Event] = []
  private var isFailing = false

  private struct Link {
    let peer: Peer
    let number: Int
  }

  private enum Event {
    case open(Int, token: String?)
    case toServer(Int, [UInt8])
    case toClient(Int, [UInt8])
    case encoded(Int, FragmentsText)
    case judge
    case close(Int, code: Int, reason: String)
  }

  /// A client of it, and what it has sent and received.
  final class Peer {
    let scope: Scope
    let canvas = Canvas()
    fileprivate(set) var sent = 0
    fileprivate(set) var received = 0
    /// The number of times that it was sent the full state.
    fileprivate(set) var states = 0
    fileprivate(set) var sessions = 0
    fileprivate var engine: ClientEngine!
    fileprivate var isAway = false
    fileprivate var hasFetched = false

    fileprivate init() {
      scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
      scope.flush()
    }

    var pending: Int { engine.pendingCount }

    fileprivate var isAtRest: Bool {
      isAway || (engine.status == .online && engine.pendingCount == 0 && hasFetched)
    }
  }

  init(shapes: Int) {
    (canvas, _) = Shape.canvas(of: shapes)
    scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    scope.flush()
    server = ServerEngine(hooks: .offering(scope)) { [unowned self] action in
      switch action {
      case .send(let links, let frame): events += links.map { .toClient($0, frame) }
      case .close(let link, let code, let reason):
        events.append(.close(link, code: code, reason: reason))
      case .encode(let scope, let fragments):
        events.append(.encoded(scope, FragmentsText(fragments)))
      case .judge: events.append(.judge)
      case .admit, .probe, .join, .scope: break
      }
    }
    server.host(scope)
  }

  // MARK: Peers

  /// A client that has begun to connect and to fetch the scope.
  func addPeer(version: Int = 2) -> Peer {
    let peer = Peer()
    var configuration = ClientEngine.Configuration()
    configuration.highestVersion = version
    peer.engine = ClientEngine(
      configuration: configuration, random: { 0.5 },
      perform: { [unowned self, unowned peer] in perform($0, of: peer) },
      report: { [unowned peer] event in
        if case .sessionCreated = event { peer.sessions += 1 }
      })
    peers.append(peer)
    join(peer)
    return peer
  }

  private func join(_ peer: Peer) {
    peer.engine.connect(params: [:], now: now)
    peer.engine.fetch(peer.scope, params: [:], now: now) { [unowned peer] result in
      if case .success = result { peer.hasFetched = true }
    }
  }

  private func perform(_ action: ClientEngine.Action, of peer: Peer) {
    switch action {
    case .connect(let number, let token):
      links[nextLink] = Link(peer: peer, number: number)
      events.append(.open(nextLink, token: token))
      nextLink += 1
    case .send(let frame):
      peer.sent += frame.count
      if let link = link(of: peer) { events.append(.toServer(link, frame)) }
    case .disconnect:
      guard let link = link(of: peer) else { return }
      links[link] = nil
      server.closed(link, now: now)
    }
  }

  private func link(of peer: Peer) -> Int? {
    links.filter { $0.value.peer === peer }.keys.max()
  }

  /// Breaks the client's connection; it does not reconnect yet.
  func leave(_ peer: Peer) {
    peer.isAway = true
    for (id, link) in links where link.peer === peer {
      links[id] = nil
      server.closed(id, now: now)
      peer.engine.closed(link.number, code: 0, reason: "cut", now: now)
    }
  }

  /// Lets the sessions of all clients that are away expire.
  func expire() {
    now += .seconds(601)
    server.advance(to: now)
  }

  /// Lets a client that was away reconnect. Returns whether everything is at rest then.
  func comeBack(_ peer: Peer) -> Bool {
    peer.isAway = false
    return settle()
  }

  func remove(_ peer: Peer) {
    leave(peer)
    peer.engine.close()
    peers.removeAll { $0 === peer }
  }

  // MARK: Time and frames

  /// Delivers all frames that are on their way, and lets time pass where a timer is needed. Returns whether all clients
  /// have come to rest.
  func settle() -> Bool {
    for _ in 0..<30 {
      scope.flush()
      for peer in peers { peer.scope.flush() }
      deliver()
      if peers.allSatisfy(\.isAtRest) { return true }
      now += .seconds(5)
      for peer in peers where !peer.isAway { peer.engine.advance(to: now) }
      server.advance(to: now)
    }
    return false
  }

  private func deliver() {
    while !events.isEmpty {
      let due = events
      events = []
      for event in due { deliver(event) }
    }
  }

  private func deliver(_ event: Event) {
    switch event {
    case .open(let id, let token):
      guard let link = links[id] else { return }
      server.opened(id, params: token.map { ["sessiontoken": $0] } ?? [:], now: now)
      if links[id] != nil { link.peer.engine.opened(link.number, now: now) }
    case .toServer(let id, let frame):
      guard links[id] != nil else { return }
      server.received(
        [
          .frame(
            .init(
              messages: Message.frame(frame), isArray: Message.isArrayFrame(frame),
              size: frame.count))
        ], on: id, now: now)
    case .toClient(let id, let frame):
      guard let link = links[id] else { return }
      link.peer.received += frame.count
      let messages = Message.frame(frame)
      link.peer.states += Self.states(in: messages)
      link.peer.engine.received(link.number, messages, size: frame.count, now: now)
    case .encoded(let scope, let text): server.encoded(text, of: scope, now: now)
    case .judge: server.judge(now: now)
    case .close(let id, let code, let reason):
      guard let link = links.removeValue(forKey: id) else { return }
      link.peer.engine.closed(link.number, code: code, reason: reason, now: now)
    }
  }

  /// Returns the number of full states in a frame.
  private static func states(
    in frame: Result<[Result<Message, MessageError>], FrameError>
  ) -> Int {
    guard case .success(let messages) = frame else { return 0 }
    return messages.count { message in
      if case .success(.scopeState) = message { true } else { false }
    }
  }
}

extension ServerEngine.Hooks {
  /// Makes hooks that accept every session and let it fetch one scope.
  static func offering(_ scope: Scope) -> Self {
    var tokens = 0
    return Self(
      fetch: { _, _, _ in .success(scope) },
      makeToken: {
        tokens += 1
        return "session\(tokens)"
      }, random: { 0.5 })
  }
}

/// One session of version 2, without a connection.
extension ServerEngine {
  /// Opens the session, and fetches a scope.
  func beginSession(fetching scope: String) {
    opened(1, params: [:], now: .zero)
    receive(#"{"type":"SessionCreate","index":0,"version":"0.2.0","protocol":2}"#)
    receive(#"{"type":"ScopeFetch","index":1,"name":"\#(scope)"}"#)
  }

  private func receive(_ text: String) {
    let frame = Array(text.utf8)
    receive(Message.frame(frame), size: frame.count)
  }

  /// Submits a change set in message `index`, which is decoded already; the first one has index 2.
  func submit(_ fragments: [SyncFragment], index: Int) { submit([fragments], index: index) }

  /// Submits change sets in one frame, in messages from `index` on.
  func submit(_ sets: [[SyncFragment]], index: Int) {
    let messages = sets.enumerated().map { at, fragments in
      var message = Message.scopeSync(ScopeSync(scopeIndex: 0, fragments: fragments))
      message.index = index + at
      return Result<Message, MessageError>.success(message)
    }
    receive(.success(messages), size: 100)
  }

  private func receive(
    _ messages: Result<[Result<Message, MessageError>], FrameError>, size: Int
  ) {
    received(
      [.frame(.init(messages: messages, isArray: false, size: size))], on: 1, now: .zero)
  }
}
