import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A server and some clients in one thread: real engines, frames in queues, a clock that is moved by
/// hand. What happens when is decided by the test, or by a seeded generator.
final class InMemoryWorld {
  /// A connection between a client and the server, with what is on its way.
  final class Link {
    let id: Int
    let number: Int
    unowned let client: WorldClient
    let token: String?
    var isOpen = false
    var toServer: [[UInt8]] = []
    var toClient: [[UInt8]] = []
    /// Set when the server has closed; the client hears of it after what was sent before.
    var serverClose: (code: Int, reason: String)?

    init(id: Int, number: Int, client: WorldClient, token: String?) {
      self.id = id
      self.number = number
      self.client = client
      self.token = token
    }
  }

  var now: Duration = .zero
  var generator: SeededGenerator
  let serverTicker = Ticker.manual()
  let scope: Scope
  let canvas = Canvas()
  private(set) var server: ServerEngine!
  private(set) var clients: [WorldClient] = []
  private(set) var links: [Link] = []
  private var nextLink = 1
  var log: [String] = []
  var authorize: (SessionInfo) -> WireError? = { _ in nil }
  var moreScopes: [String: Scope] = [:]

  init(seed: UInt64 = 1, configuration: ServerEngine.Configuration = .init()) {
    generator = SeededGenerator(seed: seed)
    scope = Scope(name: "Canvas", root: canvas, ticker: serverTicker)
    var tokens = 0
    let hooks = ServerEngine.Hooks(
      authorize: { [unowned self] in authorize($0) },
      fetch: { [unowned self] _, name, _ in
        if name == scope.name { return .success(scope) }
        if let other = moreScopes[name] { return .success(other) }
        return .failure(.rejected("There is no scope \(name)"))
      },
      log: { [unowned self] in log.append($0) },
      makeToken: {
        tokens += 1
        return "token\(tokens)"
      },
      random: { 0.5 })
    server = ServerEngine(configuration: configuration, hooks: hooks) { [unowned self] in
      perform($0)
    }
    server.host(scope)
  }

  private func perform(_ action: ServerEngine.Action) {
    switch action {
    case .send(let id, let frame): links.first { $0.id == id }?.toClient.append(frame)
    case .close(let id, let code, let reason):
      links.first { $0.id == id }?.serverClose = (code, reason)
    }
  }

  @discardableResult
  func addClient(configuration: ClientEngine.Configuration = .init()) -> WorldClient {
    let client = WorldClient(world: self, configuration: configuration, number: clients.count)
    clients.append(client)
    return client
  }

  func connect(_ client: WorldClient, number: Int, token: String?) {
    links.append(Link(id: nextLink, number: number, client: client, token: token))
    nextLink += 1
  }

  // MARK: Events

  /// Lets one thing happen on a link: it opens, or one frame arrives.
  func deliver(_ link: Link, toServer: Bool) {
    if !link.isOpen {
      link.isOpen = true
      server.opened(
        link.id, params: link.token.map { ["sessiontoken": $0] } ?? [:], now: now)
      link.client.engine.opened(link.number, now: now)
    } else if toServer, !link.toServer.isEmpty {
      let bytes = link.toServer.removeFirst()
      server.received(
        link.id, decode(bytes), isArray: Message.isArrayFrame(bytes), now: now)
    } else if !link.toClient.isEmpty {
      link.client.engine.received(link.number, decode(link.toClient.removeFirst()), now: now)
      #expect(link.client.engine.brokenInvariants() == [])
    } else if let close = link.serverClose {
      links.removeAll { $0 === link }
      link.client.engine.closed(link.number, code: close.code, reason: close.reason, now: now)
    }
  }

  private func decode(
    _ bytes: [UInt8]
  ) -> Result<[Result<Message, MessageError>], FrameError> {
    do throws(FrameError) {
      return .success(try Message.decodeFrame(bytes))
    } catch {
      return .failure(error)
    }
  }

  /// Cuts a connection; what is on its way is lost.
  func cut(_ link: Link) {
    links.removeAll { $0 === link }
    if link.isOpen { server.closed(link.id, now: now) }
    link.client.engine.closed(link.number, code: 0, reason: "cut", now: now)
  }

  /// The client has closed the connection.
  func disconnected(_ client: WorldClient) {
    for link in links where link.client === client {
      if link.isOpen { server.closed(link.id, now: now) }
    }
    links.removeAll { $0.client === client }
  }

  func advance(by duration: Duration) {
    now += duration
    serverTicker.advance(by: duration)
    for client in clients {
      client.ticker.advance(by: duration)
      client.engine.advance(to: now)
    }
    server.advance(to: now)
  }

  /// Delivers everything until nothing is on its way and nothing is pending.
  func settle() {
    for _ in 0..<10_000 {
      for client in clients { client.scope.flush() }
      scope.flush()
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
      if wasIdle {
        let isDone = clients.allSatisfy {
          $0.engine.pendingCount == 0 && ($0.engine.status == .online || !$0.wantsOnline)
        }
        if isDone { return }
        advance(by: .seconds(1))
      }
    }
    Issue.record("The world does not come to rest.")
  }
}

/// One client of an ``InMemoryWorld``.
final class WorldClient {
  unowned let world: InMemoryWorld
  let number: Int
  let ticker = Ticker.manual()
  let scope: Scope
  let canvas = Canvas()
  var events: [String] = []
  var rejections: [String] = []
  var wantsOnline = true
  var fetchResult: Result<Void, SyncError>?
  private(set) var engine: ClientEngine!

  init(world: InMemoryWorld, configuration: ClientEngine.Configuration, number: Int) {
    self.world = world
    self.number = number
    scope = Scope(name: "Canvas", root: canvas, ticker: ticker)
    engine = ClientEngine(
      configuration: configuration, random: { 0.5 },
      perform: { [unowned self] in perform($0) }, report: { [unowned self] in note($0) })
  }

  private func perform(_ action: ClientEngine.Action) {
    switch action {
    case .connect(let number, let token): world.connect(self, number: number, token: token)
    case .send(let frame): world.links.last { $0.client === self }?.toServer.append(frame)
    case .disconnect: world.disconnected(self)
    }
  }

  private func note(_ event: ClientEngine.Event) {
    switch event {
    case .rejected(_, let fragment, let error):
      rejections.append("\(fragment.className): \(error.message)")
    default: events.append("\(event)")
    }
  }

  func join() {
    engine.connect(params: [:], now: world.now)
    fetch()
  }

  func fetch() {
    engine.fetch(scope, params: [:], now: world.now) { [unowned self] in fetchResult = $0 }
  }

  var link: InMemoryWorld.Link? { world.links.last { $0.client === self } }
}
