/// The life of one open connection as a pure machine: bytes and wishes go in, actions come out.
///
/// It holds no socket and no clock. Whoever owns it carries out the actions in their order, and
/// reports the end of the transport and the timer it was asked to arm.
struct WebSocketMachine: Sendable {
  /// How a connection ended.
  enum Outcome: Sendable, Equatable {
    /// The close handshake was completed.
    case closed(WebSocketCloseStatus)
    /// It was not.
    case failed(WebSocketError, WebSocketCloseStatus)
  }

  /// What the owner has to do next.
  enum Action: Sendable, Equatable {
    /// Give a message to the application.
    case deliver(WebSocketMessage)
    /// Queue a frame.
    case send(EncodedFrame)
    /// Start the timer that bounds the rest of the close; its end is told by `timerFired`.
    case armCloseTimer
    /// Shut down the sending half once the queue is empty.
    case finishWriting
    /// Tell the application how the connection ended. Comes exactly once.
    case end(Outcome)
    /// Close the socket once what is queued has been written.
    case drop
    /// Close the socket now and throw away what is queued.
    case abort
  }

  private enum Phase: Sendable {
    case open
    /// Our close frame is out; the peer's is awaited.
    case closing(WebSocketCloseStatus)
    /// The application knows the outcome; only the transport's end is awaited. Input is ignored.
    case draining
    case dropped
  }

  private let role: WebSocketRole
  private var decoder: FrameDecoder
  private var encoder: FrameEncoder
  private var phase = Phase.open
  /// How many probes were sent, and whether the last one is not answered.
  private var probes: (count: UInt64, isOpen: Bool) = (0, false)

  init(
    role: WebSocketRole, limits: WebSocketLimits = WebSocketLimits(),
    randomness: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
  ) {
    self.role = role
    decoder = FrameDecoder(role: role, limits: limits)
    encoder = FrameEncoder(role: role, randomness: randomness)
  }

  /// How large the peer's frames and messages may be that begin from now on.
  var limits: WebSocketLimits {
    get { decoder.limits }
    set { decoder.limits = newValue }
  }

  /// Whether messages may be sent.
  var isOpen: Bool {
    if case .open = phase { true } else { false }
  }

  /// The frame for a message to send, or nil when the connection is no longer open.
  mutating func frame(for message: WebSocketMessage) -> EncodedFrame? {
    isOpen ? encoder.message(message) : nil
  }

  /// The ping to send as a probe, or nil while another one is not answered or when the connection is no longer open.
  mutating func probe() -> EncodedFrame? {
    guard isOpen, !probes.isOpen else { return nil }
    probes = (probes.count + 1, true)
    return encoder.control(.ping, payload: probePayload)
  }

  private var probePayload: [UInt8] { Array("probe \(probes.count)".utf8) }

  /// Bytes came from the peer.
  mutating func receive(_ bytes: ArraySlice<UInt8>) -> [Action] {
    switch phase {
    case .draining, .dropped: return []
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

  /// The application wants to close. Nothing happens when the connection is already closing.
  mutating func close(_ status: WebSocketCloseStatus) -> [Action] {
    guard isOpen else { return [] }
    phase = .closing(status)
    return [.send(encoder.close(status)), .armCloseTimer]
  }

  /// The application wants the socket gone.
  mutating func abort() -> [Action] {
    lose(.abort)
  }

  /// The transport read its end or failed. Without a close handshake that is a loss.
  mutating func transportEnded() -> [Action] {
    lose(.drop)
  }

  /// The timer armed by `armCloseTimer` fired: the peer takes too long to finish the close.
  mutating func timerFired() -> [Action] {
    isOpen ? [] : lose(.abort)
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
      // Other pongs need no answer, and after our close frame nothing else of the peer's matters.
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

  private mutating func lose(_ ending: Action) -> [Action] {
    defer { phase = .dropped }
    switch phase {
    case .open, .closing:
      return [.end(.failed(.connectionLost, WebSocketCloseStatus(code: .abnormal))), ending]
    case .draining: return [ending]
    case .dropped: return []
    }
  }
}
