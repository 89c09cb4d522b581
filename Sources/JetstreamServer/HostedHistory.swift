import Jetstream

/// The history of hosted content: its lease, and the keeper that hands it the records.
///
/// A history begins, is kept and is closed. While it begins, its first state is being written, and the keeper holds the
/// records that are made meanwhile, since they may not precede that state. Content can be removed already then. The
/// history is closed by the caller that hosts the content, once the first state is there: it writes the records that
/// the keeper holds, and those who have removed the content, or host it again, wait for it. Later a history is closed
/// by the caller that removes the content.
final class HostedHistory {
  let content: any Hostable
  let lease: any ScopeLease
  let keeper: ScopeRecordKeeper
  /// True until the first state is written, if there was none; until it is closed, if that is done right behind it.
  private(set) var isBeginning = true
  private var waiting: [CheckedContinuation<Result<Void, StorageError>, Never>] = []

  init(of content: any Hostable, _ lease: any ScopeLease, _ keeper: ScopeRecordKeeper) {
    (self.content, self.lease, self.keeper) = (content, lease, keeper)
  }

  /// Has the keeper append records: the history has the state that precedes them.
  func begin() {
    isBeginning = false
    keeper.begin()
  }

  /// Waits until a history is closed whose content was removed, or whose server was stopped, while it began.
  func waitUntilClosed() async throws(StorageError) {
    try await withCheckedContinuation { waiting.append($0) }.get()
  }

  /// Takes the outcome of closing a history that was removed while it began.
  func closed(_ outcome: Result<Void, StorageError>) {
    let waiting = waiting
    self.waiting = []
    for caller in waiting { caller.resume(returning: outcome) }
  }
}
