#if os(Linux)
/// Publish/subscribe of redis, in version 2 of its protocol. All messages have the same length.
struct RedisWire: FanoutWire {
  /// The beginning of a message to a subscriber, up to the time.
  private static let head: StaticString =
    "*3\r\n$7\r\nmessage\r\n$6\r\nfanout\r\n$150\r\n{\"sent\":\""
  private static let subscribed: StaticString = "*3\r\n$9\r\nsubscribe\r\n$6\r\nfanout\r\n:1\r\n"
  private static let payloadLength = 150
  private static let timeLength = 19

  /// The end of a message, behind the time: it fills the payload up.
  private let tail: [UInt8]
  /// The length of a message to a subscriber.
  private let length: Int

  init() {
    let padding = Self.payloadLength - Self.timeLength - 24
    tail = Array(("\",\"padding\":\"" + String(repeating: "x", count: padding) + "\"}\r\n").utf8)
    length = Self.head.utf8CodeUnitCount + Self.timeLength + tail.count
  }

  func greet(_ connection: FanoutConnection) {
    connection.output.append(
      connection.isPublisher
        ? "*1\r\n$4\r\nPING\r\n" : "*2\r\n$9\r\nSUBSCRIBE\r\n$6\r\nfanout\r\n")
  }

  func take(
    _ bytes: Span<UInt8>, of connection: FanoutConnection, _ tally: inout FanoutTally
  ) throws -> Int {
    if connection.phase != .ready { return try takeGreeting(bytes, of: connection) }
    if connection.isPublisher {
      guard bytes[0] == UInt8(ascii: ":") else { throw Self.problem(bytes) }
      return bytes.end(ofLast: "\r\n") ?? 0
    }
    var start = 0
    while start + length <= bytes.count {
      guard bytes.has(Self.head, at: start) else { throw Self.problem(bytes) }
      if connection.isSampled {
        tally.record(bytes.number(at: start + Self.head.utf8CodeUnitCount))
      }
      start += length
    }
    tally.add(start / length, to: connection)
    return start
  }

  private func takeGreeting(_ bytes: Span<UInt8>, of connection: FanoutConnection) throws -> Int {
    let reply = connection.isPublisher ? "+PONG\r\n" : Self.subscribed
    if bytes.count < reply.utf8CodeUnitCount { return 0 }
    guard bytes.has(reply, at: 0) else { throw Self.problem(bytes) }
    connection.phase = .ready
    return reply.utf8CodeUnitCount
  }

  func publish(_ time: Int, by publisher: FanoutConnection) {
    publisher.output.append(
      "*3\r\n$7\r\nPUBLISH\r\n$6\r\nfanout\r\n$150\r\n{\"sent\":\"")
    publisher.output.append(decimal: time, digits: Self.timeLength)
    publisher.output.append(contentsOf: tail)
  }

  private static func problem(_ bytes: Span<UInt8>) -> RoleProblem {
    RoleProblem(text: "redis has answered: \(bytes.excerpt)")
  }
}
#endif
