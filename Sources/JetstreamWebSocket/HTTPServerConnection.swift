import Synchronization

/// The listener that accepted an HTTP connection, as the connection sees it.
protocol HTTPServerDelegate: AnyObject, Sendable {
  var configuration: WebSocketListener.Configuration { get }
  func respond(to request: HTTPRequest) async -> HTTPResponse
  func decide(on request: HTTPRequest) async -> UpgradeDecision
  /// False if connections are closed behind a response, since too many are open.
  var keepsAlive: Bool { get }
  /// Takes over the upgraded connection of a socket and serves it to its end, unless the listener has stopped: then
  /// ``HTTPServerConnection/stop(_:)`` closes it.
  func adopt(_ connection: WebSocketConnection, of socket: Int, request: HTTPRequest)
  /// Notes that the WebSocket of a socket is being closed: the socket only waits for its peer.
  func noteClosing(of socket: Int)
}

/// Serves an accepted socket until it becomes a WebSocket: reads requests, has them answered, and limits each step by
/// the handshake timeout.
final class HTTPServerConnection: TransportHandler {
  private enum Phase {
    case reading
    /// The application decides; the peer is not read.
    case handling
    /// The response is on its way, and another request may follow.
    case writing
    /// The last response is on its way; input is ignored until the peer's end. A peer that has ended its side may still
    /// read the response: it has as long as ``deadlinePassed(_:buffered:)`` allows.
    case lingering
    case upgraded(WebSocketConnection)
    case closed
  }

  private struct State {
    var phase = Phase.reading
    var parser = HTTPHeadParser()
    /// The bytes received after the request that is being answered.
    var leftover: ArraySlice<UInt8> = []
    var hasRequested = false
    /// The number of the deadline in force; earlier ones are void.
    var deadline = 0
  }

  /// The number by which the listener knows the socket.
  private let id: Int
  private let transport: SocketTransport
  private let addresses: (remote: String?, local: String?)
  private let server: any HTTPServerDelegate
  private let state = Mutex(State())

  init(
    id: Int, transport: SocketTransport, addresses: (remote: String?, local: String?),
    server: any HTTPServerDelegate
  ) {
    self.id = id
    self.transport = transport
    self.addresses = addresses
    self.server = server
  }

  func start() {
    transport.setHandler(self)
    armDeadline()
    transport.resumeReading()
  }

  /// Closes a WebSocket with the close handshake, and drops a connection that still speaks HTTP.
  func stop(_ status: WebSocketCloseStatus) {
    let webSocket: WebSocketConnection? = state.withLock { state in
      if case .upgraded(let webSocket) = state.phase { return webSocket }
      state.phase = .closed
      return nil
    }
    if let webSocket {
      webSocket.beginClose(code: status.code, reason: status.reason)
    } else {
      transport.abort()
    }
  }

  /// Ends the close of a WebSocket without waiting for the peer any longer.
  func giveUpClosing() {
    let webSocket: WebSocketConnection? = state.withLock { state in
      if case .upgraded(let webSocket) = state.phase { webSocket } else { nil }
    }
    webSocket?.giveUpClosing()
  }

  // MARK: Requests

  func received(_ bytes: ArraySlice<UInt8>) {
    let parsed = state.withLock { state -> Result<HTTPRequest, HTTPHeadFault>? in
      guard case .reading = state.phase else { return nil }
      var rest = bytes
      do throws(HTTPHeadFault) {
        guard let head = try state.parser.parse(&rest) else { return nil }
        // A copy: even an empty slice would keep the loop's buffer, as long as the request takes.
        state.leftover = ArraySlice(Array(rest))
        state.phase = .handling
        state.hasRequested = true
        state.deadline += 1
        var request = try HTTPRequest.parse(startLine: head.startLine, headers: head.headers)
        request.remoteAddress = addresses.remote
        request.isFromSameMachine = addresses.remote != nil && addresses.remote == addresses.local
        return .success(request)
      } catch {
        return .failure(error)
      }
    }
    switch parsed {
    case nil: break
    case .success(let request):
      transport.pauseReading()
      handle(request)
    case .failure(let fault): respond(.plain(fault.status))
    }
  }

  private func handle(_ request: HTTPRequest) {
    switch ServerHandshake.judge(request) {
    case .refuse(let response):
      respond(response, to: request)
    case .upgrade(let accept):
      Task {
        switch await server.decide(on: request) {
        case .accept: upgrade(request, accept: accept)
        case .refuse(let response): respond(response, to: request)
        }
      }
    case .plain:
      guard request.method == "GET" || request.method == "HEAD" else {
        respond(.methodNotAllowed, to: request)
        return
      }
      guard !request.hasBody else {
        respond(.plain(413), to: request)
        return
      }
      Task {
        let response = await server.respond(to: request)
        respond(response, to: request, keepAlive: request.wantsKeepAlive && server.keepsAlive)
      }
    }
  }

  private func respond(
    _ response: HTTPResponse, to request: HTTPRequest? = nil, keepAlive: Bool = false
  ) {
    let (head, body) = response.encoded(
      keepAlive: keepAlive, includesBody: request?.method != "HEAD")
    let isLive = state.withLock { state in
      if case .closed = state.phase { return false }
      state.phase = keepAlive ? .writing : .lingering
      return true
    }
    guard isLive else { return }
    armDeadline()
    transport.enqueue(EncodedFrame(head: head, payload: body))
    if keepAlive {
      transport.whenDrained { [weak self] in self?.goOn() }
    } else {
      transport.finishWriting()
      transport.resumeReading()
    }
  }

  /// Continues with the next request after a response was written. That request may have been received already.
  private func goOn() {
    let leftover: ArraySlice<UInt8>? = state.withLock { state in
      guard case .writing = state.phase else { return nil }
      state.phase = .reading
      defer { state.leftover = [] }
      return state.leftover
    }
    guard let leftover else { return }
    armDeadline()
    transport.resumeReading()
    if !leftover.isEmpty { received(leftover) }
  }

  func ended() {
    let isAnswering = state.withLock { state in
      if case .lingering = state.phase { return true }
      state.phase = .closed
      return false
    }
    if isAnswering {
      // The deadline of the response goes on: it drops a peer that reads nothing any more.
      transport.closeOnceWritten()
    } else {
      transport.close(within: server.configuration.handshakeTimeout)
    }
  }

  // MARK: Upgrade

  private func upgrade(_ request: HTTPRequest, accept: String) {
    let configuration = server.configuration
    let subprotocol = ServerHandshake.subprotocol(
      for: request, supported: configuration.subprotocols)
    let webSocket = WebSocketConnection(
      role: .server, transport: transport, configuration: configuration.connection,
      subprotocol: subprotocol, onClosing: { [server, id] in server.noteClosing(of: id) })
    let response = ServerHandshake.response(accept: accept, subprotocol: subprotocol)
    let leftover: ArraySlice<UInt8>? = state.withLock { state in
      if case .closed = state.phase { return nil }
      // First: a stop on another thread sends its close frame as soon as it finds the WebSocket.
      transport.enqueue(EncodedFrame(head: response, payload: []))
      state.phase = .upgraded(webSocket)
      defer { state.leftover = [] }
      return state.leftover
    }
    guard let leftover else { return }
    transport.loop.execute { webSocket.start(with: leftover) }
    server.adopt(webSocket, of: id, request: request)
  }

  // MARK: Time

  /// Limits the time of the step that begins now. The time of a response begins anew as long as the peer reads some of
  /// it.
  private func armDeadline() {
    let number = state.withLock { state in
      state.deadline += 1
      return state.deadline
    }
    awaitDeadline(number, buffered: .max)
  }

  private func awaitDeadline(_ number: Int, buffered: Int) {
    transport.loop.after(server.configuration.handshakeTimeout) { [weak self] in
      self?.deadlinePassed(number, buffered: buffered)
    }
  }

  private func deadlinePassed(_ number: Int, buffered: Int) {
    enum Reaction { case none, wait, answer, drop }
    let remaining = transport.bufferedBytes
    let reaction: Reaction = state.withLock { state in
      guard state.deadline == number else { return .none }
      switch state.phase {
      case .reading: return state.parser.isEmpty ? .drop : .answer
      case .writing, .lingering: return remaining > 0 && remaining < buffered ? .wait : .drop
      case .handling, .upgraded, .closed: return .none
      }
    }
    switch reaction {
    case .none: break
    case .wait: awaitDeadline(number, buffered: remaining)
    case .answer: respond(.plain(408))
    case .drop: transport.close(within: .zero)
    }
  }
}
