import Foundation

/// One write of a property, as a log has it.
public struct PropertyWrite: Sendable, Hashable {
  /// What was written.
  public enum Content: Sendable, Hashable {
    /// The value that the property had from there on.
    case value(JSONValue)
    /// What was done to a collection or a counter.
    case operations([PropertyOperation])
  }

  /// The number of the record.
  public let sequence: Int
  /// The change set.
  public let set: UUID
  /// Who made it, if anybody has said so.
  public let author: String?
  /// What it was made for, if anybody has said so.
  public let message: String?
  /// When, if anybody has said so.
  public let date: Date?
  /// What was written.
  public let content: Content

  init(_ sequence: Int, _ set: ChangeSet, _ content: Content) {
    self.sequence = sequence
    self.set = set.id
    author = set.author
    message = set.message
    date = set.date
    self.content = content
  }
}
