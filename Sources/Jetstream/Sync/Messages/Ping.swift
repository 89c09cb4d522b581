/// Acknowledges messages and shows that the sender is alive.
public struct Ping: Sendable, Hashable {
  /// Always 0 from our side.
  public var index: Int

  /// The highest number that the sender has received, 0 for none.
  public var ack: Int

  /// Whether the receiver should send again everything above ``ack``.
  public var resendMissing: Bool

  /// Makes a ping.
  public init(index: Int = 0, ack: Int, resendMissing: Bool = false) {
    self.index = index
    self.ack = ack
    self.resendMissing = resendMissing
  }
}

extension Ping: MessageBody {
  static var type: String { "Ping" }

  init(_ fields: MessageFields) throws(MessageError) {
    // As old servers do, anything but `true` counts as false.
    self.init(
      index: fields.index, ack: try fields.wholeNumber("ack"),
      resendMissing: fields["resendMissing"] == .bool(true))
  }

  var json: JSONObject {
    var object = head
    object["ack"] = .integer(Int64(ack))
    object["resendMissing"] = .bool(resendMissing)
    return object
  }
}
