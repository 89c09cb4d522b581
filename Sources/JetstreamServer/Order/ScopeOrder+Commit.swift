import Foundation
import Jetstream

/// Change sets that procedures make for clients.
extension ScopeOrder {
  /// The change set that a procedure is making, until it has its place in the order.
  struct Commit {
    /// The identity of the change set.
    let set: UUID
    let author: StreamItem.Author?
    let origin: ChangeOrigin
    /// The place in the order; nil if nothing has changed.
    var made: (item: StreamItem, set: ChangeSet)?
    /// The server's own change sets that observers of this one have made. They are kept and told behind it.
    var behind: [(item: StreamItem, set: ChangeSet)] = []
    /// The number of times that a model has come or gone.
    var modelCount = 0
  }

  /// The error with which a procedure does not come to run, since the changes of its client are rejected.
  struct RejectedChanges: Error {
    let replies: [FragmentReply]
    /// The reasons for which rules could not decide, for the operator.
    let problems: [String]
    /// The limit because of which all is rejected.
    var exceeded: ServerLimit?
  }

  /// The error with which a procedure cannot commit where its change set would be part of others, or come behind them.
  struct CommitWithinChanges: Error, CustomStringConvertible {
    var description: String { "it cannot commit within modify, or in an observer of the scope" }
  }

  /// Makes one change set of the client's changes and what `body` does with the models.
  ///
  /// - Parameters:
  ///   - changes: the client's changes; nil if they are a guess that does not count.
  ///   - count: the number of the client's fragments.
  ///   - effort: set to the effort of all this, also if it throws; see ``Result/effort``.
  ///   - body: returns the output.
  /// - Throws: the error of `body`, or ``RejectedChanges``. Nothing is changed then.
  func commit(
    _ changes: [SyncFragment]?, of count: Int, by submitter: Submitter, effort: inout Int,
    _ body: (ModelObject) throws -> JSONValue
  ) throws -> Result {
    let origin = submitter.origin
    var set = ChangeSet(
      fragments: [], undo: [], author: origin.author, message: origin.message, date: origin.date)
    set.isForClient = true
    committing = Commit(set: set.id, author: submitter.author, origin: origin)
    defer {
      effort += committing?.modelCount ?? 0
      committing = nil
    }
    passage = Passage()
    var submitter = submitter
    submitter.bringsKnownContentOnly = true
    var output = JSONValue.null
    var draft: Draft?
    var growth = Growth()
    let result = Result(replies: Array(repeating: FragmentReply(), count: count))
    try content.modify(set) { root in
      if let changes {
        let judged = judgedDraft(of: changes, isAtomic: true, by: submitter)
        draft = judged
        effort += judged.effort
        result.problems = judged.problems
        if judged.isRejected {
          throw RejectedChanges(
            replies: Self.rejectingAll(judged.replies), problems: judged.problems)
        }
        growth = submitter.room == nil ? Growth() : self.growth(by: judged.effective)
        if let room = submitter.room, !hasRoom(for: growth, in: room, &effort) {
          let reply = FragmentReply(error: room.limit.error)
          throw RejectedChanges(
            replies: Array(repeating: reply, count: count), problems: [],
            exceeded: room.limit)
        }
        let misfits = content.applyOwn(judged.effective) { [self] in departed($0) }
        if let (at, error) = misfits.first {
          result.replies[judged.positions[at]].error = WireError(message: "\(error)")
          throw RejectedChanges(
            replies: Self.rejectingAll(result.replies), problems: judged.problems)
        }
      }
      output = try body(root)
    }
    if hasSizeLimit {
      // The procedure may have removed what its client has changed; that counts as it was before.
      growth.leaveOut { content.sharedModel($0) == nil && content.unknownModel($0) == nil }
      note(growth)
    }
    if let made = committing?.made { (result.item, result.set) = (made.item, made.set) }
    result.behind = committing?.behind ?? []
    result.outcome = .output(output)
    guard submitter.usesOperations else {
      let submission = Submission(
        fragments: changes ?? [], effective: draft?.effective ?? [], errors: [:],
        before: draft?.before ?? [:])
      correct(result, submission, submitter)
      return result
    }
    result.effective = result.item?.fragments ?? []
    return result
  }
}
