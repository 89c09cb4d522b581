/// A frame that was received: its messages, and the channel of the session to which they belong.
///
/// Each channel numbers, acknowledges and repeats its messages on its own. The frames of channel 0, which every session
/// has, are arrays or bare objects; those of others name their channel: `{"channel":1,"messages":[...]}`, in this order.
package struct MessageFrame: Sendable {
  /// The number of the channel.
  package let channel: Int
  /// The messages, each read on its own, in the order of the frame.
  package let messages: Result<[Result<Message, MessageError>], FrameError>

  /// Reads a frame.
  package init(_ bytes: [UInt8], limits: JSONLimits = .default) {
    var frame: (channel: Int?, messages: [Result<Message, MessageError>]?) = (0, nil)
    let error = bytes.withUnsafeBufferPointer { bytes in
      JSONParser.parse(inPlace: bytes, limits: limits) { parser throws(JSONError) in
        frame = try parser.frame()
      }
    }
    channel = error == nil ? frame.channel ?? 0 : 0
    messages =
      if let error {
        .failure(.notJSON(error))
      } else if frame.channel == nil {
        .failure(.invalidChannel)
      } else if let messages = frame.messages {
        .success(messages)
      } else {
        .failure(.notMessages)
      }
  }

  /// Writes the beginning of a frame with an array of messages.
  static func writeStart(of channel: Int, to output: inout JSONOutput) {
    if channel > 0 {
      output.append(fixed: #"{"channel":"#)
      output.append(Array(String(channel).utf8))
      output.append(fixed: #","messages":"#)
    }
    output.append("[")
  }

  /// Writes the end of a frame with an array of messages.
  static func writeEnd(of channel: Int, to output: inout JSONOutput) {
    output.append("]")
    if channel > 0 { output.append("}") }
  }

  /// Returns what stands before the messages of a frame, and behind them.
  package static func ends(of channel: Int) -> (start: [UInt8], end: [UInt8]) {
    var start = JSONOutput()
    var end = JSONOutput()
    writeStart(of: channel, to: &start)
    writeEnd(of: channel, to: &end)
    return (Array(start.bytes), Array(end.bytes))
  }
}
