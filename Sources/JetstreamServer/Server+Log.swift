import Foundation
import Jetstream

/// Scopes whose history outlives the server.
extension Server {
  /// Offers `scope` to clients under its name, with a history on disk: nobody is told of anything before
  /// it is durable, and whatever was told is there after a crash. Each client's change sets are applied
  /// once, however often client and server are killed.
  ///
  /// What durable means is for the log's ``LogConfiguration`` to say: with a durability other than each
  /// record, a crash of the machine may take back what was told. A backup that is put in place of what has gone
  /// on since needs ``ScopeLog/beginEpoch()``.
  ///
  /// If the log has a history, the scope becomes what it says; otherwise the scope's content is what it
  /// begins with. The log is read here, in the time that takes.
  ///
  /// When the disk fails, ``onLog`` tells and another attempt is made every second; until one succeeds
  /// clients are told nothing new of the scope, and nothing is lost.
  ///
  /// - Parameters:
  ///   - unknown: what is done with properties and classes that the scope does not know.
  ///   - log: the history. No other scope, and no other process, may use it.
  ///   - snapshotEvery: after how many records a snapshot is made; 0 for never. The state is copied on the
  ///     server's actor, in O(models); all else happens elsewhere.
  /// - Throws: ``LogError``; or ``ScopeError`` if the history is not one of this scope.
  public func host(
    _ scope: Scope, unknown: UnknownContent = .reject, log: ScopeLog, snapshotEvery: Int = 10_000,
    isolation: isolated (any Actor)? = #isolation
  ) async throws {
    precondition(
      !engine.keepsHistory(of: scope),
      "Scope \(scope.name) is hosted with a log already: a history has one log.")
    let history = try log.history()
    let keeper = ScopeKeeper(scope: scope, log: log, server: self, snapshotEvery: snapshotEvery)
    let now = try engine.host(scope, unknown: unknown, history: history) { keeper.keep($0) }
    if history == nil { try await log.snapshot(now) }
    offer(scope)
    keeper.begin()
  }
}

/// Hands the records of one scope to its log, and says when they are durable. Used on the server's actor.
final class ScopeKeeper {
  private let scope: Scope
  private let log: ScopeLog
  private weak var server: Server?
  private let actor: WeakActor
  private let snapshotEvery: Int
  /// What the log has not taken yet.
  private var waiting: [ScopeRecord] = []
  /// How many records it has taken, in all and since the last snapshot.
  private var appended = 0
  private var sinceSnapshot: Int
  private var hasBegun = false
  private var isRetrying = false

  init(scope: Scope, log: ScopeLog, server: Server, snapshotEvery: Int) {
    self.scope = scope
    self.log = log
    self.server = server
    actor = server.actor
    self.snapshotEvery = snapshotEvery
    sinceSnapshot = log.records.opening.tailCount
  }

  /// What the records depart from is in the log.
  func begin() {
    hasBegun = true
    pump()
  }

  func keep(_ record: ScopeRecord) {
    waiting.append(record)
    pump()
  }

  private func pump() {
    guard hasBegun, !isRetrying else { return }
    while let record = waiting.first {
      do throws(LogError) {
        let receipt = try log.append(record, date: Date())
        waiting.removeFirst()
        appended += 1
        sinceSnapshot += 1
        follow(receipt, appended)
      } catch {
        return retry("\(error)") { $0.pump() }
      }
    }
    snapshotIfDue()
  }

  private func follow(_ receipt: LogReceipt, _ count: Int) {
    let home = HomeReference(self, on: actor)
    receipt.whenDurable { result in
      Task { await home.perform { $0.finished(receipt, count, result) } }
    }
  }

  private func finished(_ receipt: LogReceipt, _ count: Int, _ result: Result<Void, LogError>) {
    switch result {
    case .success: server?.engine.stored(count, of: scope)
    case .failure(let error): retry("\(error)") { $0.follow(receipt, count) }
    }
  }

  private func retry(_ problem: String, _ action: @escaping (ScopeKeeper) -> Void) {
    guard let server else { return }
    server.onLog.fire("scope \(scope.name): its history cannot be kept: \(problem); trying again")
    isRetrying = true
    server.ticker.perform(after: .seconds(1)) { [weak self] in
      guard let self else { return }
      isRetrying = false
      action(self)
      pump()
    }
  }

  /// Only when the state is what the records until now have made of it.
  private func snapshotIfDue() {
    guard snapshotEvery > 0, sinceSnapshot >= snapshotEvery, scope.isSettled,
      let server, let history = server.engine.history(of: scope)
    else { return }
    sinceSnapshot = 0
    let (log, home) = (log, HomeReference(self, on: actor))
    let last = log.records.lastSequence
    Task {
      do throws(LogError) {
        try await log.snapshot(history, at: last)
      } catch {
        await home.perform { $0.note("\(error)") }
      }
    }
  }

  private func note(_ problem: String) {
    server?.onLog.fire("scope \(scope.name): no snapshot of its history: \(problem)")
  }
}
