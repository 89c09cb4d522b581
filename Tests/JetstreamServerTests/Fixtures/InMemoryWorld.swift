import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket
import Testing

/// Whatever is at the other end of a connection to the server of an ``InMemoryWorld``.
protocol WorldPeer: AnyObject {
  func opened(_ link: InMemoryWorld.Link)
  func received(_ frame: [UInt8], on link: InMemoryWorld.Link)
  func closed(_ link: InMemoryWorld.Link, code: Int, reason: String)
  func advance(by duration: Duration)
  /// Hands out what was collected.
  func flush()
  /// Whether nothing is waited for.
  var isAtRest: Bool { get }
}

extension WorldPeer {
  func opened(_ link: InMemoryWorld.Link) {}
  func closed(_ link: InMemoryWorld.Link, code: Int, reason: String) {}
  func advance(by duration: Duration) {}
  func flush() {}
  var isAtRest: Bool { true }
}

/// A server and some clients in one thread: real engines, frames in queues, a clock that is moved by
/// hand. What happens when is decided by the test, or by a seeded generator.
final class InMemoryWorld {
  /// A connection between a peer and the server, with what is on its way.
  final class Link {
    let id: Int
    let number: Int
    unowned let peer: any WorldPeer
    let params: [String: String]
    /// The request that has opened the connection, if the peer has an address.
    let request: HTTPRequest?
    var isOpen = false
    /// The time for which the server does not read on, since the peer's last frame.
    var pause = Duration.zero
    var toServer: [[UInt8]] = []
    var toClient: [[UInt8]] = []
    /// Set when the server has closed; the client hears of it after what was sent before.
    var serverClose: (code: Int, reason: String)?

    init(
      id: Int, number: Int, peer: any WorldPeer, params: [String: String], address: String?
    ) {
      self.id = id
      request = address.map {
        var request = HTTPRequest(method: "GET", target: "/", headers: [:])
        request.remoteAddress = $0
        return request
      }
      self.number = number
      self.peer = peer
      self.params = params
    }
  }

  var now: Duration = .zero
  var generator: SeededGenerator
  let serverTicker = Ticker.manual()
  let scope: Scope
  let canvas = Canvas()
  private(set) var server: ServerEngine!
  private(set) var clients: [WorldClient] = []
  private(set) var peers: [any WorldPeer] = []
  private(set) var links: [Link] = []
  private var nextLink = 1
  var log: [String] = []
  /// Called when the server has reported something.
  var onReport: (() -> Void)?
  /// Believes what clients say who they are.
  var authenticate: (SessionInfo) -> ServerEngine.Authentication = { session in
    guard case .object(let params) = session.params, case .string(let name)? = params["author"]
    else { return .accepted() }
    return .accepted(Principal(name))
  }
  var access: (SessionInfo, String) -> ServerEngine.AccessAnswer = { _, _ in .unguarded }
  /// The number of the last question for the rights of a session in a scope, by token and name.
  private(set) var questions: [String: Int] = [:]
  /// The procedures that the server runs, by name.
  var procedures: [String: ServedProcedure] = [:]
  /// The date that the server knows; nil for a server without a calendar.
  var date: Date?
  /// The time by which the date is later whenever the server has looked at it.
  var dateStep: TimeInterval = 0
  var moreScopes: [String: Scope] = [:]
  /// The scopes that are hosted from a schema.
  var rows: [String: RowsContent] = [:]
  /// Served in place of ``scope``, for models of other classes.
  var replaced: Scope?
  /// Session, name and params of each fetch.
  var fetches: [(session: SessionInfo, name: String, params: JSONValue)] = []
  var endedSessions: [SessionInfo] = []
  var onSessionEnd: (() -> Void)?
  /// The number of times that clients have reached each limit.
  var limitHits: [ServerLimit: Int] = [:]
  /// The connections on which the server has sent a WebSocket ping.
  var probes: [Int] = []
  /// False if parts of states are encoded when the test says so, with ``encode()``.
  var encodesAtOnce = true
  private(set) var encodings: [(scope: Int, fragments: [SyncFragment])] = []
  /// False if slices of large change sets are judged when the test says so, with ``judge()``.
  var judgesAtOnce = true
  private var judgements = 0
  private var isJudging = false
  /// Whether the peers' WebSockets answer pings.
  var answersProbes = true
  /// Called before and after anything happens on a link.
  var onDeliver: ((Link, Bool) -> Void)?
  var onDelivered: (() -> Void)?

  init(
    seed: UInt64 = 1, configuration: ServerEngine.Configuration = .init(),
    unknown: UnknownContent = .reject
  ) {
    generator = SeededGenerator(seed: seed)
    scope = Scope(name: "Canvas", root: canvas, ticker: serverTicker)
    var tokens = 0
    var hooks = ServerEngine.Hooks(
      authenticate: { [unowned self] session, _ in authenticate(session) },
      fetch: { [unowned self] session, name, params in
        fetches.append((session, name, params))
        if let replaced, name == replaced.name { return .success(replaced) }
        if name == scope.name { return .success(scope) }
        if let other = moreScopes[name] { return .success(other) }
        if let content = rows[name] { return .success(content) }
        return .failure(.rejected("There is no scope \(name)"))
      },
      report: { [unowned self] in
        log.append("\($0)")
        onReport?()
      },
      makeToken: {
        tokens += 1
        return "token\(tokens)"
      },
      random: { 0.5 }, date: { [unowned self] in nextDate() },
      sessionEnded: { [unowned self] in
        endedSessions.append($0)
        onSessionEnd?()
      })
    hooks.access = { [unowned self] in
      questions["\($0.token) \($1)"] = $2
      return access($0, $1)
    }
    hooks.procedure = { [unowned self] in procedures[$0] }
    hooks.limitReached = { [unowned self] in limitHits[$0, default: 0] += 1 }
    server = ServerEngine(configuration: configuration, hooks: hooks) { [unowned self] in
      perform($0)
    }
    server.host(scope, unknown: unknown)
  }

  private func nextDate() -> Date? {
    defer { date? += dateStep }
    return date
  }

  /// Gives the app's answer to a question about rights; without a number, to the last one.
  func decide(
    _ token: String, _ name: String, _ answer: Result<ScopeAccess, WireError>,
    to question: Int? = nil
  ) {
    let last = questions["\(token) \(name)"] ?? 0
    server.decided(token, name, question ?? last, answer, now: now)
  }

  /// Stands for a WebSocket ping, and for its pong.
  private static let probe = Array("a WebSocket ping".utf8)

  private func perform(_ action: ServerEngine.Action) {
    switch action {
    case .send(let ids, let frame):
      for link in links where ids.contains(link.id) { link.toClient.append(frame) }
    case .close(let id, let code, let reason):
      links.first { $0.id == id }?.serverClose = (code, reason)
    case .admit, .join, .scope: break
    case .encode(let scope, let fragments):
      encodings.append((scope, fragments))
      if encodesAtOnce { encode() }
    case .judge:
      judgements += 1
      if judgesAtOnce, !isJudging { while judge() {} }
    case .probe(let id):
      probes.append(id)
      links.first { $0.id == id }?.toClient.append(Self.probe)
    }
  }

  /// Encodes one part of a state that the server has asked for. Returns false if there is none.
  @discardableResult
  func encode() -> Bool {
    if encodings.isEmpty { return false }
    let (scope, fragments) = encodings.removeFirst()
    server.encoded(FragmentsText(fragments), of: scope, now: now)
    #expect(server.checkInvariants() == [])
    return true
  }

  /// Judges one slice of a large change set, if the server has asked for that. Returns false if it has not.
  @discardableResult
  func judge() -> Bool {
    if judgements == 0 { return false }
    judgements -= 1
    isJudging = true
    server.judge(now: now)
    isJudging = false
    #expect(server.checkInvariants() == [])
    return true
  }

  /// Judges to the end, and delivers what that leads to. Returns the number of slices.
  @discardableResult
  func judgeAll() -> Int {
    var count = 0
    while judge() { count += 1 }
    for case let peer as RawPeer in peers { peer.take() }
    return count
  }

  @discardableResult
  func addClient(
    configuration: ClientEngine.Configuration = .init(), root: ModelObject = Canvas(),
    models: [ModelObject.Type] = []
  ) -> WorldClient {
    let client = WorldClient(
      world: self, configuration: configuration, number: clients.count, root: root, models: models)
    clients.append(client)
    peers.append(client)
    return client
  }

  func add(_ peer: any WorldPeer) { peers.append(peer) }

  @discardableResult
  func connect(
    _ peer: any WorldPeer, number: Int = 0, params: [String: String] = [:], address: String? = nil
  ) -> Link {
    let link = Link(id: nextLink, number: number, peer: peer, params: params, address: address)
    links.append(link)
    nextLink += 1
    return link
  }

  // MARK: Events

  /// Lets one thing happen on a link: it opens, or one frame arrives.
  func deliver(_ link: Link, toServer: Bool) {
    defer { onDelivered?() }
    if link.isOpen { onDeliver?(link, toServer) }
    if !link.isOpen {
      link.isOpen = true
      server.opened(link.id, params: link.params, request: link.request, now: now)
      link.peer.opened(link)
    } else if toServer, !link.toServer.isEmpty {
      let bytes = link.toServer.removeFirst()
      if bytes == Self.probe {
        server.received([.probed], on: link.id, now: now)
        return
      }
      link.pause = server.received(
        [.frame(.init(messages: Self.decode(bytes), isArray: Message.isArrayFrame(bytes)))],
        on: link.id, now: now)
      #expect(server.checkInvariants() == [])
    } else if !link.toClient.isEmpty {
      let bytes = link.toClient.removeFirst()
      if bytes == Self.probe {
        if answersProbes { link.toServer.append(bytes) }
      } else {
        link.peer.received(bytes, on: link)
      }
    } else if let close = link.serverClose {
      links.removeAll { $0 === link }
      link.peer.closed(link, code: close.code, reason: close.reason)
    }
  }

  static func decode(
    _ bytes: [UInt8], limits: JSONLimits = .default
  ) -> Result<[Result<Message, MessageError>], FrameError> {
    do throws(FrameError) {
      return .success(try Message.decodeFrame(bytes, limits: limits))
    } catch {
      return .failure(error)
    }
  }

  /// Cuts a connection; what is on its way is lost.
  func cut(_ link: Link) {
    links.removeAll { $0 === link }
    if link.isOpen { server.closed(link.id, now: now) }
    link.peer.closed(link, code: 0, reason: "cut")
  }

  /// The peer has closed the connection.
  func disconnected(_ peer: any WorldPeer) {
    for link in links where link.peer === peer {
      if link.isOpen { server.closed(link.id, now: now) }
    }
    links.removeAll { $0.peer === peer }
  }

  func advance(by duration: Duration) {
    now += duration
    serverTicker.advance(by: duration)
    for peer in peers { peer.advance(by: duration) }
    server.advance(to: now)
  }

  /// Lets seconds pass, one after the other, with everything that comes of each.
  func pass(_ seconds: Int) {
    for _ in 0..<seconds {
      advance(by: .seconds(1))
      exchange()
    }
  }

  /// Delivers everything until nothing is on its way and nothing is pending.
  func settle() {
    for _ in 0..<10_000 {
      exchange()
      if peers.allSatisfy(\.isAtRest) { return }
      advance(by: .seconds(1))
    }
    Issue.record("The world does not come to rest.")
  }

  /// Delivers everything until nothing is on its way. No time passes.
  func exchange() {
    for _ in 0..<10_000 {
      for peer in peers { peer.flush() }
      scope.flush()
      replaced?.flush()
      if !deliverOnce() { return }
    }
    Issue.record("The world goes on for ever.")
  }

  /// - Returns: whether anything was on its way.
  private func deliverOnce() -> Bool {
    var wasIdle = true
    for link in links {
      while links.contains(where: { $0 === link }),
        !link.isOpen || !link.toServer.isEmpty || !link.toClient.isEmpty
          || link.serverClose != nil
      {
        wasIdle = false
        deliver(link, toServer: true)
        if link.isOpen, !link.toClient.isEmpty { deliver(link, toServer: false) }
      }
    }
    return !wasIdle
  }
}

/// One client of an ``InMemoryWorld``.
final class WorldClient {
  unowned let world: InMemoryWorld
  let number: Int
  let ticker = Ticker.manual()
  let scope: Scope
  /// The root, unless the client was given one of another class.
  var canvas: Canvas { scope.root as! Canvas }
  var events: [String] = []
  var rejections: [String] = []
  var wantsOnline = true
  var fetchResult: Result<Void, SyncError>?
  /// The token of each attempt to connect.
  var tokens: [String?] = []
  var sent: [[UInt8]] = []
  /// Every message that came.
  var heard: [Message] = []
  /// True if what has come is acknowledged after a number of bytes, too.
  var countsBytes = false
  /// How many bytes the largest frame that came had.
  var largestFrame = 0
  /// The models of each repair.
  var repaired: [[UUID]] = []
  private(set) var engine: ClientEngine!

  init(
    world: InMemoryWorld, configuration: ClientEngine.Configuration, number: Int,
    root: ModelObject, models: [ModelObject.Type]
  ) {
    self.world = world
    self.number = number
    scope = Scope(name: "Canvas", root: root, models: models, ticker: ticker)
    engine = ClientEngine(
      configuration: configuration, random: { 0.5 },
      perform: { [unowned self] in perform($0) }, report: { [unowned self] in note($0) })
  }

  private func perform(_ action: ClientEngine.Action) {
    switch action {
    case .connect(let number, let token):
      tokens.append(token)
      world.connect(self, number: number, params: token.map { ["sessiontoken": $0] } ?? [:])
    case .send(let frame):
      sent.append(frame)
      link?.toServer.append(frame)
    case .disconnect: world.disconnected(self)
    }
  }

  private func note(_ event: ClientEngine.Event) {
    switch event {
    case .rejected(_, let fragment, let error, _):
      rejections.append("\(fragment.className): \(error.message)")
    case .repaired(_, let models): repaired.append(models)
    default: events.append("\(event)")
    }
  }

  func join(as author: String? = nil) {
    let params: JSONValue = author.map { ["author": .string($0)] } ?? [:]
    engine.connect(params: params, now: world.now)
    fetch()
  }

  func fetch() {
    engine.fetch(scope, params: [:], now: world.now) { [unowned self] in fetchResult = $0 }
  }

  var link: InMemoryWorld.Link? { world.links.last { $0.peer === self } }
}

extension WorldClient: WorldPeer {
  func opened(_ link: InMemoryWorld.Link) { engine.opened(link.number, now: world.now) }

  func received(_ frame: [UInt8], on link: InMemoryWorld.Link) {
    largestFrame = max(largestFrame, frame.count)
    let messages = InMemoryWorld.decode(frame, limits: .trusted)
    for case .success(let message) in (try? messages.get()) ?? [] { heard.append(message) }
    engine.received(link.number, messages, size: countsBytes ? frame.count : 0, now: world.now)
    #expect(engine.checkInvariants() == [])
  }

  func closed(_ link: InMemoryWorld.Link, code: Int, reason: String) {
    engine.closed(link.number, code: code, reason: reason, now: world.now)
  }

  func advance(by duration: Duration) {
    ticker.advance(by: duration)
    engine.advance(to: world.now)
  }

  func flush() { scope.flush() }

  var isAtRest: Bool { engine.pendingCount == 0 && (engine.status == .online || !wantsOnline) }
}
