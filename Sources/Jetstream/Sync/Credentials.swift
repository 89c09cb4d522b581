/// With what a client asks for a session.
public struct Credentials: Sendable {
  /// What reaches the application on the server as the parameters of the session; nil for those of
  /// ``Client/connect(params:isolation:)``.
  public var params: JSONValue?
  /// Headers of the request that opens the connection, besides those of the transport.
  public var headers: [(String, String)]

  /// Makes credentials.
  public init(params: JSONValue? = nil, headers: [(String, String)] = []) {
    self.params = params
    self.headers = headers
  }

  /// Why a client asks for credentials.
  public enum Reason: Sendable, Hashable {
    /// It has had no session yet.
    case first
    /// The session that it has had is over.
    case reconnect
    /// Those that it has shown last were refused, with these words.
    case refused(String)
  }

  /// Gives credentials, away from the client's actor.
  public typealias Source = @Sendable (Reason) async throws -> Credentials
}
