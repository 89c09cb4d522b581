#if os(Linux)
import Foundation

/// Jetstream's protocol over WebSocket. It looks for no more in a frame than it needs.
struct JetstreamWire: FanoutWire {
  /// The number of messages after which a client acknowledges, as Jetstream's own does.
  private static let acknowledgeAfter = 256
  /// The version of the protocol: 1 or 2.
  private let version: Int
  private let client = UUID().uuidString.lowercased()
  private var scopeIndex = 0
  /// The beginning of a change set's message behind its index, up to the time.
  private var head: [UInt8] = []
  /// The index of the publisher's last message. The first one fetches the scope.
  private var index = 1
  /// The number of the publisher's last change set that was answered.
  private var answered = 0

  init(version: Int) { self.version = version }

  // MARK: Joining

  func greet(_ connection: FanoutConnection) {
    connection.output.append(
      "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
    connection.output.append(
      "Sec-WebSocket-Key: RmFub3V0IG9mIGEgbG9hZA==\r\nSec-WebSocket-Version: 13\r\n\r\n")
  }

  private func join(_ connection: FanoutConnection) {
    Self.frame(in: &connection.output) {
      $0.append(#"{"type":"SessionCreate","index":0,"version":"0.2.0","params":{}"#)
      if version > 1 { $0.append(#","protocol":2"#) }
      if version > 1, connection.isPublisher {
        $0.append(contentsOf: #","client":"\#(client)""#.utf8)
      }
      $0.append("}")
    }
    Self.frame(in: &connection.output) {
      $0.append(#"{"type":"ScopeFetch","index":1,"name":"Billboard","params":{}}"#)
    }
    connection.phase = .joining
  }

  private mutating func takeJoining(_ message: Span<UInt8>, of connection: FanoutConnection) throws
  {
    if message.end(ofFirst: #""error":"#) != nil {
      throw RoleProblem(text: "the server has refused a client: \(message.excerpt)")
    }
    guard message.end(ofFirst: #""type":"ScopeState""#) != nil else { return }
    guard let scope = message.end(ofFirst: #""scopeIndex":"#),
      let root = message.end(ofFirst: #""rootUUID":""#), root + 36 <= message.count
    else { throw RoleProblem(text: "the state has no root: \(message.excerpt)") }
    scopeIndex = message.number(at: scope)
    head.removeAll()
    head.append(#","scopeIndex":"#)
    head.append(decimal: scopeIndex)
    head.append(#","fragments":[{"type":"change","uuid":""#)
    for place in root..<root + 36 { head.append(message[place]) }
    head.append(#"","clsName":"Billboard","properties":{"name":""#)
    connection.index = message.number(behindLast: #""index":"#) ?? 0
    connection.phase = .ready
  }

  // MARK: Taking

  mutating func take(
    _ bytes: Span<UInt8>, of connection: FanoutConnection, _ tally: inout FanoutTally
  ) throws -> Int {
    var start = 0
    if connection.phase == .greeting {
      guard let end = bytes.end(ofFirst: "\r\n\r\n") else { return 0 }
      guard bytes.has("HTTP/1.1 101 ", at: 0) else {
        throw RoleProblem(text: "the server has refused a connection: \(bytes.excerpt)")
      }
      start = end
      join(connection)
    }
    while let payload = Self.nextPayload(bytes, from: start) {
      let message = bytes.extracting(payload)
      switch bytes[start] {
      case 0x81: try take(message: message, of: connection, &tally)
      case 0x88:
        let reason = message.extracting(min(2, message.count)..<message.count).excerpt
        throw RoleProblem(text: "the server has closed a connection: \(reason)")
      case let kind: throw RoleProblem(text: "the server has sent a frame of the kind \(kind)")
      }
      start = payload.upperBound
    }
    return start
  }

  /// Returns the place of the payload of the frame that begins at `start`; nil if the frame has not arrived whole.
  private static func nextPayload(_ bytes: Span<UInt8>, from start: Int) -> Range<Int>? {
    guard start + 2 <= bytes.count else { return nil }
    var length = Int(bytes[start + 1])
    var begin = start + 2
    if length > 125 {
      begin += length == 126 ? 2 : 8
      guard begin <= bytes.count else { return nil }
      length = 0
      for place in start + 2..<begin { length = length << 8 | Int(bytes[place]) }
    }
    return begin + length <= bytes.count ? begin..<begin + length : nil
  }

  private mutating func take(
    message: Span<UInt8>, of connection: FanoutConnection, _ tally: inout FanoutTally
  ) throws {
    if connection.phase == .joining { return try takeJoining(message, of: connection) }
    if connection.isPublisher {
      try takeReplies(message, of: connection)
    } else {
      let count = Self.countSets(message, isSampled: connection.isSampled, &tally)
      tally.add(count, to: connection)
      connection.unacknowledged += count
    }
    if connection.unacknowledged >= Self.acknowledgeAfter { acknowledge(message, on: connection) }
  }

  private mutating func takeReplies(
    _ message: Span<UInt8>, of publisher: FanoutConnection
  ) throws {
    if message.end(ofFirst: #"[{"error":"#) != nil {
      throw RoleProblem(text: "the server has refused a change set: \(message.excerpt)")
    }
    guard let reply = message.number(behindLast: #""replyTo":"#) else { return }
    // Each message since the fetch, whose index is 1, has had a change set.
    publisher.unacknowledged += max(reply - 1 - answered, 0)
    answered = max(answered, reply - 1)
  }

  /// Returns the number of change sets in a frame.
  ///
  /// Those of one frame are mostly of one length, so the next one is looked for where it should be, and searched only if
  /// it is not there.
  private static func countSets(
    _ message: Span<UInt8>, isSampled: Bool, _ tally: inout FanoutTally
  ) -> Int {
    let key: StaticString = #""type":"ScopeSync""#
    // The letter S, which is in nothing else of a change set.
    let anchor = 8
    let timeKey: StaticString = #""name":""#
    var count = 0
    var length = 0
    var timeDistance = 0
    var next = message.end(ofFirst: key, anchor: anchor)
    while let place = next {
      count += 1
      if isSampled {
        if !message.has(timeKey, at: place + timeDistance) {
          timeDistance = (message.end(ofFirst: timeKey, from: place) ?? place) - place - 8
        }
        tally.record(message.number(at: place + timeDistance + 8))
      }
      if length > 0, message.has(key, at: place + length - key.utf8CodeUnitCount) {
        next = place + length
      } else {
        next = message.end(ofFirst: key, from: place, anchor: anchor)
        length = next.map { $0 - place } ?? 0
      }
    }
    return count
  }

  private func acknowledge(_ message: Span<UInt8>, on connection: FanoutConnection) {
    let sequence = message.number(behindLast: #""sequence":"#)
    guard let index = message.number(behindLast: #""index":"#), version == 1 || sequence != nil
    else { return }
    connection.index = max(connection.index, index)
    connection.unacknowledged = 0
    Self.frame(in: &connection.output) {
      $0.append(#"{"type":"Ping","index":0,"ack":"#)
      $0.append(decimal: connection.index)
      $0.append(#","resendMissing":false"#)
      if let sequence {
        $0.append(#","seen":[{"scopeIndex":"#)
        $0.append(decimal: scopeIndex)
        $0.append(#","sequence":"#)
        $0.append(decimal: sequence)
        $0.append("}]")
      }
      $0.append("}")
    }
  }

  // MARK: Sending

  mutating func publish(_ time: Int, by publisher: FanoutConnection) {
    index += 1
    Self.frame(in: &publisher.output) {
      $0.append(#"{"type":"ScopeSync","index":"#)
      $0.append(decimal: index)
      $0.append(contentsOf: head)
      $0.append(decimal: time, digits: 19)
      $0.append(#""}}]"#)
      if version > 1 {
        $0.append(#","number":"#)
        $0.append(decimal: index - 1)
        $0.append(#","decided":"#)
        $0.append(decimal: answered)
      }
      $0.append("}")
    }
  }

  /// Appends a frame with the text that `body` appends. Its mask is zero, which leaves the text as it is.
  private static func frame(in output: inout [UInt8], _ body: (inout [UInt8]) -> Void) {
    let start = output.count
    output.append("\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}")
    body(&output)
    let count = output.count - start - 8
    precondition(count < 1 << 16, "A text of the load is short.")
    output[start] = 0x81
    output[start + 1] = 0x80 | UInt8(min(count, 126))
    if count < 126 {
      output.removeSubrange(start + 2..<start + 4)
    } else {
      output[start + 2] = UInt8(count >> 8)
      output[start + 3] = UInt8(count & 0xff)
    }
  }
}
#endif
