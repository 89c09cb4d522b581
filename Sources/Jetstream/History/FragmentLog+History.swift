import Foundation

/// One write of a property, as recorded in a log.
public struct PropertyWrite: Sendable, Hashable {
  /// The content of a write.
  public enum Content: Sendable, Hashable {
    /// The new value of the property.
    case value(JSONValue)
    /// The operations on a collection or a counter.
    case operations([PropertyOperation])
  }

  /// The sequence of the log record.
  public let sequence: Int
  /// The ``ChangeSet/id`` of the change set.
  package let changeSet: UUID
  /// The author of the change set; nil if it names none.
  public let author: String?
  /// The purpose of the change set; nil if it has no message.
  public let message: String?
  /// The time of the change set; nil if it has none.
  public let date: Date?
  /// The new value or the operations.
  public let content: Content

  init(_ sequence: Int, _ set: ChangeSet, _ content: Content) {
    self.sequence = sequence
    changeSet = set.id
    author = set.author
    message = set.message
    date = set.date
    self.content = content
  }
}
