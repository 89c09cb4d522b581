/// The protocol of one open connection as a state machine: bytes and the app's calls go in, actions come out.
///
/// It holds no socket and no clock. Its owner carries out the actions in their order, and reports the end of the
/// transport and of the timer that it was asked to start.
///
/// The phases follow each other in one direction. `open` becomes `closing` when this side sends the first close frame,
/// or `draining` when the peer does or breaks a rule. `closing` becomes `draining` with the peer's close frame, or when
/// the peer breaks a rule. Any of them becomes `dropping` when the peer ends its side, and `dropped` when the
/// connection is aborted. The close timer runs on while it is `dropping`, so that the end of the peer gives the close
/// no more time. The outcome is reported exactly once: on entering `draining`, or on leaving `open` or `closing`
/// without it.
struct WebSocketMachine: Sendable {
  /// The outcome of a connection.
  enum Outcome: Sendable, Equatable {
    /// The close handshake was completed.
    case closed(WebSocketCloseStatus)
    /// The connection ended without a complete close handshake.
    case failed(WebSocketError, WebSocketCloseStatus)
  }

  /// An action that the owner has to carry out.
  enum Action: Sendable, Equatable {
    /// Deliver a message to the app.
    case deliver(WebSocketMessage)
    /// Queue a frame.
    case send(EncodedFrame)
    /// Start the timer that limits the rest of the close; call `timerFired` when it fires.
    case armCloseTimer
    /// Shut down the sending half once the queue is empty.
    case finishWriting
    /// Report the outcome to the app. Comes exactly once.
    case end(Outcome)
    /// Close the socket once what is queued has been written.
    case drop
    /// Close the socket at once and drop what is queued.
    case abort
  }

  private enum Phase: Sendable {
    case open
    /// This side's close frame is sent; the peer's is awaited.
    case closing(WebSocketCloseStatus)
    /// The outcome was reported; only the transport's end is awaited. Input is ignored.
    case draining
    /// The peer's side has ended; what is queued is still being written.
    case dropping
    case dropped
  }

  private let role: WebSocketRole
  private var decoder: FrameDecoder
  private var encoder: FrameEncoder
  private var phase = Phase.open
  /// The number of probes sent, and whether the last one is unanswered.
  private var probes: (count: UInt64, isOpen: Bool) = (0, false)

  init(
    role: WebSocketRole, limits: WebSocketLimits = WebSocketLimits(),
    randomness: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
  ) {
    self.role = role
    decoder = FrameDecoder(role: role, limits: limits)
    encoder = FrameEncoder(role: role, randomness: randomness)
  }

  /// The limits for the peer's frames and messages that begin from now on.
  var limits: WebSocketLimits {
    get { decoder.limits }
    set { decoder.limits = newValue }
  }

  /// The number of bytes that were received of a message that is not complete.
  var unfinishedBytes: Int { decoder.unfinishedBytes }

  /// True while messages may be sent.
  var isOpen: Bool {
    if case .open = phase { true } else { false }
  }

  /// Returns the frame for a message to send, or nil when the connection is no longer open.
  mutating func frame(for message: WebSocketMessage) -> EncodedFrame? {
    isOpen ? encoder.message(message) : nil
  }

  /// Returns the ping to send as a probe, or nil while another one is unanswered or when the connection is no longer
  /// open.
  mutating func probe() -> EncodedFrame? {
    guard isOpen, !probes.isOpen else { return nil }
    probes = (probes.count + 1, true)
    return encoder.control(.ping, payload: probePayload)
  }

  private var probePayload: [UInt8] { Array("probe \(probes.count)".utf8) }

  /// Takes bytes from the peer.
  mutating func receive(_ bytes: ArraySlice<UInt8>) -> [Action] {
    switch phase {
    case .draining, .dropping, .dropped: return []
    case .open, .closing: break
    }
    var events: [FrameDecoder.Event] = []
    var violation: WebSocketViolation?
    do {
      try decoder.decode(bytes) { events.append($0) }
    } catch {
      violation = error
    }
    var actions: [Action] = []
    actions.reserveCapacity(events.count)
    for event in events { handle(event, into: &actions) }
    if let violation { fail(violation, into: &actions) }
    return actions
  }

  /// Starts a close for the app. Does nothing when the connection is already closing.
  mutating func close(_ status: WebSocketCloseStatus) -> [Action] {
    guard isOpen else { return [] }
    phase = .closing(status)
    return [.send(encoder.close(status)), .armCloseTimer]
  }

  /// Drops the connection for the app.
  mutating func abort() -> [Action] {
    defer { phase = .dropped }
    return switch phase {
    case .open, .closing: [lost, .abort]
    case .draining, .dropping: [.abort]
    case .dropped: []
    }
  }

  /// Takes the end of the transport. Without a close handshake the connection is lost.
  mutating func transportEnded() -> [Action] {
    switch phase {
    case .open, .closing:
      phase = .dropping
      return [lost, .drop]
    case .draining:
      phase = .dropping
      return [.drop]
    case .dropping, .dropped: return []
    }
  }

  /// Takes the firing of the timer that `armCloseTimer` has started: the peer takes too long to finish the close, or to
  /// read what is queued.
  mutating func timerFired() -> [Action] {
    isOpen ? [] : abort()
  }

  private mutating func handle(_ event: FrameDecoder.Event, into actions: inout [Action]) {
    switch (event, phase) {
    case (.message(let message), .open):
      actions.append(.deliver(message))
    case (.ping(let payload), .open):
      actions.append(.send(encoder.control(.pong, payload: payload)))
    case (.pong(let payload), .open) where probes.isOpen && payload == probePayload:
      probes.isOpen = false
      actions.append(.deliver(.pong))
    case (.close(let status), .open):
      let outcome = status ?? WebSocketCloseStatus(code: .noStatus, byPeer: true)
      phase = .draining
      actions.append(.send(encoder.close(status.map { WebSocketCloseStatus(code: $0.code) })))
      actions.append(.end(.closed(outcome)))
      actions.append(.armCloseTimer)
      // A client leaves it to the server to end the connection first, as RFC 6455 7.1.1 advises.
      if role == .server { actions.append(.finishWriting) }
    case (.close, .closing(let status)):
      phase = .draining
      actions.append(.end(.closed(status)))
      if role == .server { actions.append(.finishWriting) }
    default:
      // Other pongs need no answer, and after this side's close frame nothing else from the peer matters.
      break
    }
  }

  /// Answers a broken rule with its close code, unless a close frame has already been sent.
  private mutating func fail(_ violation: WebSocketViolation, into actions: inout [Action]) {
    let status = WebSocketCloseStatus(code: violation.closeCode)
    if isOpen { actions += [.send(encoder.close(status)), .armCloseTimer] }
    phase = .draining
    actions += [.end(.failed(.protocolViolation(violation), status)), .finishWriting]
  }

  private var lost: Action {
    .end(.failed(.connectionLost, WebSocketCloseStatus(code: .abnormal)))
  }
}
