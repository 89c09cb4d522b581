import Jetstream

/// Something that goes out on a connection.
enum Outgoing {
  case message(Message)
  /// Change sets that other sessions are sent as well.
  case news(StreamRun.Part)
  /// The text of messages that have to come in one frame, with commas between them.
  case text([UInt8])

  /// The number of bytes on the wire, approximately.
  var roughSize: Int {
    switch self {
    case .message(let message): message.roughSize
    case .news(let part): part.size
    case .text(let text): text.count
    }
  }

  /// Returns one frame with all messages of a part of an outbox that is not empty.
  ///
  /// - Parameter size: the size of the messages, approximately; nil to leave that open. One message, such as a part of a
  ///   state, takes as long to measure as to write.
  static func frame(
    of outbox: ArraySlice<Outgoing>, size: Int? = nil, in channel: ServerEngine.Channel
  ) -> [UInt8] {
    var frame: [UInt8] = []
    if let size { frame.reserveCapacity(64 + size + 64 * outbox.count) }
    frame += channel.frameStart
    for (position, entry) in outbox.enumerated() {
      if position > 0 { frame.append(UInt8(ascii: ",")) }
      switch entry {
      case .message(let message): message.write(to: &frame)
      case .news(let part): part.write(to: &frame)
      case .text(let text): frame += text
      }
    }
    frame += channel.frameEnd
    return frame
  }
}

/// The connection that a session uses, and the messages that go out on it together.
///
/// A session outlives its connections. While it has none, its messages are numbered and kept in its channel but not
/// sent. A connection on which the session is resumed is held until the client has sent something; then the client gets
/// either what it asks for or what was never sent to it.
struct SessionLink {
  private enum State {
    case absent
    /// The session was resumed. The client normally begins with a ping that says what it has received.
    case held(connection: Int)
    case open(connection: Int)
    /// The engine has forgotten the session.
    case ended
  }

  private var state: State
  /// The messages of this turn.
  private(set) var outbox: [Outgoing] = []
  /// The highest index that was handed to the current connection or an earlier one.
  private(set) var transmitted = 0
  /// The time of the next ping; nil without a connection.
  var pingAt: Duration?
  /// The requests to resend that the client makes on this connection.
  var resends = ResendRequests()

  /// Begins with the connection on which the session was created.
  init(connection: Int) { state = .open(connection: connection) }

  /// The connection, held or open.
  var connection: Int? {
    switch state {
    case .held(let connection), .open(let connection): connection
    case .absent, .ended: nil
    }
  }

  /// The connection on which messages can go out.
  var openConnection: Int? { if case .open(let connection) = state { connection } else { nil } }

  /// True if messages can go out.
  var isOpen: Bool { openConnection != nil }

  var hasEnded: Bool { if case .ended = state { true } else { false } }

  // MARK: Connections

  /// Continues on another connection, which is held. Returns the earlier connection if there was one.
  mutating func resume(on connection: Int) -> Int? {
    defer { (state, resends) = (.held(connection: connection), ResendRequests()) }
    return disconnect()
  }

  /// Opens a held connection. Returns false if it is not held.
  mutating func release() -> Bool {
    guard case .held(let connection) = state else { return false }
    state = .open(connection: connection)
    return true
  }

  /// Loses the connection, and returns it if there was one.
  mutating func disconnect() -> Int? {
    defer { (outbox, pingAt) = ([], nil) }
    guard let connection else { return nil }
    state = .absent
    return connection
  }

  /// Loses the connection for good, and returns it if there was one.
  mutating func end() -> Int? {
    defer { state = .ended }
    return disconnect()
  }

  // MARK: Messages

  mutating func put(_ message: Message) { outbox.append(.message(message)) }

  mutating func put(_ news: StreamRun.Part) { outbox.append(.news(news)) }

  /// Puts the text of messages that have to come in one frame, with commas between them.
  mutating func put(text: [UInt8]) { outbox.append(.text(text)) }

  /// Lets the last message of this turn, if it accepts the change set of the message before, accept one more. Returns the
  /// message as it is then; nil, having changed nothing, if it is another one.
  mutating func accept(_ messageIndex: Int, at sequence: Int) -> Message? {
    guard case .message(.scopeSyncReply(var reply))? = outbox.last,
      // The client may have one that is sent again.
      reply.index > transmitted, reply.accept(messageIndex, at: sequence)
    else { return nil }
    let message = Message.scopeSyncReply(reply)
    outbox[outbox.count - 1] = .message(message)
    return message
  }

  /// Sends these messages instead of those of this turn.
  mutating func replaceOutbox(with messages: [Message]) { outbox = messages.map { .message($0) } }

  /// Removes and returns the messages of this turn, with the connection on which they go out; nil, having dropped them,
  /// if none is open.
  ///
  /// - Parameter highest: the highest index given to a message of the session.
  mutating func takeOutbox(upTo highest: Int) -> (connection: Int, outbox: [Outgoing])? {
    defer { outbox = [] }
    guard case .open(let connection) = state else { return nil }
    transmitted = highest
    return (connection, outbox)
  }
}

/// A client's requests to resend what it has missed, and a limit to how often they are answered. A connection loses
/// nothing, so clients need that once per connection.
struct ResendRequests {
  private static let limit = 4
  /// True if the client has made a request and has not been answered.
  private var isPending = false
  private var count = 0
  private var end = Duration.zero

  /// Notes that the client makes a request.
  mutating func ask() { isPending = true }

  /// Takes one of the four answers for each `interval`; returns false if there is no request or they are used up.
  mutating func answer(at now: Duration, interval: Duration) -> Bool {
    guard isPending else { return false }
    if end <= now { (count, end) = (0, now + interval) }
    guard count < Self.limit else { return false }
    count += 1
    isPending = false
    return true
  }
}
