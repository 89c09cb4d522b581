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
    var replay = UndoReplay(
      stacks: UndoStacks(limit: limit), includesOthers: includingOthers,
      isOfClient: try isOfClient())
    let first = try firstSequence() ?? 1
    var places: [Int] = []
    var cursor = try read(from: first)
    while let record = try cursor.next() {
      if UndoReplay.kinds.contains(record.kind) { places.append(record.sequence) }
    }
    let window = min(limit, .max / 128) * 64
    let start = places.count > window ? places[places.count - window] : first
    // The newest snapshot of a client has the pending change sets whose own records are not kept: they are older than
    // the records that are. The others come with their own records, in front of which there may be older change sets.
    if replay.isOfClient, let snapshot = try snapshot() {
      let history = try ClientLog.read(snapshot)
      replay.read(history, except: history.pending.isEmpty ? [] : try changeSets(from: start))
    }
    cursor = try read(from: start)
    while let record = try cursor.next() {
      if UndoReplay.kinds.contains(record.kind) { try replay.read(record) }
    }
    if !replay.isOfClient { replay.stacks.settleAll() }
    // A root that a server has named anew has had these names.
    if let root = scope.root {
      for old in replay.roots where old != root.uuid {
        replay.stacks.rename(RootRenaming(from: old, to: root.uuid, in: scope))
      }
    }
    return replay.stacks
  }

  /// Returns the change sets that the records of a client from `start` on have made.
  private func changeSets(from start: Int) throws(LogError) -> Set<UUID> {
    var result: Set<UUID> = []
    var cursor = try read(from: start)
    while let record = try cursor.next() {
      guard UndoReplay.kinds.contains(record.kind) else { continue }
      if case .made(_, let set)? = try ClientLog.record(record) { result.insert(set.id) }
    }
    return result
  }
}

/// The records of a log, as far as they are about what can be undone.
private struct UndoReplay {
  static let kinds: Set<LogKind> = [
    .set, .replica, ReplicaRecord.Kind.decided, ReplicaRecord.Kind.base,
  ]

  var stacks: UndoStacks
  let includesOthers: Bool
  let isOfClient: Bool
  /// The UUIDs that the root of a client's scope has had.
  private(set) var roots: Set<UUID> = []
  /// The change sets of a client by their numbers.
  private var sets: [Int: ChangeSet] = [:]
  private var known: Set<UUID> = []

  init(stacks: UndoStacks, includesOthers: Bool, isOfClient: Bool) {
    (self.stacks, self.includesOthers) = (stacks, includesOthers)
    self.isOfClient = isOfClient
  }

  private mutating func add(_ set: ChangeSet, number: Int? = nil, isRemote: Bool = false) {
    // A call of a client shows a guess of what the server does, and initial content is where all begins.
    if set.arguments != nil || set.isInitialContent { return }
    if let number { sets[number] = set }
    // A pending change set can be in a snapshot and in a record, and one that is numbered anew in two records.
    if known.insert(set.id).inserted { stacks.add(set, isRemote: isRemote) }
  }

  mutating func read(_ history: ReplicaHistory, except own: Set<UUID>) {
    roots.insert(history.root)
    for entry in history.pending where !own.contains(entry.set.id) {
      add(entry.set, number: entry.number)
    }
  }

  mutating func read(_ record: LogRecord) throws(LogError) {
    if isOfClient {
      if let step = try ClientLog.record(record) { read(step) }
      return
    }
    guard record.kind == .set else { return }
    var isRemote = false
    let set: ChangeSet? = try record.read { json throws(FragmentError) in
      guard case .object(let object) = json else { return nil }
      // A server says of each change set whether a client has made it.
      isRemote = object["remote"] == true || object["decision"] != nil
      return isRemote && !includesOthers ? nil : try ChangeSet(json: json)
    }
    // Older servers kept no inverses.
    if let set, !set.undo.isEmpty { add(set, isRemote: isRemote) }
  }

  private mutating func read(_ step: ReplicaRecord) {
    switch step {
    case .named(_, let root): roots.insert(root)
    case .base(let base): roots.insert(base.root)
    case .made(let number, let set): add(set, number: number)
    case .decided(let decided):
      guard let set = sets.removeValue(forKey: decided.number) else { return }
      let rejected = decided.fragments(of: set, accepted: false)
      if rejected.isEmpty { return stacks.settle(set.id) }
      _ = stacks.reject(rejected, of: set.id, isWhole: rejected.count == set.fragments.count)
    case .confirmed, .together, .known, .forgotten, .discarded: break
    }
  }
}
