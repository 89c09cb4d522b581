extension Message {
  /// Reads the messages of one frame: an object, or an array of objects.
  ///
  /// Each member is read on its own, so that one bad message does not take the others with it. The
  /// order is that of the frame; what to do about errors and about the order of indexes is left to
  /// the caller. An empty array gives no messages.
  ///
  /// - Throws: ``FrameError`` if the frame is not JSON, or is neither an object nor an array.
  public static func decodeFrame(
    _ bytes: some Collection<UInt8>, limits: JSONLimits = .default
  ) throws(FrameError) -> [Result<Message, MessageError>] {
    let json: JSONValue
    do throws(JSONError) {
      json = try JSONValue(parsing: bytes, limits: limits)
    } catch {
      throw .notJSON(error)
    }
    switch json {
    case .object: return [decode(json)]
    case .array(let members): return members.map(decode)
    default: throw .notMessages
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
  public static func isArrayFrame(_ bytes: some Collection<UInt8>) -> Bool {
    let first = bytes.first { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 }
    return first == UInt8(ascii: "[")
  }

  /// Writes one frame. Servers always send arrays; old servers want a client's messages bare.
  ///
  /// - Parameters:
  ///   - messages: What to send, in order.
  ///   - asArray: Whether a single message goes into an array too. Any other number of messages
  ///     makes an array in any case.
  public static func encodeFrame(_ messages: [Message], asArray: Bool) -> [UInt8] {
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

  private static func decode(_ json: JSONValue) -> Result<Message, MessageError> {
    do throws(MessageError) {
      return .success(try Message(json: json))
    } catch {
      return .failure(error)
    }
  }
}
