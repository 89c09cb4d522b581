import Foundation
import Jetstream

/// A history whose lease was taken, and that was read.
struct LeasedHistory: Sendable {
  let lease: any ScopeLease
  /// The content; nil if it is new.
  let history: ScopeHistory?
  /// The sequence number of the last record.
  let last: Int
}

/// The reading of a log, before its content is hosted.
///
/// A log is read away from the server's actor, since that takes time in proportion to the log. Meanwhile the app may remove
/// the scope, or stop the server: then the reading is withdrawn. It goes on, but the caller that hosts the scope closes the
/// log in place of hosting it; callers that have removed the scope, or host another one with the log, wait for that.
final class HistoryReading {
  /// The scope of model objects; nil for rows, which are made of what is read.
  let content: (any Hostable)?
  let log: FragmentLog
  private(set) var isWithdrawn = false
  private var waiting: [CheckedContinuation<Result<Void, any Error>, Never>] = []

  init(of content: (any Hostable)?, in log: FragmentLog) {
    (self.content, self.log) = (content, log)
  }

  func withdraw() { isWithdrawn = true }

  /// Waits until the log of a reading that was withdrawn is closed, or could not be read.
  func waitUntilClosed() async throws {
    try await withCheckedContinuation { waiting.append($0) }.get()
  }

  /// Takes the outcome of closing the log.
  fileprivate func closed(_ outcome: Result<Void, any Error>) {
    let waiting = waiting
    self.waiting = []
    for caller in waiting { caller.resume(returning: outcome) }
  }
}

/// Hosting scopes with logs, which are read away from the actor.
extension EngineRunner {
  /// Hosts a scope of model objects with the history in a log.
  ///
  /// - Returns: false if the scope was removed, or the server was stopped, in the meantime: the log is closed then.
  func host(
    _ scope: any Hostable, as name: String, unknown: UnknownContent, log: FragmentLog,
    snapshotEvery: Int
  ) async throws -> Bool {
    guard let leased = try await read(log, of: name, for: scope, { $0 }) else { return false }
    precondition(
      !engine.keepsHistory(of: scope),
      "Scope \(name) is hosted with a log already: a history has one log.")
    return try await host(
      scope, as: name, unknown: unknown, leased, snapshotEvery: snapshotEvery)
  }

  /// Hosts rows of a schema with the history in a log. They are made where the log is read.
  ///
  /// - Returns: the rows; nil if they were removed, or the server was stopped, in the meantime: the log is closed then.
  func host(
    _ name: String, _ schema: ScopeSchema, log: FragmentLog, snapshotEvery: Int
  ) async throws -> RowsContent? {
    let isMeasured = engine.configuration.limits.bytesPerScope != nil
    let read = try await read(log, of: name, for: nil) { leased in
      try await StorageQueue.run {
        (
          leased,
          try RowsContent(name: name, schema, from: leased.history, isMeasured: isMeasured)
        )
      }
    }
    guard let (leased, rows) = read else { return nil }
    let isHosted = try await host(
      rows, as: name, unknown: .reject, leased, isRestored: true, snapshotEvery: snapshotEvery)
    return isHosted ? rows : nil
  }

  /// Withdraws what is being read, for a server that stops.
  func withdrawReadings() { for reading in readings { reading.withdraw() } }

  /// Returns true while the history of a scope is read.
  func isReading(_ content: any Hostable) -> Bool { readings.contains { $0.content === content } }

  /// Withdraws what is being read of the history of content that is removed, and waits for its end.
  func withdrawReading(of content: any Hostable) async throws {
    // Another log may be read for it behind one that was withdrawn before.
    let own = readings.filter { $0.content === content }
    for reading in own { reading.withdraw() }
    for reading in own where readings.contains(where: { $0 === reading }) {
      try await reading.waitUntilClosed()
    }
  }

  /// Reads a log, and makes something of it.
  ///
  /// - Returns: nil if the reading was withdrawn: the log is closed then.
  private func read<Value>(
    _ log: FragmentLog, of name: String, for content: (any Hostable)?,
    _ make: (LeasedHistory) async throws -> Value
  ) async throws -> Value? {
    let reading = HistoryReading(of: content, in: log)
    readings.append(reading)
    var outcome: Result<Void, any Error> = .success(())
    defer {
      readings.removeAll { $0 === reading }
      reading.closed(outcome)
    }
    let value = try await make(leasedHistory(in: log, of: name))
    guard reading.isWithdrawn else { return value }
    do {
      try await log.close()
    } catch {
      outcome = .failure(error)
      throw error
    }
    return nil
  }

  /// Reads the history in a log, and notes that the log is a server's. If records may be missing at its end that clients
  /// were told of, it begins a new epoch first.
  private func leasedHistory(
    in log: FragmentLog, of name: String
  ) async throws -> LeasedHistory {
    let history = try await LogLease(log).leasedHistory()
    guard log.records.isEndUncertain else { return history }
    try await log.beginEpoch()
    owner.report(.uncertainEnd(of: name))
    return try await LogLease(log).leasedHistory()
  }
}

extension LogLease {
  /// Reads the history away from the caller's actor, and notes that the log is a server's.
  fileprivate func leasedHistory() async throws -> LeasedHistory {
    let leased = try await StorageQueue.run { () throws -> LeasedHistory in
      let stored = try readNow()
      return LeasedHistory(lease: self, history: try ScopeHistory(stored), last: stored.last)
    }
    log.claim(.server)
    return leased
  }
}
