/// The number in a close frame that gives the reason why a connection ends.
public struct WebSocketCloseCode: RawRepresentable, Sendable, Hashable, ExpressibleByIntegerLiteral,
  CustomStringConvertible
{
  /// The number on the wire.
  public var rawValue: UInt16

  /// Makes a code with any number. Not every code may be sent; see ``isAllowedOnWire``.
  public init(rawValue: UInt16) {
    self.rawValue = rawValue
  }

  /// Makes a code from a literal such as `4096`.
  public init(integerLiteral value: UInt16) {
    rawValue = value
  }

  /// 1000: the purpose of the connection is fulfilled.
  public static let normal: Self = 1000
  /// 1001: the side is going away, such as a server that stops.
  public static let goingAway: Self = 1001
  /// 1002: the peer broke the protocol.
  public static let protocolError: Self = 1002
  /// 1003: the peer sent a kind of message that cannot be handled.
  public static let unsupportedData: Self = 1003
  /// 1005: the close frame held no code. Never sent; only reported.
  public static let noStatus: Self = 1005
  /// 1006: the connection ended without a close frame. Never sent; only reported.
  public static let abnormal: Self = 1006
  /// 1007: a message's content did not fit its kind, such as text that is not UTF-8.
  public static let invalidPayload: Self = 1007
  /// 1008: the peer broke a rule that no other code names, such as reading too slowly.
  public static let policyViolation: Self = 1008
  /// 1009: a message was larger than the receiver takes.
  public static let messageTooBig: Self = 1009
  /// 1011: the server met an unexpected condition.
  public static let internalError: Self = 1011

  /// A Boolean value that indicates whether the code may be sent in a close frame: 1000 to 1003, 1007 to 1014 and 3000
  /// to 4999.
  public var isAllowedOnWire: Bool {
    switch rawValue {
    case 1000...1003, 1007...1014, 3000...4999: true
    default: false
    }
  }

  /// The number in decimal digits.
  public var description: String { String(rawValue) }
}

/// The end of a connection: the code, the reason and the side that closed first.
public struct WebSocketCloseStatus: Sendable, Hashable {
  /// The largest size of a reason in bytes of UTF-8, which the size limit of control frames sets.
  public static let maximumReasonBytes = 123

  /// The code with which the connection ended.
  public var code: WebSocketCloseCode

  /// The closing side's own text; often empty.
  public var reason: String

  /// True if the peer closed first. False if this side did, and if the connection was lost.
  public var byPeer: Bool

  /// Makes a status.
  public init(code: WebSocketCloseCode, reason: String = "", byPeer: Bool = false) {
    self.code = code
    self.reason = reason
    self.byPeer = byPeer
  }

  /// Returns `reason`, cut after the last scalar that fits into a close frame.
  static func fitting(_ reason: String) -> String {
    guard reason.utf8.count > maximumReasonBytes else { return reason }
    var fitted = String.UnicodeScalarView()
    var size = 0
    for scalar in reason.unicodeScalars {
      size += UTF8.width(scalar)
      if size > maximumReasonBytes { break }
      fitted.append(scalar)
    }
    return String(fitted)
  }
}
