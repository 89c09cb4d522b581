import Jetstream
import JetstreamServer
import Synchronization

/// Histories in memory, in the manner of a store that several servers share: requests and answers take their time on a
/// queue, and can be lost; a lease has a term that can pass.
package final class MemoryStorage: ScopeStorage {
  /// The failures that can be asked for.
  package enum Fault: Sendable, Hashable, CaseIterable {
    /// The next append does not arrive.
    case lostRequest
    /// The next append takes effect, and its answer is lost.
    case lostAnswer
    /// The next append is given up, and arrives later.
    case lateRequest
    /// The next snapshot is not written to its end.
    case halfSnapshot
  }

  /// One scope of the storage.
  struct Stored {
    var schema: ScopeSchema?
    /// The records that are kept.
    var records: [LogRecord] = []
    /// The number of records that were dropped before them.
    var dropped = 0
    var snapshot: LogSnapshot?
    /// The part of the next snapshot that was written. It never counts.
    var draft: [LogRecord] = []
    /// The number of the valid lease; nil if there is none.
    var lease: Int?

    var last: Int { records.last?.sequence ?? dropped }
  }

  struct State {
    var scopes: [String: Stored] = [:]
    var leases = 0
    var faults: [Fault] = []
    var followers: [Int: CheckedContinuation<Void, Never>] = [:]
    var lastFollower = 0
  }

  let state = Mutex(State())
  /// True to keep the records that a snapshot stands for.
  let keepsRecords: Bool

  package init(keepsRecords: Bool = true) { self.keepsRecords = keepsRecords }

  /// Has operations fail, one each, in this order.
  package func inject(_ faults: [Fault]) { state.withLock { $0.faults += faults } }

  /// Makes all operations succeed again.
  package func clearFaults() { state.withLock { $0.faults = [] } }

  /// True if a fault has not happened yet.
  package var hasFaults: Bool { state.withLock { !$0.faults.isEmpty } }

  /// Lets the term of a scope's lease pass.
  package func expireLease(of name: String) { state.withLock { $0.scopes[name]?.lease = nil } }

  /// Removes and returns the next fault, if it is one of some.
  func takeFault(_ kinds: Set<Fault>) -> Fault? {
    state.withLock { state in
      guard let at = state.faults.firstIndex(where: { kinds.contains($0) }) else { return nil }
      return state.faults.remove(at: at)
    }
  }

  // MARK: The storage

  package func find(_ name: String) async throws(StorageError) -> StoredScope {
    state.withLock { state in
      let stored = state.scopes[name]
      return StoredScope(
        isNew: stored.map { $0.last == 0 && $0.snapshot == nil } ?? true, schema: stored?.schema)
    }
  }

  package func keep(_ schema: ScopeSchema, of name: String) async throws(StorageError) {
    state.withLock { $0.scopes[name, default: Stored()].schema = schema }
  }

  package func lease(_ name: String) async throws(StorageError) -> any ScopeLease {
    try takeLease(of: name, on: DispatchLogQueue("jetstream.memory"))
  }

  /// Takes the lease of a scope. What its holder asks for is done on a queue.
  package func takeLease(
    of name: String, on queue: any LogQueue
  ) throws(StorageError) -> MemoryLease {
    let number = try state.withLock { state throws(StorageError) in
      guard state.scopes[name]?.lease == nil else { throw .leased(name) }
      state.leases += 1
      state.scopes[name, default: Stored()].lease = state.leases
      // Another server may have left it unfinished.
      state.scopes[name]?.draft = []
      return state.leases
    }
    return MemoryLease(storage: self, name: name, number: number, queue: queue)
  }

  /// Returns what is stored of a scope.
  func read(_ name: String) -> StoredHistory {
    state.withLock { state in
      guard let stored = state.scopes[name] else {
        return StoredHistory(snapshot: nil, records: [])
      }
      let first = (stored.snapshot?.sequence ?? 0) + 1
      return StoredHistory(
        snapshot: stored.snapshot, records: stored.records.filter { $0.sequence >= first })
    }
  }

  /// A copy of all that is stored.
  package struct Copy: Sendable {
    let scopes: [String: Stored]
  }

  package var copy: Copy { Copy(scopes: state.withLock { $0.scopes }) }

  /// Replaces all that is stored by a copy, without leases.
  package func restore(_ copy: Copy) {
    state.withLock { state in
      state.scopes = copy.scopes.mapValues { stored in
        var stored = stored
        stored.lease = nil
        return stored
      }
    }
  }
}

/// Following.
extension MemoryStorage {
  package func follow(_ name: String, after sequence: Int) -> StoredRecords {
    StoredRecords { [self] in
      var next = sequence + 1
      return { () async throws(StorageError) in
        while !Task.isCancelled {
          if let record = try self.record(next, of: name) {
            next += 1
            return record
          }
          await self.wait(for: next, of: name)
        }
        return nil
      }
    }
  }

  private func record(_ sequence: Int, of name: String) throws(StorageError) -> LogRecord? {
    try state.withLock { state throws(StorageError) in
      guard let stored = state.scopes[name] else { return nil }
      guard sequence > stored.dropped else { throw .notKept(sequence: sequence) }
      let at = sequence - stored.dropped - 1
      return at < stored.records.count ? stored.records[at] : nil
    }
  }

  private func wait(for sequence: Int, of name: String) async {
    let number = state.withLock { state in
      state.lastFollower += 1
      return state.lastFollower
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { waiting in
        let isOver = state.withLock { state in
          if Task.isCancelled || state.scopes[name].map({ $0.last >= sequence }) ?? false {
            return true
          }
          state.followers[number] = waiting
          return false
        }
        if isOver { waiting.resume() }
      }
    } onCancel: {
      state.withLock { $0.followers.removeValue(forKey: number) }?.resume()
    }
  }

  func wakeFollowers() {
    let waiting = state.withLock { state in
      defer { state.followers = [:] }
      return Array(state.followers.values)
    }
    for follower in waiting { follower.resume() }
  }
}
