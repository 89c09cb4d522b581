import Synchronization

/// An open WebSocket over a socket of this process, on a client or on a server alike.
///
/// It may be used from any task or thread. Pings are answered by itself. Reading from the socket
/// pauses while too much is unread, so that a slow reader slows its peer instead of filling memory;
/// what is to be sent is bounded too, and a full queue is an error rather than a wait. Letting go of
/// the last reference to an open connection aborts it.
public final class WebSocketConnection: WebSocketChannel {
  private struct State {
    var machine: WebSocketMachine
    var inbox = Inbox()
    var outcome: WebSocketMachine.Outcome?
    var closeWaiters: [CheckedContinuation<Void, Never>] = []
  }

  /// Who has to be woken once the lock is free again.
  private struct Wakeups {
    var receivers: [(Inbox.Waiter, Inbox.Delivery)] = []
    var closers: [CheckedContinuation<Void, Never>] = []

    func run() {
      for (waiter, delivery) in receivers { waiter.resume(returning: delivery) }
      for waiter in closers { waiter.resume() }
    }
  }

  /// The subprotocol that the handshake agreed on, or nil.
  public let subprotocol: String?

  private let transport: SocketTransport
  private let configuration: WebSocketConfiguration
  private let state: Mutex<State>

  /// Takes over a transport whose opening handshake is done. Nothing is read before `start`.
  init(
    role: WebSocketRole, transport: SocketTransport, configuration: WebSocketConfiguration,
    subprotocol: String?
  ) {
    self.transport = transport
    self.configuration = configuration
    self.subprotocol = subprotocol
    state = Mutex(State(machine: WebSocketMachine(role: role, limits: configuration.limits)))
  }

  deinit {
    transport.abort()
  }

  /// Begins to work: with the bytes that came right behind the handshake, then with the socket.
  /// Runs on the transport's loop.
  func start(with leftover: ArraySlice<UInt8>) {
    transport.setHandler(self)
    transport.resumeReading()
    if !leftover.isEmpty { received(leftover) }
  }

  // MARK: Receiving

  /// The next message, or nil once the connection has been closed with a close handshake.
  ///
  /// Messages that came before the end are delivered first. When several tasks wait, each message
  /// goes to one of them, the longest waiting first. Constant time, and no copy is made.
  ///
  /// Throws ``WebSocketError/connectionLost`` after an abnormal end,
  /// ``WebSocketError/protocolViolation(_:)`` after the peer broke the protocol, and
  /// ``WebSocketError/cancelled``, losing no message, when the waiting task is cancelled.
  public func receive() async throws(WebSocketError) -> WebSocketMessage? {
    while let message = try await receiveOrPong() {
      if !message.isPong { return message }
    }
    return nil
  }

  /// The same, but also gives the answer to a ``probe()`` where it stands among the messages.
  package func receiveOrPong() async throws(WebSocketError) -> WebSocketMessage? {
    let (delivery, id) = state.withLock { state in
      (takeDelivery(&state), state.inbox.makeID())
    }
    if let delivery { return try delivery.get() }

    let awaited = await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: Inbox.Waiter) in
        let delivery: Inbox.Delivery? = state.withLock { state in
          if let delivery = takeDelivery(&state) { return delivery }
          // Whoever cancels after this line finds the waiter, since both hold the lock.
          if Task.isCancelled { return .failure(.cancelled) }
          state.inbox.wait(id, continuation)
          return nil
        }
        if let delivery { continuation.resume(returning: delivery) }
      }
    } onCancel: {
      let waiter = state.withLock { $0.inbox.stopWaiting(id) }
      waiter?.resume(returning: .failure(.cancelled))
    }
    return try awaited.get()
  }

  /// What a receiver gets right now, or nil when it has to wait.
  private func takeDelivery(_ state: inout State) -> Inbox.Delivery? {
    if let message = state.inbox.take() {
      if state.inbox.bytes * 2 <= configuration.maximumInboundBytes,
        state.inbox.count * 2 <= configuration.maximumInboundMessages
      {
        transport.resumeReading()
      }
      return .success(message)
    }
    return state.outcome.map(Self.delivery)
  }

  private static func delivery(for outcome: WebSocketMachine.Outcome) -> Inbox.Delivery {
    switch outcome {
    case .closed: .success(nil)
    case .failed(let error, _): .failure(error)
    }
  }

  /// Changes how large the peer's frames may be, from the next one on.
  package func setLimits(_ limits: WebSocketLimits) {
    state.withLock { $0.machine.limits = limits }
  }

  // MARK: Sending and closing

  /// Queues a message and returns at once; messages arrive in the order of these calls.
  ///
  /// On a server a payload over 4 KiB is shared, not copied, so that sending one array to many
  /// connections keeps it in memory once; a client copies each payload to mask it.
  ///
  /// Throws ``WebSocketError/closed`` when the connection is closing or over, and
  /// ``WebSocketError/outboundQueueFull`` when the message would exceed
  /// ``WebSocketConfiguration/maximumOutboundBytes``; the connection is then treated as
  /// ``WebSocketConfiguration/slowConsumerPolicy`` says.
  public func send(_ message: WebSocketMessage) throws(WebSocketError) {
    let (error, wakeups) = state.withLock { state -> (WebSocketError?, Wakeups) in
      var wakeups = Wakeups()
      guard state.machine.isOpen else { return (.closed, wakeups) }
      // 14 bytes are the longest header there is.
      if !hasRoom(for: message.bytes.count + 14) {
        dropSlowConsumer(&state, &wakeups)
        return (.outboundQueueFull, wakeups)
      }
      if let frame = state.machine.frame(for: message) { transport.enqueue(frame) }
      return (nil, wakeups)
    }
    wakeups.run()
    if let error { throw error }
  }

  /// Sends a ping behind the messages that are queued, unless another one is not answered. The peer's WebSocket
  /// answers it when it has received them. ``receiveOrPong()`` gives the answer.
  package func probe() {
    state.withLock { state in
      guard hasRoom(for: 64), let frame = state.machine.probe() else { return }
      transport.enqueue(frame)
    }
  }

  private func hasRoom(for count: Int) -> Bool {
    transport.bufferedBytes + count <= configuration.maximumOutboundBytes
  }

  private func dropSlowConsumer(_ state: inout State, _ wakeups: inout Wakeups) {
    switch configuration.slowConsumerPolicy {
    case .keep: break
    case .abort: perform(state.machine.abort(), &state, &wakeups)
    case .close:
      let status = WebSocketCloseStatus(
        code: .policyViolation, reason: "The messages were not read fast enough.")
      perform(state.machine.close(status), &state, &wakeups)
    }
  }

  /// Starts the close handshake and returns at once.
  ///
  /// Messages queued before are still sent; what the peer sends from now on is discarded. A reason
  /// over 123 bytes is cut after a whole scalar. Does nothing when the connection is closing or over.
  ///
  /// - Precondition: `code` may be sent, as ``WebSocketCloseCode/isAllowedOnWire`` says.
  public func beginClose(code: WebSocketCloseCode, reason: String = "") {
    precondition(
      code.isAllowedOnWire,
      "The close code \(code) must not be sent; use 1000 to 1003, 1007 to 1014 or 3000 to 4999.")
    let status = WebSocketCloseStatus(code: code, reason: WebSocketCloseStatus.fitting(reason))
    apply { $0.machine.close(status) }
  }

  /// Starts the close handshake and waits until it is done, or given up after the close timeout.
  ///
  /// Cancelling the waiting task does not cut the wait short.
  ///
  /// - Precondition: `code` may be sent, as ``WebSocketCloseCode/isAllowedOnWire`` says.
  public func close(code: WebSocketCloseCode, reason: String = "") async {
    beginClose(code: code, reason: reason)
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isOver = state.withLock { state in
        if state.outcome == nil { state.closeWaiters.append(continuation) }
        return state.outcome != nil
      }
      if isOver { continuation.resume() }
    }
  }

  /// Drops the connection at once: what is queued or unread is thrown away, receivers throw
  /// ``WebSocketError/connectionLost``, and the peer sees the connection reset.
  public func abort() {
    apply { state in
      state.inbox.discard()
      return state.machine.abort()
    }
  }

  /// How the connection ended, or nil while it has not. A connection that was lost has code 1006.
  public var closeStatus: WebSocketCloseStatus? {
    switch state.withLock({ $0.outcome }) {
    case .closed(let status), .failed(_, let status): status
    case nil: nil
    }
  }

  /// Bytes queued to be sent, headers included, that the kernel has not taken yet.
  public var bufferedBytes: Int { transport.bufferedBytes }

  /// How many messages, and how many of their bytes, have been received and not taken.
  var unread: (count: Int, bytes: Int) {
    state.withLock { ($0.inbox.count, $0.inbox.bytes) }
  }

  // MARK: Carrying out the machine's actions

  private func apply(_ step: (inout State) -> [WebSocketMachine.Action]) {
    let wakeups = state.withLock { state in
      var wakeups = Wakeups()
      perform(step(&state), &state, &wakeups)
      return wakeups
    }
    wakeups.run()
  }

  private func perform(
    _ actions: [WebSocketMachine.Action], _ state: inout State, _ wakeups: inout Wakeups
  ) {
    for action in actions {
      switch action {
      case .deliver(let message):
        if let waiter = state.inbox.put(message) {
          wakeups.receivers.append((waiter, .success(message)))
        }
      case .send(let frame):
        // Answers to pings count against the bound as messages do; a close frame always goes out.
        if state.machine.isOpen, !hasRoom(for: frame.count) {
          dropSlowConsumer(&state, &wakeups)
        } else {
          transport.enqueue(frame)
        }
      case .armCloseTimer:
        // The timer keeps the connection alive until then, so that a close goes on even when
        // nobody holds the connection any more.
        transport.loop.after(configuration.closeTimeout) { self.closeTimerFired() }
      case .finishWriting:
        transport.finishWriting()
      case .end(let outcome):
        state.outcome = outcome
        let delivery = Self.delivery(for: outcome)
        wakeups.receivers += state.inbox.removeWaiters().map { ($0, delivery) }
        wakeups.closers += state.closeWaiters
        state.closeWaiters = []
      case .drop:
        transport.close(within: configuration.closeTimeout)
      case .abort:
        transport.abort()
      }
    }
    adjustReading(state)
  }

  /// Holds the peer back while too much is unread. Once the connection is closing everything is
  /// read, since it is thrown away and the peer's close frame must not be kept waiting behind it.
  private func adjustReading(_ state: State) {
    if !state.machine.isOpen {
      transport.resumeReading()
    } else if state.inbox.bytes >= configuration.maximumInboundBytes
      || state.inbox.count >= configuration.maximumInboundMessages
    {
      transport.pauseReading()
    }
  }

  private func closeTimerFired() {
    apply { $0.machine.timerFired() }
  }
}

extension WebSocketConnection: TransportHandler {
  func received(_ bytes: ArraySlice<UInt8>) {
    apply { $0.machine.receive(bytes) }
  }

  func ended() {
    apply { $0.machine.transportEnded() }
  }

  func drained() {}
}
