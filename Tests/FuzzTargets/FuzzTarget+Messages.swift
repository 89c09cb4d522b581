import Jetstream

extension FuzzTarget {
  /// Frames of messages, which have to be what comes of reading JSON first.
  static let messages = FuzzTarget(
    "messages",
    seeds: [
      #"{"type":"SessionCreate","index":0,"version":"1.0.0","params":{"fragments":[1]}}"#,
      #"[{"type":"SessionCreateReply","index":0,"sessionToken":"token"},"#
        + #"{"type":"SessionCreateReply","index":0,"error":{"message":"no","type":"denied"}}]"#,
      #"[{"type":"ScopeFetch","index":1,"name":"Canvas","params":{}},"#
        + #"{"type":"ScopeFetchReply","index":1,"replyTo":1,"scopeIndex":0}]"#,
      #"[{"type":"ScopeState","index":2,"scopeIndex":0,"#
        + #""rootUUID":"4d01cd3b-ae1a-429c-ae75-4c211b0adefa","fragments":[\#(change),\#(add)]}]"#,
      #"[{"type":"ScopeSync","index":3,"scopeIndex":0,"fragments":[\#(change),\#(odd),\#(edit)],"#
        + #""atomic":false,"procedure":"Canvas.move"},{"fragments":[0],"type":"Ping"},[]]"#,
      #"[{"type":"ScopeSyncReply","index":4,"replyTo":3,"fragmentReplies":[{},"#
        + #"{"error":{"message":"no"}},{"modifications":{"x":1}}]}]"#,
      #"{"type":"Ping","index":0,"ack":4,"resendMissing":true}"#,
    ],
    words: fragmentWords + [
      #""index":1,"#, #""scopeIndex":0,"#, #""fragments":["#, #""fragments":[]"#, #""error":{"#,
      #""message":"#, #""atomic":true,"#, #""replyTo":1,"#, #""procedure":"A.b","#, "ScopeSync",
      "ScopeState", "Ping",
    ]
  ) { bytes in
    let read = Result { () throws(FrameError) in try Message.decodeFrame(bytes) }
    let expected = Result { () throws(FrameError) in try framesByValue(bytes) }
    switch (read, expected) {
    case (.failure(let error), .failure(let expected)):
      try require(error == expected, "threw \(error), not \(expected)")
    case (.success(let messages), .success(let expected)):
      try require(messages == expected, "read \(messages), not \(expected)")
      for (message, expected) in zip(messages, expected) {
        guard let message = try? message.get(), let expected = try? expected.get() else { continue }
        let text = Message.encodeFrame([message], asArray: false)
        try require(text == Array(expected.json.text.utf8), "\(message) differs in its text")
        let again = try Message.decodeFrame(text)[0].get()
        try require(
          Message.encodeFrame([again], asArray: false) == text, "\(message) changes when written")
      }
    default: throw Finding("\(read), not \(expected)")
    }
  }

  private static func framesByValue(
    _ bytes: [UInt8]
  ) throws(FrameError) -> [Result<Message, MessageError>] {
    let json: JSONValue
    do throws(JSONError) {
      json = try JSONValue(parsing: bytes)
    } catch {
      throw .notJSON(error)
    }
    let members: [JSONValue]
    switch json {
    case .object: members = [json]
    case .array(let elements): members = elements
    default: throw .notMessages
    }
    return members.map { member in
      Result { () throws(MessageError) in try Message(json: member) }
    }
  }
}
