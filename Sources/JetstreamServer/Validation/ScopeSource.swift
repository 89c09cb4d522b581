import Jetstream

/// A scope that a client has fetched and that is not open.
public struct ScopeOpening: Sendable, Hashable {
  /// The name by which clients fetch the scope: as the client has sent it, of at most 512 bytes.
  public let name: String
  /// True if the directory has no history of the scope, or one that has neither a root nor a change set.
  public let isNew: Bool
}

/// The content as which a server opens a scope.
public enum ScopeSource {
  /// Objects of the app. The server keeps the scope until it closes it. The name must be that of the request, and the scope
  /// must have a root.
  case models(Scope, unknown: UnknownContent = .reject)
  /// Rows of the classes of a schema.
  case schema(ScopeSchema)
  /// Rows of the classes that the first client that fetches the scope has: it sends their schema, which is kept beside the
  /// log. Clients of version 1 of the protocol cannot send it, and are refused until another client has. A schema
  /// with a type that is nested more than three levels deep, such as `[[[[Int]]]]`, is refused.
  case schemaOfClient
}
