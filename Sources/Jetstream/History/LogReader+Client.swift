import Foundation

/// The past of a scope from the log of a client.
extension LogReader {
  /// Makes the scope what it was on the client after a record: what the server had confirmed, with the change sets that
  /// were pending in front of it.
  func replayClient(into scope: Scope, upTo last: Int?) throws(LogError) -> LogRestoration {
    var result = LogRestoration()
    guard let (history, end) = try ClientLog.history(in: self, upTo: last ?? .max) else {
      return result
    }
    result.sequence = end
    result.setCount = history.records.count { if case .made = $0 { true } else { false } }
    let replica = Replica(
      scope: scope, params: .object([:]), clientID: history.client, ownWrites: 0)
    defer { replica.end("the past of a scope is not synced") }
    do throws(ScopeError) {
      // A log that has never got a state departs from the default values.
      if let root = scope.root {
        let empty = SyncFragment(
          .change, uuid: root.uuid, className: root.schema.wireName, properties: [:])
        try scope.applyFullState([empty], rootUUID: root.uuid)
      }
      try replica.restore(history)
    } catch {
      throw .unreadable(sequence: end, problem: "\(error)")
    }
    return result
  }

  /// The change sets that count in the log of a client, each at the record with which it began to, and behind them those
  /// that are pending. A set of others has no id here, and gets one.
  func countingSets() throws(LogError) -> [(sequence: Int, set: ChangeSet)] {
    var result: [(sequence: Int, set: ChangeSet)] = []
    var pending: [Int: (sequence: Int, set: ChangeSet)] = [:]
    let first = try firstSequence() ?? 1
    if first > 1, let start = try ClientLog.history(in: self, upTo: first - 1) {
      for entry in start.history.pending { pending[entry.number] = (start.last, entry.set) }
    }
    var cursor = try read(from: first)
    while let line = try cursor.next() {
      switch try ClientLog.record(line) {
      case .made(let number, let set): pending[number] = (line.sequence, set)
      case .confirmed(let fragments, _, let origin):
        let set = ChangeSet(
          fragments: fragments, undo: [], author: origin.author, message: origin.message,
          date: origin.date)
        result.append((line.sequence, set))
      case .decided(let decided):
        guard let set = pending.removeValue(forKey: decided.number)?.set else { continue }
        let accepted = zip(set.fragments, decided.replies).filter { $0.1.error == nil }.map(\.0)
        result.append((line.sequence, set.with(decided.effective ?? accepted, undo: [])))
      case .named, .base, .discarded, nil: break
      }
    }
    return result + pending.sorted { $0.key < $1.key }.map(\.value)
  }
}
