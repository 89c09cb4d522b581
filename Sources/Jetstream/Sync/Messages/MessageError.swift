/// The reason why an element of a frame is not a valid message.
///
/// `index` is the index that the message carries, if it has a valid one, so that a log can tell which of the peer's
/// messages was dropped.
package enum MessageError: Error, Sendable, Hashable {
  /// The element is not a JSON object; arrays do not nest.
  case notAnObject
  /// The message has a type that this version does not know. Log it and continue.
  case unknownType(String, index: Int?)
  /// A required field is missing. `message` is the type of the message, empty if the type itself is missing.
  case missing(message: String, index: Int?, field: String)
  /// A field has an invalid value; `problem` says which values are valid.
  case invalid(message: String, index: Int?, field: String, problem: String)
  /// An element of the field `fragments` or `fragmentReplies` is invalid.
  case invalidElement(
    message: String, index: Int?, field: String, position: Int, error: FragmentError)
  /// The message answers the message with this index, but the rest of it is invalid.
  indirect case inReply(to: Int, MessageError)
  /// The message concerns the scope with this scope index, but the rest of it is invalid.
  indirect case inScope(Int, MessageError)
  /// The message is the sender's change set with this number, but the rest of it is invalid.
  indirect case inChangeSet(number: Int, MessageError)
  /// The message calls a procedure, but the rest of it is invalid.
  indirect case inCall(MessageError)
}

extension MessageError {
  /// The index of the message, if it could be read.
  package var index: Int? {
    switch self {
    case .notAnObject: nil
    case .unknownType(_, let index), .missing(_, let index, _), .invalid(_, let index, _, _),
      .invalidElement(_, let index, _, _, _):
      index
    case .inReply(_, let error), .inScope(_, let error), .inChangeSet(_, let error),
      .inCall(let error):
      error.index
    }
  }
}

extension MessageError: CustomStringConvertible {
  /// The message, the field and the problem, in words.
  package var description: String {
    switch self {
    case .notAnObject: "not an object"
    case .unknownType(let type, _): "unknown message type \"\(type)\""
    case .missing(let message, let index, let field):
      "\(Self.name(message, index)): \(field) is missing"
    case .invalid(let message, let index, let field, let problem):
      "\(Self.name(message, index)): \(field) \(problem)"
    case .invalidElement(let message, let index, let field, let position, let error):
      "\(Self.name(message, index)): \(field)[\(position)]: \(error)"
    case .inReply(_, let error), .inScope(_, let error), .inChangeSet(_, let error),
      .inCall(let error):
      error.description
    }
  }

  private static func name(_ message: String, _ index: Int?) -> String {
    let name = message.isEmpty ? "message" : message
    return index.map { "\(name) \($0)" } ?? name
  }
}

/// The reason why a whole frame holds no messages.
package enum FrameError: Error, Sendable, Hashable {
  /// The frame is not JSON.
  case notJSON(JSONError)
  /// The frame is JSON, but neither an object nor an array.
  case notMessages
  /// The frame is of a channel, and is not `{"channel":number,"messages":[...]}`.
  case invalidChannel
}

extension FrameError: CustomStringConvertible {
  /// The problem in words.
  package var description: String {
    switch self {
    case .notJSON(let error): "not JSON: \(error)"
    case .notMessages: "neither an object nor an array"
    case .invalidChannel: #"a channel that is not of the form {"channel":1,"messages":[]}"#
    }
  }
}
