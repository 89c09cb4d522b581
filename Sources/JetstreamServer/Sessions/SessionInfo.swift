import Foundation
import Jetstream
import JetstreamWebSocket

/// A client's session, as the app sees it.
public struct SessionInfo: Sendable, Hashable {
  /// The token with which the client resumes the session. Keep it secret: a client that knows it can take over the
  /// session of a guest, and that of a principal if it has credentials of the same principal.
  public var token: String { box.fields.token }
  /// The headers and query parameters whose names begin with `x-jetstream-`, of the same connection as ``request``. The
  /// keys are the names without that prefix, in lower case for headers.
  public var connectionParams: [String: String] { box.fields.connectionParams }
  /// The parameters that the client sent when it created the session.
  public var params: JSONValue { box.fields.params }
  /// The version that the client has given as its own.
  public var version: String { box.fields.version }
  /// The client's identity, the same in all its sessions; nil for a client that does not number its change sets. The
  /// client names it itself, unchecked.
  public var client: UUID? { box.fields.client }
  /// The HTTP request that opened the connection on which the client created the session, with its headers and remote
  /// address, behind proxies that are trusted; nil for a connection that is not an HTTP upgrade.
  ///
  /// When a client resumes its session, ``Server/authenticate`` is passed the request and the ``connectionParams`` of the
  /// new connection. The session itself keeps those with which it was created: only ``principal`` is replaced.
  public var request: HTTPRequest? { box.fields.request }
  /// The principal for which the session acts, which ``Server/authenticate`` has returned; nil for a guest, and before it
  /// has returned.
  public internal(set) var principal: Principal? {
    get { box.fields.principal }
    set { box = Box(box.fields.replacing(\.principal, newValue)) }
  }
  /// The number by which diagnostics name the session, in all its channels; 0 before it is created.
  var number: Int {
    get { box.fields.number }
    set { box = Box(box.fields.replacing(\.number, newValue)) }
  }

  /// The values, of which a copy would be retained one by one: each change set in a scope with rules takes its session
  /// along.
  private struct Fields: Sendable, Hashable {
    let token: String
    let connectionParams: [String: String]
    let params: JSONValue
    let version: String
    let client: UUID?
    let request: HTTPRequest?
    var principal: Principal?
    var number = 0

    func replacing<Value>(_ field: WritableKeyPath<Fields, Value>, _ value: Value) -> Fields {
      var result = self
      result[keyPath: field] = value
      return result
    }
  }

  private final class Box: Sendable, Hashable {
    let fields: Fields

    init(_ fields: Fields) { self.fields = fields }

    static func == (a: Box, b: Box) -> Bool { a === b || a.fields == b.fields }
    func hash(into hasher: inout Hasher) { hasher.combine(fields) }
  }

  private var box: Box

  init(
    token: String, connectionParams: [String: String], params: JSONValue, version: String,
    client: UUID? = nil, request: HTTPRequest? = nil, principal: Principal? = nil
  ) {
    box = Box(
      Fields(
        token: token, connectionParams: connectionParams, params: params, version: version,
        client: client, request: request, principal: principal))
  }
}
