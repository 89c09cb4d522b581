extension Message {
  /// Reads the messages of one frame: an object, or an array of objects.
  ///
  /// Each member is read on its own, so that one bad message does not take the others with it. The
  /// order is that of the frame; what to do about errors and about the order of indexes is left to
  /// the caller. An empty array gives no messages.
  ///
  /// - Throws: ``FrameError`` if the frame is not JSON, or is neither an object nor an array.
  package static func decodeFrame(
    _ bytes: some Collection<UInt8>, limits: JSONLimits = .default
  ) throws(FrameError) -> [Result<Message, MessageError>] {
    let read = JSONParser.parse(bytes, limits: limits) { parser throws(JSONError) in
      try parser.messages()
    }
    switch read {
    case .failure(let error): throw .notJSON(error)
    case .success(nil): throw .notMessages
    case .success(let messages?): return messages
    }
  }

  /// Reads the messages of one frame; the error is part of the result, to be carried elsewhere.
  package static func frame(
    _ bytes: [UInt8]
  ) -> Result<[Result<Message, MessageError>], FrameError> {
    do throws(FrameError) {
      return .success(try decodeFrame(bytes))
    } catch {
      return .failure(error)
    }
  }

  /// Whether a frame is an array rather than a bare object, by its first byte that is not white
  /// space. The first message of a connection has to be bare.
  package static func isArrayFrame(_ bytes: some Collection<UInt8>) -> Bool {
    let first = bytes.first { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 }
    return first == UInt8(ascii: "[")
  }

  /// Writes one frame. Servers always send arrays; old servers want a client's messages bare.
  ///
  /// - Parameters:
  ///   - messages: What to send, in order.
  ///   - asArray: Whether a single message goes into an array too. Any other number of messages
  ///     makes an array in any case.
  package static func encodeFrame(_ messages: [Message], asArray: Bool) -> [UInt8] {
    var output = JSONOutput()
    if messages.count == 1, !asArray {
      messages[0].write(to: &output)
      return Array(output.bytes)
    }
    output.append("[")
    for (position, message) in messages.enumerated() {
      if position > 0 { output.append(",") }
      message.write(to: &output)
    }
    output.append("]")
    return Array(output.bytes)
  }
}

extension JSONParser {
  /// Reads a frame, or any other value, which gives nil.
  fileprivate mutating func messages() throws(JSONError) -> [Result<Message, MessageError>]? {
    skipWhiteSpace()
    switch next {
    case UInt8(ascii: "{"): return [try message(depth: 0)]
    case UInt8(ascii: "["):
      var messages: [Result<Message, MessageError>] = []
      try eachElement(depth: 1) { parser throws(JSONError) in
        messages.append(try parser.message(depth: 1))
      }
      return messages
    default:
      _ = try value(depth: 0)
      return nil
    }
  }

  /// Reads any value as a message, its fragments without making JSON values of them first.
  private mutating func message(depth: Int) throws(JSONError) -> Result<Message, MessageError> {
    skipWhiteSpace()
    guard next == UInt8(ascii: "{") else {
      _ = try value(depth: depth)
      return .failure(.notAnObject)
    }
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
