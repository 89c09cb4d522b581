import Foundation

/// What a log knows of the past.
extension FragmentLog {
  /// Brings a scope to the state that it had when record `sequence` was the last one: time travel.
  ///
  /// ```swift
  /// let then = Scope(name: "Then", root: Canvas(), ticker: ticker)
  /// try log.restore(into: then, at: 1200)
  /// ```
  ///
  /// The scope is an ordinary one, with observers, queries and change sets of its own; it should not be
  /// the one that the log keeps. To return to the state in that one, as a new change, give
  /// ``Scope/restore(_:)`` the full state of this one. Every call begins with the last snapshot that is not later than
  /// `sequence`, and costs what lies between. Reads the disk on the caller.
  ///
  /// - Throws: ``LogError/unreadable(_:_:)`` if the log has not come that far or has not written that yet,
  ///   or if what lies before is
  ///   not kept any more; otherwise as ``restore(into:)``. What was applied until then stays.
  @discardableResult
  public func restore(
    into scope: Scope, at sequence: Int
  ) throws(LogError) -> LogRestoration {
    guard sequence >= 0, sequence <= lastSequence else {
      throw .unreadable(sequence, "the log has records 1 to \(lastSequence)")
    }
    let result = try LogReader(records.directory).replay(into: scope, upTo: sequence)
    guard result.sequence == sequence else {
      throw .unreadable(sequence, "it is not written yet; sync the log first")
    }
    return result
  }

  /// What has changed between two records, as one set: see ``ChangeSet/init(from:to:)``. Reads the disk on
  /// the caller.
  ///
  /// - Parameters:
  ///   - from: the number of the record that the difference departs from; 0 for the beginning.
  ///   - to: the number that it leads to, which may be the smaller one.
  ///   - scratch: a scope with a root of the log's class, which is used to build the states. It has the
  ///     state of `to` afterwards.
  /// - Throws: as ``restore(into:at:)`` does.
  public func difference(
    from: Int, to: Int, using scratch: Scope
  ) throws(LogError) -> ChangeSet {
    try restore(into: scratch, at: from)
    let old = scratch.fullState()
    try restore(into: scratch, at: to)
    return ChangeSet(from: old, to: scratch.fullState())
  }

  /// The change sets of the records in `range` that are kept and written, with their numbers; see
  /// ``sync()`` for those that were appended just now. Reads the disk on the
  /// caller.
  ///
  /// - Throws: ``LogError/damaged(_:)``, ``LogError/unreadable(_:_:)`` or ``LogError/file(_:)``.
  public func changeSets(
    in range: ClosedRange<Int>
  ) throws(LogError) -> [(sequence: Int, set: ChangeSet)] {
    try LogReader(records.directory).changeSets(in: range)
  }

  /// Who has written a property of a model, and when: every change set that is kept and names it, the oldest first.
  /// Reads the disk on the caller; cost: O(n) in what is kept.
  ///
  /// - Parameters:
  ///   - key: what the property is called on the wire.
  ///   - model: the model's UUID.
  /// - Throws: as ``changeSets(in:)`` does.
  public func writes(
    to key: String, of model: UUID
  ) throws(LogError) -> [PropertyWrite] {
    try LogReader(records.directory).writes(to: key, of: model)
  }
}

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
