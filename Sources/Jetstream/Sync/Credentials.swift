/// The credentials that a client presents when it asks a server for a session.
public struct Credentials: Sendable {
  /// The parameters of the session, which the server's app reads; nil for those given to
  /// ``Client/connect(params:)``.
  public var params: JSONValue?
  /// Headers of the request that opens the connection, in addition to the transport's own.
  public var headers: [(String, String)]

  /// Creates credentials.
  public init(params: JSONValue? = nil, headers: [(String, String)] = []) {
    self.params = params
    self.headers = headers
  }

  /// The occasion on which the client asks for credentials.
  public enum Reason: Sendable, Hashable {
    /// The client has not had a session yet.
    case first
    /// The client's last session has ended.
    case reconnect
    /// The server refused the last credentials, with this message.
    case refused(String)
  }

  /// A function that returns credentials. The client calls it outside its isolation domain.
  package typealias Source = @Sendable (Reason) async throws -> Credentials
}
