/// An error in a JSON text, with its position.
public struct JSONError: Error, Sendable, Hashable {
  /// The reason why a text is no valid JSON.
  package enum Reason: Sendable, Hashable {
    /// A byte that cannot stand at this place.
    case unexpectedCharacter
    /// The text stops before the value is complete.
    case unexpectedEnd
    /// Something other than white space follows the value.
    case trailingCharacters
    /// A number that breaks JSON's grammar, such as `01`, `1.` or `-x`.
    case invalidNumber
    /// A number too large for a `Double`.
    case numberOutOfRange
    /// A backslash that does not begin one of JSON's escapes.
    case invalidEscape
    /// An escaped half of a surrogate pair without the other half.
    case loneSurrogate
    /// A control character in a string that should have been escaped.
    case controlCharacter
    /// Bytes in a string that are not UTF-8.
    case invalidUTF8
    /// A key that the same object already has.
    case duplicateKey(String)
    /// Arrays and objects nested deeper than the limit.
    case tooDeep
    /// A text longer than the limit.
    case tooLong
  }

  /// The reason for the error.
  package var reason: Reason

  /// The number of bytes before the position of the error.
  package var offset: Int

  /// Makes an error.
  package init(_ reason: Reason, at offset: Int) {
    self.reason = reason
    self.offset = offset
  }
}

extension JSONError: CustomStringConvertible {
  /// A sentence fragment such as "unexpected character at byte 17".
  public var description: String { "\(reason) at byte \(offset)" }
}

extension JSONError.Reason: CustomStringConvertible {
  /// The reason in words.
  public var description: String {
    switch self {
    case .unexpectedCharacter: "unexpected character"
    case .unexpectedEnd: "unexpected end"
    case .trailingCharacters: "trailing characters"
    case .invalidNumber: "invalid number"
    case .numberOutOfRange: "number out of range"
    case .invalidEscape: "invalid escape"
    case .loneSurrogate: "lone surrogate"
    case .controlCharacter: "unescaped control character"
    case .invalidUTF8: "invalid UTF-8"
    case .duplicateKey(let key): "duplicate key \"\(key)\""
    case .tooDeep: "nesting too deep"
    case .tooLong: "text too long"
    }
  }
}

/// The limits on the depth and the length of JSON that is read.
package struct JSONLimits: Sendable, Hashable {
  /// The maximum depth of nested arrays and objects. Values above 256 count as 256, so that neither reading nor
  /// releasing a value can exhaust a thread's stack.
  package var maxDepth: Int

  /// The maximum length of a text, in bytes.
  package var maxBytes: Int

  /// Makes limits: by default 64 levels and 64 MiB.
  package init(maxDepth: Int = 64, maxBytes: Int = 64 << 20) {
    self.maxDepth = maxDepth
    self.maxBytes = maxBytes
  }

  /// Limits of 64 levels and 64 MiB, for JSON that may come from a hostile peer: what clients send to a server.
  package static let `default` = JSONLimits()

  /// Limits of 256 levels and 1 GiB, for what a client reads from its server, and everyone from a log of their own. What
  /// a server takes from one client gets other things around it on its way to the next, so the limits have to be wider.
  package static let trusted = JSONLimits(maxDepth: 256, maxBytes: 1 << 30)

  /// Limits of 240 levels and 1 GiB, for one value of a model: with what stands around it in a message or in a log, it can
  /// be read within ``trusted``.
  package static let value = JSONLimits(maxDepth: 240, maxBytes: 1 << 30)
}
