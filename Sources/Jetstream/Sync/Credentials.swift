/// What a client shows a server when it asks for a session.
public struct Credentials: Sendable {
  /// The parameters of the session, which the app on the server reads; nil for those that were given to
  /// ``Client/connect(params:isolation:)``.
  public var params: JSONValue?
  /// Headers of the request that opens the connection, in addition to those of the transport.
  public var headers: [(String, String)]

  /// Makes credentials.
  public init(params: JSONValue? = nil, headers: [(String, String)] = []) {
    self.params = params
    self.headers = headers
  }

  /// The occasion on which a client asks for credentials.
  public enum Reason: Sendable, Hashable {
    /// The client has had no session yet.
    case first
    /// The client's last session has ended.
    case reconnect
    /// The server has refused the last credentials, with this message.
    case refused(String)
  }

  /// A function that returns credentials. The client calls it away from its actor.
  public typealias Source = @Sendable (Reason) async throws -> Credentials
}
