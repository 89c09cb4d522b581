import Synchronization

/// An open WebSocket over a socket of this process, on a client or on a server.
///
/// It may be used from any task or thread. It answers pings by itself. Reading from the socket pauses while too much is
/// unread, so that a slow reader slows down its peer and does not fill memory. The bytes that wait to be sent are
/// limited too; `send` throws when the queue is full, and never waits. Releasing the last reference to an open
/// connection aborts it.
///
/// All state is behind one lock, which is never held while a waiting task is resumed: an action collects its wakeups
/// under the lock and runs them after it.
public final class WebSocketConnection: WebSocketChannel {
  private struct State {
    var machine: WebSocketMachine
    var inbox = Inbox()
    /// The number of unread bytes at which reading pauses.
    var maximumInboundBytes: Int
    var outcome: WebSocketMachine.Outcome?
    var closeWaiters: [CheckedContinuation<Void, Never>] = []
    var receivedBytes = 0
  }

  /// The tasks to resume once the lock is released.
  private struct Wakeups {
    var receivers: [(Inbox.Waiter, Inbox.Delivery)] = []
    var closers: [CheckedContinuation<Void, Never>] = []

    func run() {
      for (waiter, delivery) in receivers { waiter.resume(returning: delivery) }
      for waiter in closers { waiter.resume() }
    }
  }

  /// The subprotocol that both sides agreed on in the handshake, or nil.
  public let subprotocol: String?

  private let transport: SocketTransport
  private let configuration: WebSocketConfiguration
  private let onClosing: (@Sendable () -> Void)?
  private let state: Mutex<State>

  /// Takes over a transport whose opening handshake is done. Nothing is read before ``start(with:)``.
  ///
  /// - Parameter onClosing: runs once on the loop, when nothing is sent any more and the socket is only kept until the
  ///   peer has read what was sent, at most for the close timeout.
  init(
    role: WebSocketRole, transport: SocketTransport, configuration: WebSocketConfiguration,
    subprotocol: String?, onClosing: (@Sendable () -> Void)? = nil
  ) {
    self.transport = transport
    self.configuration = configuration
    self.subprotocol = subprotocol
    self.onClosing = onClosing
    state = Mutex(
      State(
        machine: WebSocketMachine(role: role, limits: configuration.limits),
        maximumInboundBytes: configuration.maximumInboundBytes))
  }

  deinit {
    transport.abort()
  }

  /// Begins to read: first the bytes received right behind the handshake, then from the socket. Runs on the transport's
  /// loop.
  func start(with leftover: ArraySlice<UInt8>) {
    transport.setHandler(self)
    transport.resumeReading()
    if !leftover.isEmpty { received(leftover) }
  }

  // MARK: Receiving

  /// Returns the next message, or nil once the connection was closed with a close handshake.
  ///
  /// Messages received before the end are delivered first. When several tasks wait, each message goes to the one that
  /// has waited longest. Constant time; the message is not copied.
  ///
  /// Throws ``WebSocketError/connectionLost`` after an abnormal end, ``WebSocketError/protocolViolation(_:)`` after the
  /// peer broke the protocol, and ``WebSocketError/cancelled`` when the waiting task is cancelled; no message is lost
  /// by that.
  public func receive() async throws(WebSocketError) -> WebSocketMessage? {
    while let message = try await receiveOrPong() {
      if !message.isPong { return message }
    }
    return nil
  }

  /// Returns everything that was received and not taken yet, at least one message or answer to a ``probe()``, in the order
  /// in which it was received; nil once the connection was closed with a close handshake. Throws as ``receive()`` does.
  package func receiveAll() async throws(WebSocketError) -> [WebSocketMessage]? {
    guard let first = try await receiveOrPong() else { return nil }
    return state.withLock { state in
      guard state.inbox.count > 0 else { return [first] }
      defer { transport.resumeReading() }
      return [first] + state.inbox.takeAll()
    }
  }

  /// The thread on which the connection is read, for tasks that prefer to work there. What blocks or takes long holds up
  /// the other connections of that thread.
  package var taskExecutor: any TaskExecutor { transport.loop.tasks }

  /// Returns the next message or the answer to a ``probe()``, in the order in which they were received.
  package func receiveOrPong() async throws(WebSocketError) -> WebSocketMessage? {
    let (delivery, id) = state.withLock { state in
      (takeDelivery(&state), state.inbox.makeID())
    }
    if let delivery { return try delivery.get() }

    let awaited = await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: Inbox.Waiter) in
        let delivery: Inbox.Delivery? = state.withLock { state in
          if let delivery = takeDelivery(&state) { return delivery }
          // A cancellation after this line finds the waiter, since both hold the lock.
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

  /// Returns what a receiver gets right now, or nil when it has to wait.
  private func takeDelivery(_ state: inout State) -> Inbox.Delivery? {
    if let message = state.inbox.take() {
      if state.inbox.bytes * 2 <= state.maximumInboundBytes,
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

  /// Changes the limits for the peer's frames, from the next frame on, and that for the bytes of unread messages, from
  /// the next message on.
  package func setLimits(_ limits: WebSocketLimits, maximumInboundBytes: Int) {
    state.withLock { state in
      state.machine.limits = limits
      state.maximumInboundBytes = maximumInboundBytes
    }
  }

  // MARK: Sending and closing

  /// Queues a message and returns at once; messages arrive in the order of these calls.
  ///
  /// On a server, a payload over 4 KiB is shared, not copied, so that an array sent to many connections is in memory
  /// once. A client copies each payload to mask it.
  ///
  /// Throws ``WebSocketError/closed`` when the connection is closing or closed, and
  /// ``WebSocketError/outboundQueueFull`` when the message would exceed
  /// ``WebSocketConfiguration/maximumOutboundBytes``; ``WebSocketConfiguration/slowConsumerPolicy`` decides what
  /// happens to the connection then.
  public func send(_ message: WebSocketMessage) throws(WebSocketError) {
    let (error, wakeups) = state.withLock { state -> (WebSocketError?, Wakeups) in
      var wakeups = Wakeups()
      guard let frame = state.machine.frame(for: message) else { return (.closed, wakeups) }
      return (enqueue(frame, &state, &wakeups), wakeups)
    }
    wakeups.run()
    if let error { throw error }
  }

  /// Sends a text which other connections of the server are sent as well: at once, if this is the connection's loop, and
  /// otherwise as ``send(_:)`` does.
  ///
  /// It is given to the transport without a look at the state of the connection, since many are sent the same text one after
  /// the other: the transport takes nothing behind a close frame. Also throws ``WebSocketError/closed`` on a broken socket.
  package func send(_ text: ServerText) throws(WebSocketError) {
    switch transport.write(text.frame, upTo: configuration.maximumOutboundBytes) {
    case .taken: return
    case .closed: throw .closed
    case .full:
      apply { state, wakeups in
        if state.machine.isOpen { dropSlowConsumer(&state, &wakeups) }
      }
      throw .outboundQueueFull
    }
  }

  private func enqueue(
    _ frame: EncodedFrame, _ state: inout State, _ wakeups: inout Wakeups
  ) -> WebSocketError? {
    switch transport.enqueue(frame, upTo: configuration.maximumOutboundBytes) {
    // A socket that takes nothing any more has not told the machine yet.
    case .taken, .closed: return nil
    case .full:
      dropSlowConsumer(&state, &wakeups)
      return .outboundQueueFull
    }
  }

  /// Sends a ping behind the queued messages, unless an earlier one is unanswered. The peer's WebSocket answers it once
  /// it has received them, and ``receiveOrPong()`` returns the answer.
  package func probe() {
    state.withLock { state in
      guard transport.bufferedBytes + 64 <= configuration.maximumOutboundBytes,
        let frame = state.machine.probe()
      else { return }
      transport.enqueue(frame)
    }
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
  /// Messages queued before are still sent; messages that the peer sends from now on are discarded. A reason over 123
  /// bytes is cut after a whole scalar. Does nothing when the connection is closing or closed.
  ///
  /// - Precondition: ``WebSocketCloseCode/isAllowedOnWire`` is true for `code`.
  public func beginClose(code: WebSocketCloseCode, reason: String = "") {
    precondition(
      code.isAllowedOnWire,
      "The close code \(code) must not be sent; use 1000 to 1003, 1007 to 1014 or 3000 to 4999.")
    let status = WebSocketCloseStatus(code: code, reason: WebSocketCloseStatus.fitting(reason))
    apply { $0.machine.close(status) }
  }

  /// Starts the close handshake and waits until it is done, or abandoned after the close timeout.
  ///
  /// Cancelling the waiting task does not end the wait.
  ///
  /// - Precondition: ``WebSocketCloseCode/isAllowedOnWire`` is true for `code`.
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

  /// Drops the connection at once: queued and unread messages are lost, receivers throw
  /// ``WebSocketError/connectionLost``, and the peer sees a reset.
  public func abort() {
    apply { state in
      state.inbox.discard()
      return state.machine.abort()
    }
  }

  /// The close code, the reason and the side that closed first; nil until the connection has ended. A connection that
  /// was lost has code 1006.
  public var closeStatus: WebSocketCloseStatus? {
    switch state.withLock({ $0.outcome }) {
    case .closed(let status), .failed(_, let status): status
    case nil: nil
    }
  }

  /// The number of bytes queued to be sent, headers included, that the kernel has not taken yet.
  public var bufferedBytes: Int { transport.bufferedBytes }

  /// The number of bytes of the received messages that were not taken yet, and of one that is not complete.
  package var inboundBytes: Int {
    state.withLock { $0.inbox.bytes + $0.machine.unfinishedBytes }
  }

  /// The number of bytes that were received, headers and incomplete messages included.
  package var receivedBytes: Int { state.withLock { $0.receivedBytes } }

  /// The number of received messages that were not taken yet, and the number of their bytes.
  var unread: (count: Int, bytes: Int) {
    state.withLock { ($0.inbox.count, $0.inbox.bytes) }
  }

  // MARK: Carrying out the machine's actions

  private func apply(_ step: (inout State) -> [WebSocketMachine.Action]) {
    apply { state, wakeups in perform(step(&state), &state, &wakeups) }
  }

  private func apply(_ step: (inout State, inout Wakeups) -> Void) {
    let wakeups = state.withLock { state in
      var wakeups = Wakeups()
      step(&state, &wakeups)
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
        // Answers to pings count against the limit as messages do; a close frame is always sent.
        let limit = state.machine.isOpen ? configuration.maximumOutboundBytes : .max
        if transport.enqueue(frame, upTo: limit, isLast: frame.isClose) == .full {
          dropSlowConsumer(&state, &wakeups)
        }
      case .armCloseTimer:
        // The timer retains the connection until it fires, so that a close goes on even after the last reference to the
        // connection is released.
        transport.loop.after(configuration.closeTimeout) { self.giveUpClosing() }
        if let onClosing { transport.loop.execute(onClosing) }
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

  /// Pauses reading while too much is unread. Once the connection is closing, everything is read: it is discarded, and
  /// must not delay the peer's close frame behind it.
  private func adjustReading(_ state: State) {
    if !state.machine.isOpen {
      transport.resumeReading()
    } else if state.inbox.bytes >= state.maximumInboundBytes
      || state.inbox.count >= configuration.maximumInboundMessages
    {
      transport.pauseReading()
    }
  }

  /// Ends a close that is going on without waiting for the peer any longer. Does nothing while the connection is open.
  func giveUpClosing() {
    apply { $0.machine.timerFired() }
  }
}

extension WebSocketConnection: TransportHandler {
  func received(_ bytes: ArraySlice<UInt8>) {
    apply { state in
      state.receivedBytes += bytes.count
      return state.machine.receive(bytes)
    }
  }

  func ended() {
    apply { $0.machine.transportEnded() }
  }
}
