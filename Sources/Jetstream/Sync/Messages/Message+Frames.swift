extension Message {
  /// Reads the messages of one frame: an object, or an array of objects.
  ///
  /// Reads each element on its own, so that one invalid message does not discard the others. Keeps the order of the
  /// frame; the caller handles errors and checks the order of indexes. An empty array yields no messages.
  ///
  /// - Throws: ``FrameError`` if the frame is not JSON, or is neither an object nor an array.
  package static func decodeFrame(
    _ bytes: some Collection<UInt8>, limits: JSONLimits = .default
  ) throws(FrameError) -> [Result<Message, MessageError>] {
    try frame(Array(bytes), limits: limits).get()
  }

  /// Reads the messages of one frame, of whatever channel. Returns the error as part of the result, so that it can be
  /// sent to another isolation domain.
  package static func frame(
    _ bytes: [UInt8], limits: JSONLimits = .default
  ) -> Result<[Result<Message, MessageError>], FrameError> {
    MessageFrame(bytes, limits: limits).messages
  }

  /// Returns true if a frame holds an array rather than a bare object, judging by the first byte that is not white
  /// space. The first message of a connection has to be bare.
  package static func isArrayFrame(_ bytes: [UInt8]) -> Bool {
    for byte in bytes where byte != 0x20 && byte != 0x0A && byte != 0x0D && byte != 0x09 {
      return byte == UInt8(ascii: "[")
    }
    return false
  }

  /// Encodes one frame. Servers always send arrays; old servers expect a client's messages to be bare.
  ///
  /// - Parameters:
  ///   - messages: the messages to send, in order.
  ///   - asArray: true to wrap a single message in an array, too. Any other number of messages always makes an
  ///     array.
  ///   - channel: the channel of the session to which the messages belong.
  package static func encodeFrame(
    _ messages: [Message], asArray: Bool, channel: Int = 0
  ) -> [UInt8] {
    var output = JSONOutput()
    if messages.count == 1, !asArray, channel == 0 {
      messages[0].write(to: &output)
      return Array(output.bytes)
    }
    MessageFrame.writeStart(of: channel, to: &output)
    for (position, message) in messages.enumerated() {
      if position > 0 { output.append(",") }
      message.write(to: &output)
    }
    MessageFrame.writeEnd(of: channel, to: &output)
    return Array(output.bytes)
  }
}

extension JSONParser {
  /// Reads a frame, and the channel that it names; its messages are nil for JSON that is no frame.
  mutating func frame() throws(JSONError) -> (
    channel: Int?, messages: [Result<Message, MessageError>]?
  ) {
    skipWhiteSpace()
    switch next {
    case UInt8(ascii: "{"):
      if namesChannel() { return try channelFrame() }
      return (0, [try message(depth: 0)])
    case UInt8(ascii: "["): return (0, try messages(depth: 1))
    default:
      _ = try value(depth: 0)
      return (0, nil)
    }
  }

  /// Returns true if the first key of the object that comes next is `channel`.
  private mutating func namesChannel() -> Bool {
    let start = position
    defer { position = start }
    position += 1
    skipWhiteSpace()
    return take(#""channel""#)
  }

  /// Reads an object with a channel and its messages. The channel is nil if the object has another form.
  private mutating func channelFrame() throws(JSONError) -> (Int?, [Result<Message, MessageError>]?)
  {
    var messages: [Result<Message, MessageError>]?
    let object = try object(depth: 1) { parser, key throws(JSONError) in
      parser.skipWhiteSpace()
      guard key == "messages", parser.next == UInt8(ascii: "[") else {
        return try parser.value(depth: 1)
      }
      messages = try parser.messages(depth: 2)
      return .array([])
    }
    let channel = object["channel"].flatMap(\.wholeNumber)
    return (messages == nil ? nil : channel, messages)
  }

  private mutating func messages(
    depth: Int
  ) throws(JSONError) -> [Result<Message, MessageError>] {
    var messages: [Result<Message, MessageError>] = []
    try eachElement(depth: depth) { parser throws(JSONError) in
      messages.append(try parser.message(depth: depth))
    }
    return messages
  }

  /// Reads any value as a message. Decodes its fragments directly, without making JSON values of them first.
  private mutating func message(depth: Int) throws(JSONError) -> Result<Message, MessageError> {
    skipWhiteSpace()
    guard next == UInt8(ascii: "{") else {
      _ = try value(depth: depth)
      return .failure(.notAnObject)
    }
    let start = position
    if let message = try plainMessage(depth: depth) { return .success(message) }
    position = start
    var fragments: Fragments?
    let object = try object(depth: depth + 1) { parser, key throws(JSONError) in
      guard key == "fragments" else { return try parser.value(depth: depth + 1) }
      parser.skipWhiteSpace()
      guard parser.next == UInt8(ascii: "[") else { return try parser.value(depth: depth + 1) }
      fragments = try parser.fragments(depth: depth + 2)
      return .array([])
    }
    do throws(MessageError) {
      return .success(try Message(try MessageFields(object, fragments: fragments)))
    } catch {
      return .failure(error)
    }
  }
}
