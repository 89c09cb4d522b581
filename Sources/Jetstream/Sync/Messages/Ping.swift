/// Acknowledges messages and shows that the sender is alive.
package struct Ping: Sendable, Hashable {
  /// Always 0 in pings that this implementation sends.
  package var index: Int

  /// The highest index that the sender has received, 0 for none.
  package var ack: Int

  /// True to ask the receiver to resend all messages above ``ack``.
  package var resendMissing: Bool

  /// The highest index that the sender has sent, so that the receiver notices if the last messages are missing.
  /// Since version 2.
  package var sent: Int?

  /// The places up to which a client has applied the order of its scopes; from clients only. Since version 2.
  package var seen: [Place] = []

  /// The places up to which the server has sent the streams of scopes of which the client has not acknowledged everything,
  /// so that the client notices if the last change sets are missing. For a scope of which the server no longer has what
  /// the client lacks, the sequence behind the last one. From servers only. Since version 2.
  package var told: [Place] = []

  /// The sequences that the server's scopes have when it answers a client that resumes a session, of those of which the
  /// client gets everything and has not acknowledged everything. From servers only. Since version 2.
  package var latest: [Place] = []

  /// The digests of the scopes that the server tells everything about; from servers only. Since version 2.
  package var checks: [Check] = []

  /// The scopes whose digest differs at the client; from clients only. Since version 2.
  package var differences: [Difference] = []

  /// Creates a ping.
  package init(index: Int = 0, ack: Int, resendMissing: Bool = false, sent: Int? = nil) {
    self.index = index
    self.ack = ack
    self.resendMissing = resendMissing
    self.sent = sent
  }
}

extension Ping: MessageBody {
  static var type: String { "Ping" }

  init(_ fields: MessageFields) throws(MessageError) {
    // As old servers do, anything but `true` counts as false.
    self.init(
      index: fields.index, ack: try fields.wholeNumber("ack"),
      resendMissing: fields["resendMissing"] == .bool(true),
      sent: try fields.optionalNumber("sent"))
    if fields.has("seen") { seen = try fields.elements("seen", Place.init(json:)) }
    if fields.has("told") { told = try fields.elements("told", Place.init(json:)) }
    if fields.has("latest") { latest = try fields.elements("latest", Place.init(json:)) }
    if fields.has("checks") { checks = try fields.elements("checks", Check.init(json:)) }
    if fields.has("differences") {
      differences = try fields.elements("differences", Difference.init(json:))
    }
  }

  func write<Sink: FieldSink & ~Copyable>(to sink: inout Sink) {
    sink.put("ack", ack)
    sink.put("resendMissing", .bool(resendMissing))
    if let sent { sink.put("sent", sent) }
    if !seen.isEmpty { sink.put("seen", .array(seen.map(\.json))) }
    if !told.isEmpty { sink.put("told", .array(told.map(\.json))) }
    if !latest.isEmpty { sink.put("latest", .array(latest.map(\.json))) }
    if !checks.isEmpty { sink.put("checks", .array(checks.map(\.json))) }
    if !differences.isEmpty { sink.put("differences", .array(differences.map(\.json))) }
  }
}
