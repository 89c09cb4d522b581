/// The parameters with which the client asks for a session, and the server's answer to the last ones.
package struct ClientCredentials {
  /// The parameters that the app has passed to ``Client/connect(params:)``.
  var params: JSONValue = .object([:])
  /// The credentials that the client presents. Their parameters take precedence over `params`.
  package var presented: Credentials?
  /// The message with which the server has refused the last credentials.
  private var refusal: String?
  /// True once the server has granted a session.
  private(set) var hasHadSession = false

  /// The reason for which credentials are asked for.
  var reason: Credentials.Reason {
    if let refusal { return .refused(refusal) }
    return hasHadSession ? .reconnect : .first
  }

  /// Takes the parameters of another attempt to get a session. A refusal of the credentials before is not about these.
  mutating func begin(_ params: JSONValue) { (self.params, refusal) = (params, nil) }

  /// Notes that the client has a session.
  mutating func accepted() { (refusal, hasHadSession) = (nil, true) }

  /// Notes that the server has refused the credentials. Returns false if it had refused those before them, too.
  mutating func refused(_ message: String) -> Bool {
    let isFirst = refusal == nil
    refusal = isFirst ? message : nil
    return isFirst
  }
}
