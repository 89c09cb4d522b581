import Foundation
import Jetstream

/// Opens and closes the scopes that clients fetch: asks the app for them, has their histories read away from the server's
/// actor, and hosts them.
final class ScopeOpener {
  private let storage: any ScopeStorage
  private let snapshotEvery: Int
  private let resolve: (ScopeOpening) async throws -> ScopeSource
  private let runner: EngineRunner
  private let report: (Diagnostic) -> Void
  /// An opening or closing that is under way.
  private struct Work {
    let task: Task<Void, Never>
    /// The content that is being closed; nil for an opening.
    var closed: ObjectIdentifier?
    /// Its history. It is taken when the closing begins: the app may host the content with another one meanwhile.
    var history: HostedHistory?
  }

  /// The opening or closing of each scope that is under way.
  private var work: [String: Work] = [:]
  /// The errors with which closing scopes was given up. There are none before the server stops.
  private var failures: [String: StorageError] = [:]
  /// True once ``giveUp()`` was called.
  private(set) var isStopped = false
  /// The questions to the app for scopes, by name.
  private var questions: [String: AppQuestion<ScopeSource>] = [:]
  private lazy var home = HomeReference(self, on: runner.actor)

  init(
    _ storage: any ScopeStorage, snapshotEvery: Int, runner: EngineRunner,
    report: @escaping (Diagnostic) -> Void,
    resolve: @escaping (ScopeOpening) async throws -> ScopeSource
  ) {
    (self.storage, self.snapshotEvery) = (storage, snapshotEvery)
    (self.runner, self.report, self.resolve) = (runner, report, resolve)
  }

  /// Gives up all openings, and tries no longer to close what cannot be closed: for a server that stops or is released.
  func giveUp() {
    isStopped = true
    for name in work.keys { cancel(name) }
    if questions.isEmpty { return }
    let time = runner.engine.configuration.openScopes.openingTime
    runner.ticker.perform(after: time) { [weak self] in
      for question in self?.questions.values.map(\.self) ?? [] { question.giveUp() }
    }
  }

  /// Does what the engine asks for, in a task of its own.
  func perform(_ step: ServerEngine.ScopeStep) {
    switch step {
    case .open(let name, let schema):
      work[name] = Work(task: home.task { await $0.open(name, bringing: schema) })
    case .giveUp(let name): cancel(name)
    case .close(let name, let content):
      let key = ObjectIdentifier(content)
      work[name] = Work(
        task: home.task { await $0.close(name) }, closed: key,
        history: runner.takeHistory(of: key))
    }
  }

  /// Cancels an opening or closing, and with it the app's answer: the app decides what comes of that.
  private func cancel(_ name: String) {
    work[name]?.task.cancel()
    questions[name]?.cancel()
  }

  /// Returns true if a scope with this very content is being closed.
  func isClosing(_ content: any Hostable, named name: String) -> Bool {
    work[name]?.closed == ObjectIdentifier(content)
  }

  /// Returns once the opening or closing of a scope that is under way has ended. An app that is being asked for the scope is
  /// waited for as long as an opening takes at most.
  ///
  /// - Throws: the error with which closing it was given up.
  func finish(_ name: String) async throws {
    guard let task = work[name]?.task else { return }
    giveUpLate(task, of: name)
    await task.value
    try throwFailure(of: name)
  }

  /// Gives up the question of an opening after the time that one may take, and after that again: the app may be asked later.
  private func giveUpLate(_ task: Task<Void, Never>, of name: String) {
    let time = runner.engine.configuration.openScopes.openingTime
    runner.ticker.perform(after: time) { [weak self] in
      // Another opening may be under way by then.
      guard let self, work[name]?.task == task else { return }
      questions[name]?.giveUp()
      giveUpLate(task, of: name)
    }
  }

  /// Closes the histories of scopes that the engine no longer hosts, after ``giveUp()``. Returns when all are closed, and
  /// all that was under way has ended.
  func close(_ open: [(name: String, content: ObjectIdentifier)]) async {
    for work in Array(work.values) { await work.task.value }
    for (name, content) in open {
      failures[name] = await close(runner.takeHistory(of: content), of: name)
    }
  }

  /// Throws the error with which closing a scope was given up, if it was.
  func throwFailure(of name: String) throws {
    if let failure = failures[name] { throw failure.cause }
  }

  /// The names of the scopes whose histories could not be closed when the server stopped.
  var unclosed: [String] { failures.keys.sorted() }

  // MARK: Opening

  private func open(_ name: String, bringing schema: JSONValue?) async {
    var outcome: Result<any Hostable, WireError>
    do {
      outcome = .success(try await host(name, bringing: schema))
      report(Diagnostic(.info, .scope, scope: name, "was opened"))
    } catch let error as WireError {
      outcome = .failure(error)
    } catch StorageError.leased(_, let path) {
      // Servers that share a storage have its scopes by turns. A directory has one server: something else uses the log.
      if let path {
        report(
          Diagnostic(
            .warning, .storage, scope: name,
            "could not be opened: the log in \(path) is open for writing elsewhere"))
      }
      outcome = .failure(.notNow("The scope is served elsewhere", retryAfter: .seconds(1)))
    } catch is CancellationError {
      outcome = .failure(.notNow("Opening the scope was given up", retryAfter: .seconds(1)))
    } catch {
      report(Diagnostic(.error, .storage, scope: name, "could not be opened: \(error)"))
      outcome = .failure(.notNow("The scope could not be opened", retryAfter: .seconds(5)))
    }
    work[name] = nil
    runner.opened(name, outcome)
  }

  private func host(_ name: String, bringing schema: JSONValue?) async throws -> any Hostable {
    let stored = try await storage.find(name)
    let source = try await ask(ScopeOpening(name: name, isNew: stored.isNew))
    try Task.checkCancellation()
    switch source {
    case .models(let scope, let unknown):
      precondition(
        scope.name == name, "The scope for \(name) must have that name, not \(scope.name).")
      return try await host(scope, name, unknown)
    case .schema(let schema): return try await host(name, schema)
    case .schemaOfClient:
      if let schema = stored.schema { return try await host(name, schema) }
      guard let schema else { throw WireError.schemaWanted }
      return try await host(name, ScopeSchema(ofClient: schema), isNew: true)
    }
  }

  /// Asks the app for a scope, in a task of its own. A server that stops waits for no longer than the time that an opening
  /// has: an app that ignores the cancellation would keep ``Server/stop()`` from returning.
  private func ask(_ opening: ScopeOpening) async throws -> ScopeSource {
    if isStopped { throw CancellationError() }
    let resolve = resolve
    let question = AppQuestion { try await resolve(opening) }
    questions[opening.name] = question
    defer { questions[opening.name] = nil }
    question.begin(on: runner.actor)
    // The opening may have been given up before there was a question. Later, ``cancel(_:)`` cancels that, too: waiting
    // within a cancellation handler may leave the actor, and miss the answer.
    if Task.isCancelled { question.cancel() }
    await question.wait()
    return try question.get()
  }

  private func host(
    _ scope: Scope, _ name: String, _ unknown: UnknownContent
  ) async throws -> any Hostable {
    let lease = try await storage.lease(name)
    return try await releasing(lease) {
      let stored = try await read(lease, name)
      let history = try await StorageQueue.run { try ScopeHistory(stored) }
      let leased = LeasedHistory(lease: lease, history: history, last: stored.last)
      return try await host(scope, name, unknown, leased)
    }
  }

  /// Hosts rows, which are made away from the server's actor: that takes time in proportion to the scope.
  ///
  /// - Parameter isNew: true if the schema is one that a client has brought. It becomes the scope's for good, once the
  ///   history is known to fit it.
  private func host(
    _ name: String, _ schema: ScopeSchema, isNew: Bool = false
  ) async throws -> any Hostable {
    let lease = try await storage.lease(name)
    return try await releasing(lease) {
      let stored = try await read(lease, name)
      let isMeasured = runner.engine.configuration.limits.bytesPerScope != nil
      let (history, content) = try await StorageQueue.run {
        let history = try ScopeHistory(stored)
        let content = try RowsContent(
          name: name, schema, from: history, isMeasured: isMeasured)
        // By the schema of any client, content would be lost for good.
        if isNew, let (_, error) = content.leftOut.min(by: { $0.key < $1.key }) { throw error }
        return (history, content)
      }
      if isNew { try await storage.keep(schema, of: name) }
      let leased = LeasedHistory(lease: lease, history: history, last: stored.last)
      return try await host(content, name, .reject, leased, isRestored: true)
    }
  }

  /// Reads a history, and reports what it has lost.
  private func read(_ lease: any ScopeLease, _ name: String) async throws -> StoredHistory {
    let stored = try await lease.read()
    for loss in stored.losses {
      report(
        Diagnostic(
          .error, .storage, scope: name,
          "goes on in a new epoch, since a part of its history is lost: \(loss)"))
    }
    if stored.mayHaveLostEnd { report(.uncertainEnd(of: name)) }
    return stored
  }

  /// Runs `body`, and releases a lease if it fails.
  private func releasing(
    _ lease: any ScopeLease, _ body: () async throws -> any Hostable
  ) async throws -> any Hostable {
    do {
      return try await body()
    } catch {
      try? await lease.release()
      throw error
    }
  }

  private func host(
    _ content: any Hostable, _ name: String, _ unknown: UnknownContent, _ leased: LeasedHistory,
    isRestored: Bool = false
  ) async throws -> any Hostable {
    let isHosted: Bool
    do {
      if isStopped { throw CancellationError() }
      isHosted = try await runner.host(
        content, as: name, unknown: unknown, leased, isRestored: isRestored,
        snapshotEvery: snapshotEvery)
    } catch {
      runner.engine.remove(content, .notNow("The scope could not be opened", retryAfter: .zero))
      throw error
    }
    // The app may have removed the scope, or stopped the server, while its first state was written. Its history is closed
    // then: hosted once more, it would have none.
    guard isHosted else { throw WireError.notNow("The scope was removed", retryAfter: .zero) }
    return content
  }

  // MARK: Closing

  private func close(_ name: String) async {
    failures[name] = await close(work[name]?.history, of: name)
    if failures[name] == nil { report(Diagnostic(.info, .scope, scope: name, "was closed")) }
    work[name] = nil
    runner.closed(name)
  }

  /// Writes and releases a history. While that fails it tries again every second, until the server stops; clients that
  /// fetch the scope wait, and are refused in time.
  ///
  /// - Returns: the error with which it was given up; nil if the history is closed.
  private func close(_ history: HostedHistory?, of name: String) async -> StorageError? {
    guard let history else { return nil }
    do throws(StorageError) {
      try await runner.close(history) { error in
        if isStopped { return false }
        report(
          Diagnostic(.error, .storage, scope: name, "cannot be closed: \(error); trying again"))
        try? await Task.sleep(for: .seconds(1))
        return !isStopped
      }
      return nil
    } catch {
      report(Diagnostic(.error, .storage, scope: name, "could not be closed: \(error)"))
      return error
    }
  }
}
