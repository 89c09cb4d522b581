/// The parameters with which the client asks for a session, and the server's answer to the last ones.
package struct ClientCredentials {
  /// The parameters that the app has passed to ``Client/connect(params:)``.
  var params: JSONValue = .object([:])
  /// The credentials that the client presents. Their parameters take precedence over `params`.
  package var presented: Credentials?
  /// The message with which the server has refused the last credentials.
  private var refusal: String?
  /// The last time that the server has granted a session.
  private var granted = Grant.never

  private enum Grant {
    case never
    /// Before the app has had the client connect for the last time.
    case earlier
    /// Since the app has had the client connect.
    case sinceConnecting
  }

  /// True once the server has granted a session since the app has had the client connect. Until then, an address
  /// that cannot work is an error of the app, which waits for the result.
  var hasHadSession: Bool { granted == .sinceConnecting }

  /// The reason for which credentials are asked for.
  var reason: Credentials.Reason {
    if let refusal { return .refused(refusal) }
    return granted == .never ? .first : .reconnect
  }

  /// Takes the parameters with which the app has the client connect. A refusal of the credentials before is not about
  /// these.
  mutating func begin(_ params: JSONValue) {
    (self.params, refusal) = (params, nil)
    if granted == .sinceConnecting { granted = .earlier }
  }

  /// Notes that the client has a session.
  mutating func accepted() { (refusal, granted) = (nil, .sinceConnecting) }

  /// Notes that the server has refused the credentials. Returns false if it had refused those before them, too.
  mutating func refused(_ message: String) -> Bool {
    let isFirst = refusal == nil
    refusal = isFirst ? message : nil
    return isFirst
  }
}
