#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
import Synchronization

/// One attempt to open a connection: resolves, tries address after address, shakes hands.
///
/// The first of these events decides: success, failure, the time limit or the cancellation of the task.
final class ClientAttempt: TransportHandler {
  typealias Outcome = Result<WebSocketConnection, WebSocketError>

  private struct State {
    var outcome: Outcome?
    var continuation: CheckedContinuation<Outcome, Never>?
    var addresses: ArraySlice<SocketAddress> = []
    var lastCode = ECONNREFUSED
    /// The socket being connected or shaking hands.
    var transport: SocketTransport?
    var parser = HTTPHeadParser()
  }

  private let url: WebSocketURL
  private let handshake: ClientHandshake
  private let configuration: WebSocketClient.Configuration
  private let loop = EventLoop.next()
  private let deadline: ContinuousClock.Instant
  private let state = Mutex(State())

  init(
    url: WebSocketURL, handshake: ClientHandshake, configuration: WebSocketClient.Configuration
  ) {
    self.url = url
    self.handshake = handshake
    self.configuration = configuration
    deadline = .now + configuration.connectTimeout
  }

  /// Runs the attempt to its end. Must be called once.
  func run() async -> Outcome {
    await withTaskCancellationHandler {
      loop.after(configuration.connectTimeout) { [weak self] in
        self?.finish(.failure(.timedOut))
      }
      SocketAddress.resolve(host: url.host, port: url.port) { [self] resolved in
        loop.execute { self.resolved(resolved) }
      }
      return await withCheckedContinuation { continuation in
        let outcome = state.withLock { state in
          state.continuation = continuation
          return state.outcome
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    } onCancel: {
      finish(.failure(.cancelled))
    }
  }

  /// Settles the attempt. Only the first call counts. A connection that is made too late is released and thereby
  /// aborted.
  private func finish(_ outcome: Outcome) {
    let (continuation, transport) = state.withLock {
      state -> (CheckedContinuation<Outcome, Never>?, SocketTransport?) in
      guard state.outcome == nil else { return (nil, nil) }
      state.outcome = outcome
      defer { state.transport = nil }
      return (state.continuation, state.transport)
    }
    if case .failure = outcome { transport?.abort() }
    continuation?.resume(returning: outcome)
  }

  // MARK: Connecting

  private func resolved(_ result: Result<[SocketAddress], WebSocketError>) {
    switch result {
    case .failure(let error): finish(.failure(error))
    case .success(let addresses):
      state.withLock { $0.addresses = addresses[...] }
      tryNext()
    }
  }

  /// Connects to the next address, which gets an equal share of the time that is left.
  private func tryNext() {
    let (address, remaining, code) = state.withLock { state in
      let remaining = state.addresses.count
      let address = state.outcome == nil ? state.addresses.popFirst() : nil
      return (address, remaining, state.lastCode)
    }
    guard let address else { return finish(.failure(.connectFailed(code: code))) }

    let descriptor = Platform.makeSocket(family: address.family)
    guard descriptor >= 0 else { return failed(code: -descriptor) }
    Platform.tune(descriptor)
    let result = address.connect(descriptor)
    guard result == 0 || result == -EINPROGRESS else {
      Platform.closeDescriptor(descriptor)
      return failed(code: -result)
    }
    let transport = SocketTransport(descriptor: descriptor, loop: loop)
    let isOver = state.withLock { state in
      if state.outcome == nil { state.transport = transport }
      return state.outcome != nil
    }
    guard !isOver else { return transport.abort() }
    transport.awaitConnect { [self] code in
      if code == 0 { shakeHands(transport) } else { abandon(transport, code: code) }
    }
    if remaining > 1 {
      loop.after((deadline - .now) / remaining) { [weak self, weak transport] in
        guard let self, let transport, !hasConnected(transport) else { return }
        abandon(transport, code: ETIMEDOUT)
      }
    }
  }

  private func failed(code: Int32) {
    state.withLock { $0.lastCode = code }
    tryNext()
  }

  /// Gives an address up, unless it has been given up already.
  private func abandon(_ transport: SocketTransport, code: Int32) {
    let isCurrent = state.withLock { state in
      guard state.transport === transport else { return false }
      state.transport = nil
      return true
    }
    transport.abort()
    if isCurrent { failed(code: code) }
  }

  // MARK: Handshake

  private let connected = Mutex<ObjectIdentifier?>(nil)

  private func hasConnected(_ transport: SocketTransport) -> Bool {
    connected.withLock { $0 == ObjectIdentifier(transport) }
  }

  private func shakeHands(_ transport: SocketTransport) {
    connected.withLock { $0 = ObjectIdentifier(transport) }
    transport.setHandler(self)
    transport.enqueue(EncodedFrame(head: handshake.request, payload: []))
    transport.resumeReading()
  }

  func received(_ bytes: ArraySlice<UInt8>) {
    var rest = bytes
    let (head, transport) = state.withLock { state in
      (Result { () throws(HTTPHeadFault) in try state.parser.parse(&rest) }, state.transport)
    }
    guard let transport else { return }
    switch head {
    case .failure: finish(.failure(.handshakeInvalid(.malformedResponse)))
    case .success(nil): break
    case .success((let startLine, let headers)?):
      do throws(WebSocketError) {
        let subprotocol = try handshake.validate(startLine: startLine, headers: headers)
        let connection = WebSocketConnection(
          role: .client, transport: transport, configuration: configuration.connection,
          subprotocol: subprotocol)
        connection.start(with: rest)
        finish(.success(connection))
      } catch {
        finish(.failure(error))
      }
    }
  }

  func ended() {
    finish(.failure(.connectionLost))
  }

}
