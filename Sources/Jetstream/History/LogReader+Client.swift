import Foundation

/// Reading earlier states and change sets of the log of a client.
extension LogReader {
  /// Brings the scope to its state on the client after a record: the confirmed state with the pending change sets
  /// in front.
  func replayClient(into scope: Scope, upTo last: Int?) throws(LogError) -> LogRestoration {
    var result = LogRestoration()
    let (history, end) = try ClientLog.history(in: self, upTo: last ?? .max)
    result.sequence = end
    guard let history else {
      guard last != nil else { return result }
      // Throws an error if the beginning of the log is not kept.
      var beginning = try read(from: 1)
      _ = try beginning.next()
      do throws(ScopeError) { try scope.setToDefaults() } catch {
        throw .unreadable(sequence: 0, problem: "\(error)")
      }
      return result
    }
    result.changeSetCount = history.records.count { if case .made = $0 { true } else { false } }
    let replica = Replica(
      scope: scope, params: .object([:]), clientID: history.client, ownWrites: 0)
    defer { replica.end("the past of a scope is not synced") }
    do throws(ScopeError) {
      // A log that has never received a state begins with the default values.
      try scope.setToDefaults()
      try replica.restore(history)
    } catch {
      throw .unreadable(sequence: end, problem: "\(error)")
    }
    return result
  }

  /// Returns the change sets that count, each with the sequence of the record by which it was confirmed or
  /// accepted, followed by the pending ones; and the UUIDs that the root has had. Change sets of other replicas have no
  /// id in the log and get a new one.
  func countingSets() throws(LogError) -> (
    sets: [(sequence: Int, changeSet: ChangeSet)], roots: Set<UUID>
  ) {
    var result: [(sequence: Int, changeSet: ChangeSet)] = []
    var roots: Set<UUID> = []
    var pending: [Int: (sequence: Int, changeSet: ChangeSet)] = [:]
    // The root's UUID until the server's first state.
    var ownRoot: UUID?
    var hasBase = false
    let first = try firstSequence() ?? 1
    if first > 1 {
      let (start, last) = try ClientLog.history(in: self, upTo: first - 1)
      if let start { roots.insert(start.base?.root ?? start.root) }
      hasBase = start?.base != nil
      for entry in start?.pending ?? [] { pending[entry.number] = (last, entry.set) }
    }
    func add(_ confirmed: ReplicaRecord, at sequence: Int) {
      guard case .confirmed(let fragments, _, let origin) = confirmed else { return }
      let set = ChangeSet(
        fragments: fragments, undo: [], author: origin.author, message: origin.message,
        date: origin.date)
      result.append((sequence, set))
    }
    var cursor = try read(from: first)
    while let line = try cursor.next() {
      switch try ClientLog.record(line) {
      case .made(let number, let set): pending[number] = (line.sequence, set)
      case .confirmed(let fragments, let sequence, let origin):
        add(.confirmed(fragments, sequence: sequence, origin: origin), at: line.sequence)
      case .together(let records): for record in records { add(record, at: line.sequence) }
      case .decided(let decided):
        guard let set = pending.removeValue(forKey: decided.number)?.changeSet else { continue }
        let accepted = decided.effective ?? decided.fragments(of: set, accepted: true)
        result.append((line.sequence, set.with(accepted, undo: [])))
      case .named(_, let root):
        roots.insert(root)
        if !hasBase { ownRoot = root }
      case .base(let base):
        roots.insert(base.root)
        if !hasBase, let ownRoot, let state = base.fragments.first {
          for (number, entry) in pending where entry.changeSet.isInitialContent {
            let rest = entry.changeSet.initialContent(besides: state, root: ownRoot)
            pending[number] = (entry.sequence, rest)
          }
        }
        hasBase = true
      case .known, .forgotten, .discarded, nil: break
      }
    }
    return (result + pending.sorted { $0.key < $1.key }.map(\.value), roots)
  }
}
