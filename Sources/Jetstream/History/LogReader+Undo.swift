import Foundation

/// Reading what can be undone and redone.
extension LogReader {
  /// Returns what the processes that wrote the log could undo and redo in the end.
  ///
  /// - Parameters:
  ///   - scope: the scope with the content of the log.
  ///   - includingOthers: true if change sets that a server has accepted from clients count, too.
  ///   - limit: the maximum number of change sets that can be undone.
  func undoStacks(
    of scope: Scope, includingOthers: Bool, limit: Int
  ) throws(LogError) -> UndoStacks {
    let isOfClient = try self.isOfClient()
    let first = try firstSequence() ?? 1
    var places: [Int] = []
    var cursor = try read(from: first)
    while let record = try cursor.next() {
      if UndoReplay.kinds.contains(record.kind) { places.append(record.sequence) }
    }
    // Each change set may have been undone and redone, and each of these decided: begin there, and further back as long
    // as too little is found.
    var window = 4 * min(limit, .max / 16)
    while true {
      let start = places.count > window ? places[places.count - window] : first
      let stacks = try undoStacks(
        of: scope, from: start, isOfClient: isOfClient, includingOthers: includingOthers,
        limit: limit)
      if stacks.done.count >= limit || start == first { return stacks }
      window *= 4
    }
  }

  private func undoStacks(
    of scope: Scope, from start: Int, isOfClient: Bool, includingOthers: Bool, limit: Int
  ) throws(LogError) -> UndoStacks {
    var replay = UndoReplay(stacks: UndoStacks(limit: limit), includesOthers: includingOthers)
    // A snapshot has the pending change sets whose records are not kept.
    if isOfClient, start > 1, let before = try ClientLog.history(in: self, upTo: start - 1) {
      replay.root = before.history.root
      for entry in before.history.pending { replay.add(entry.set, number: entry.number) }
    }
    var cursor = try read(from: start)
    while let record = try cursor.next() {
      if UndoReplay.kinds.contains(record.kind) {
        try replay.read(record, isOfClient: isOfClient)
      }
    }
    if let old = replay.root, let root = scope.root, old != root.uuid {
      replay.stacks.rename(RootRenaming(from: old, to: root.uuid, in: scope))
    }
    return replay.stacks
  }
}

/// The records of a log, as far as they are about what can be undone.
private struct UndoReplay {
  static let kinds: Set<LogKind> = [.set, .replica, ReplicaRecord.Kind.decided]

  var stacks: UndoStacks
  let includesOthers: Bool
  /// The UUID that the root of a client's scope had before the server gave it another one.
  var root: UUID?
  /// The change sets of a client by their numbers.
  private var sets: [Int: ChangeSet] = [:]
  private var known: Set<UUID> = []

  init(stacks: UndoStacks, includesOthers: Bool) {
    (self.stacks, self.includesOthers) = (stacks, includesOthers)
  }

  mutating func add(_ set: ChangeSet, number: Int? = nil) {
    if let number { sets[number] = set }
    // A client that numbers its change sets anew writes those that are pending once more.
    if known.insert(set.id).inserted { stacks.add(set) }
  }

  mutating func read(_ record: LogRecord, isOfClient: Bool) throws(LogError) {
    do {
      let json = try JSONValue(parsing: record.payload)
      if isOfClient {
        if let step = try ReplicaRecord(record.kind, json: json) { read(step) }
      } else if record.kind == .set, case .object(let object) = json {
        // A server says of each change set whether a client has made it.
        let isRemote = object["remote"] == true || object["decision"] != nil
        if isRemote, !includesOthers { return }
        let set = try ChangeSet(json: json)
        if !set.undo.isEmpty { add(set) }
      }
    } catch {
      throw .unreadable(sequence: record.sequence, problem: "\(error)")
    }
  }

  private mutating func read(_ step: ReplicaRecord) {
    switch step {
    case .named(_, let root): self.root = self.root ?? root
    case .made(let number, let set): add(set, number: number)
    case .decided(let decided):
      guard let set = sets.removeValue(forKey: decided.number) else { return }
      let rejected = zip(set.fragments, decided.replies).filter { $0.1.error != nil }.map(\.0)
      if !rejected.isEmpty { _ = stacks.reject(rejected, of: set.id) }
    case .confirmed, .base, .discarded: break
    }
  }
}
