/// An event inside a client or a server that an app may want in its log.
///
/// Neither prints anything. An app forwards diagnostics to the logger that it has:
///
/// ```swift
/// client.onDiagnostic.listen(self) { me, diagnostic in
///   if diagnostic.level >= .warning { me.logger.warning("\(diagnostic)") }
/// }
/// ```
///
/// The text is made each time ``description`` is read, and not at all if no listener reads it.
public struct Diagnostic: CustomStringConvertible {
  /// The weight of a diagnostic.
  public enum Level: Sendable, Comparable {
    /// A step of the protocol, of interest while a fault is being looked for.
    case debug
    /// Something expected, such as a lost connection that is opened again.
    case info
    /// Something that a peer should not have done, or a limit that was reached; syncing goes on without it.
    case warning
    /// Something that needs a person: a full disk, a scope that had to be repaired or is no longer synced.
    case error
  }

  /// The part that a diagnostic is about.
  public enum Category: Sendable {
    /// A connection, from the first attempt to its end.
    case connection
    /// A session, and the frames and messages in it.
    case session
    /// The syncing of one scope.
    case scope
    /// A log on disk.
    case storage
  }

  /// The weight of the event.
  public let level: Level
  /// The part that the event is about.
  public let category: Category
  /// The number of the connection, counted by the client or the server; nil if the event is not about one.
  package let connection: Int?
  /// The number of the session, counted by the server; nil at a client, and if the event is not about one.
  package let session: Int?
  /// The name of the scope; nil if the event is not about one.
  public let scope: String?
  /// Makes the event in words, without the numbers and the name.
  package let text: () -> String

  package init(
    _ level: Level, _ category: Category, connection: Int? = nil, session: Int? = nil,
    scope: String? = nil, _ text: @autoclosure @escaping () -> String
  ) {
    self.level = level
    self.category = category
    self.connection = connection
    self.session = session
    self.scope = scope
    self.text = text
  }

  /// The event in words, behind the connection, session or scope that it is about.
  public var description: String {
    var ids: [String] = []
    if let connection { ids.append("connection \(connection)") }
    if let session { ids.append("session \(session)") }
    if let scope { ids.append("scope \(scope)") }
    return ids.isEmpty ? text() : ids.joined(separator: ", ") + ": " + text()
  }
}
