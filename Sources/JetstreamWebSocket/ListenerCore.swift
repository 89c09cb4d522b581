#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
import Synchronization

/// The working part of a listener: the accepting socket and the table of accepted connections.
final class ListenerCore: HTTPServerDelegate, LoopSource {
  struct Handlers: Sendable {
    var request: WebSocketListener.RequestHandler
    var upgrade: WebSocketListener.UpgradeHandler
    var connection: WebSocketListener.ConnectionHandler
  }

  private struct State: Sendable {
    /// The name of the listening socket in the loop; nil before the loop has it.
    var id: UInt64?
    var isPaused = false
    var isStopped = false
    /// True until the listening socket is closed.
    var isListening = true
    var lastID = 0
    var connections: [Int: HTTPServerConnection] = [:]
    /// The accepted sockets that are not closed yet.
    var open: Set<Int> = []
    /// Those of them that are no WebSockets, or not any more.
    var waiting = WaitingSockets()
    var stopWaiters: [CheckedContinuation<Void, Never>] = []
  }

  /// The largest number of connections that are accepted before the loop's other sockets have a turn.
  private static let batch = 64
  /// The time for which accepting pauses when the process has no descriptors left.
  static let pause = Duration.milliseconds(100)

  let configuration: WebSocketListener.Configuration
  let port: UInt16
  private let descriptor: Int32
  private let handlers: Handlers
  private let loop: EventLoop
  private let state = Mutex(State())

  /// Takes over a listening socket.
  init(
    descriptor: Int32, configuration: WebSocketListener.Configuration, handlers: Handlers
  ) {
    self.descriptor = descriptor
    self.configuration = configuration
    self.handlers = handlers
    loop = configuration.loop ?? .next()
    port = SocketAddress.port(of: descriptor)
  }

  /// Makes a socket, binds it and begins to listen.
  static func bind(
    host: String, port: UInt16, configuration: WebSocketListener.Configuration,
    handlers: Handlers
  ) async throws(WebSocketError) -> ListenerCore {
    let resolved = await withCheckedContinuation { continuation in
      SocketAddress.resolve(host: host, port: port, passive: true) {
        continuation.resume(returning: $0)
      }
    }
    var code = EADDRNOTAVAIL
    for address in try resolved.get() {
      let descriptor = listeningSocket(
        on: address, acceptsBoth: host == "::", backlog: configuration.backlog)
      if descriptor >= 0 {
        return ListenerCore(
          descriptor: descriptor, configuration: configuration, handlers: handlers)
      }
      code = -descriptor
    }
    throw .bindFailed(code: code)
  }

  /// Returns a listening socket, or a negative `errno`.
  static func listeningSocket(
    on address: SocketAddress, acceptsBoth: Bool, backlog: Int32
  ) -> Int32 {
    let descriptor = Platform.makeSocket(family: address.family)
    guard descriptor >= 0 else { return descriptor }
    Platform.set(descriptor, SOL_SOCKET, SO_REUSEADDR, to: 1)
    if address.family == AF_INET6 {
      Platform.set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, to: acceptsBoth ? 0 : 1)
    }
    var result = address.bind(descriptor)
    if result == 0, listen(descriptor, backlog) != 0 { result = -errno }
    guard result == 0 else {
      Platform.closeDescriptor(descriptor)
      return result
    }
    return descriptor
  }

  func start() {
    loop.execute {
      if self.state.withLock({ $0.isStopped }) { return }
      let id = self.loop.add(self.descriptor, self)
      self.state.withLock { $0.id = id }
      self.watch()
    }
  }

  /// Watches for connections, unless accepting rests or is over. On the loop.
  private func watch() {
    let (id, isWatching) = state.withLock { ($0.id, !$0.isPaused && !$0.isStopped) }
    if let id { loop.watch(id, for: isWatching ? .read : []) }
  }

  // MARK: Accepting

  func ready(_ events: Readiness) {
    for _ in 0..<Self.batch {
      guard state.withLock({ !$0.isStopped && !$0.isPaused }) else { return }
      let accepted = configuration.acceptNext(descriptor)
      if accepted >= 0 {
        adopt(accepted)
        continue
      }
      switch -accepted {
      case EINTR, ECONNABORTED, EPROTO: continue
      case EAGAIN, EWOULDBLOCK: return
      default:
        // Out of descriptors or memory, most likely. The waiting connection would wake us again
        // and again, so accepting rests until some may have been freed.
        rest()
        return
      }
    }
  }

  /// Tries again a little later, as after running out of descriptors.
  func cannotBeWatched() { rest() }

  private func rest() {
    state.withLock { $0.isPaused = true }
    watch()
    loop.after(Self.pause) {
      self.state.withLock { $0.isPaused = false }
      self.watch()
    }
  }

  private func adopt(_ accepted: Int32) {
    let remote = SocketAddress.remoteAddress(of: accepted)
    let (id, excess) = state.withLock { state in
      state.lastID += 1
      let excess = state.waiting.add(state.lastID, from: remote, configuration.waiting)
      if excess == nil { state.open.insert(state.lastID) }
      return (state.lastID, excess)
    }
    giveUpCloses()
    if let excess {
      Platform.closeDescriptor(accepted)
      return configuration.waiting.onDrop(excess == .address)
    }
    Platform.tune(accepted)
    let transport = SocketTransport(descriptor: accepted, loop: configuration.loop ?? .next()) {
      self.forget { state in
        state.open.remove(id)
        state.waiting.remove(id)
        state.connections[id] = nil
      }
    }
    let connection = HTTPServerConnection(
      id: id, transport: transport,
      addresses: (remote, SocketAddress.localAddress(of: accepted)), server: self)
    let isStopped = state.withLock { state in
      if !state.isStopped { state.connections[id] = connection }
      return state.isStopped
    }
    if isStopped { transport.abort() } else { connection.start() }
  }

  // MARK: What connections ask for

  func respond(to request: HTTPRequest) async -> HTTPResponse {
    await handlers.request(request)
  }

  func decide(on request: HTTPRequest) async -> UpgradeDecision {
    await handlers.upgrade(request)
  }

  var keepsAlive: Bool {
    guard let most = configuration.waiting.total else { return true }
    return state.withLock { $0.waiting.count <= most / 2 }
  }

  func adopt(_ connection: WebSocketConnection, of socket: Int, request: HTTPRequest) {
    let isStopped = state.withLock { state in
      state.waiting.remove(socket)
      return state.isStopped
    }
    if isStopped { return }
    Task {
      await handlers.connection(connection, request)
      await connection.close()
    }
  }

  func noteClosing(of socket: Int) {
    state.withLock { if $0.open.contains(socket) { $0.waiting.addClosing(socket) } }
  }

  /// Ends the closes that have gone on for the longest time, if there are more sockets than may wait: one that is new needs
  /// their descriptors.
  private func giveUpCloses() {
    let late = state.withLock { state in
      state.waiting.takeOldestCloses(configuration.waiting).compactMap { state.connections[$0] }
    }
    for connection in late { connection.giveUpClosing() }
  }

  // MARK: Stopping

  var connectionCount: Int { state.withLock { $0.open.count } }

  func stop(_ status: WebSocketCloseStatus) async {
    let connections: [HTTPServerConnection] = state.withLock { state in
      guard !state.isStopped else { return [] }
      state.isStopped = true
      loop.execute { self.close() }
      return Array(state.connections.values)
    }
    for connection in connections { connection.stop(status) }
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isOver = state.withLock { state in
        let isOver = !state.isListening && state.open.isEmpty
        if !isOver { state.stopWaiters.append(continuation) }
        return isOver
      }
      if isOver { continuation.resume() }
    }
  }

  private func close() {
    if let id = state.withLock({ $0.id }) { loop.remove(id) }
    Platform.closeDescriptor(descriptor)
    forget { $0.isListening = false }
  }

  /// Records that a socket was closed, and resumes the callers of `stop` after the last one.
  private func forget(_ change: (inout State) -> Void) {
    let waiters: [CheckedContinuation<Void, Never>] = state.withLock { state in
      change(&state)
      guard state.isStopped, !state.isListening, state.open.isEmpty else { return [] }
      defer { state.stopWaiters = [] }
      return state.stopWaiters
    }
    for waiter in waiters { waiter.resume() }
  }
}
