import Foundation
import Jetstream

/// Opens and closes the scopes that clients fetch: asks the app for them, has their histories read away from the server's
/// actor, and hosts them.
final class ScopeOpener {
  private let directory: ScopeDirectory
  private let snapshotEvery: Int
  private let resolve: (ScopeOpening) async throws -> ScopeSource
  private let runner: EngineRunner
  private let report: (Diagnostic) -> Void
  /// The opening or closing of each scope that is under way.
  private var tasks: [String: Task<Void, Never>] = [:]
  private var isStopped = false
  private lazy var home = HomeReference(self, on: runner.actor)

  init(
    _ directory: ScopeDirectory, snapshotEvery: Int, runner: EngineRunner,
    report: @escaping (Diagnostic) -> Void,
    resolve: @escaping (ScopeOpening) async throws -> ScopeSource
  ) {
    (self.directory, self.snapshotEvery) = (directory, snapshotEvery)
    (self.runner, self.report, self.resolve) = (runner, report, resolve)
  }

  /// Gives up all openings, for a server that is released.
  func abandon() { for task in tasks.values { task.cancel() } }

  /// Does what the engine asks for, in a task of its own.
  func perform(_ step: ServerEngine.ScopeStep) {
    switch step {
    case .open(let name, let schema):
      tasks[name] = home.task { await $0.open(name, bringing: schema) }
    case .giveUp(let name): tasks[name]?.cancel()
    case .close(let name, let content):
      let key = ObjectIdentifier(content)
      tasks[name] = home.task { await $0.close(name, key) }
    }
  }

  /// Returns once the opening or closing of a scope that is under way has ended.
  func finish(_ name: String) async { await tasks[name]?.value }

  /// Gives up all openings, and closes the logs of scopes that the engine no longer hosts. Returns when all are closed.
  func stop(closing open: [any Hostable]) async {
    isStopped = true
    let (under, keys) = (Array(tasks.values), open.map(ObjectIdentifier.init))
    for task in under { task.cancel() }
    for task in under { await task.value }
    for key in keys { await closeLog(of: key, named: nil) }
  }

  // MARK: Opening

  private func open(_ name: String, bringing schema: JSONValue?) async {
    var outcome: Result<any Hostable, WireError>
    do {
      outcome = .success(try await host(name, bringing: schema))
      report(Diagnostic(.info, .scope, scope: name, "was opened"))
    } catch let error as WireError {
      outcome = .failure(error)
    } catch is CancellationError {
      outcome = .failure(.notNow("Opening the scope was given up", retryAfter: .seconds(1)))
    } catch {
      report(Diagnostic(.error, .storage, scope: name, "could not be opened: \(error)"))
      outcome = .failure(.notNow("The scope could not be opened", retryAfter: .seconds(5)))
    }
    tasks[name] = nil
    runner.opened(name, outcome)
  }

  private func host(_ name: String, bringing schema: JSONValue?) async throws -> any Hostable {
    let place = try ScopePlace(name)
    let stored = try await directory.stored(place)
    let source = try await resolve(ScopeOpening(name: name, isNew: stored.isNew))
    try Task.checkCancellation()
    switch source {
    case .models(let scope, let unknown):
      precondition(
        scope.name == name, "The scope for \(name) must have that name, not \(scope.name).")
      return try await host(scope, name, unknown, directory.open(place))
    case .schema(let schema): return try await host(name, at: place, schema)
    case .schemaOfClient:
      return try await host(name, at: place, clientSchema(schema, place, stored))
    }
  }

  /// Hosts rows, which are made away from the server's actor: that takes time in proportion to the scope.
  private func host(
    _ name: String, at place: ScopePlace, _ schema: ScopeSchema
  ) async throws -> any Hostable {
    let (opened, content) = try await directory.open(place, name, as: schema)
    return try await host(content, name, .reject, opened, isRestored: true)
  }

  private func host(
    _ content: any Hostable, _ name: String, _ unknown: UnknownContent,
    _ opened: ScopeDirectory.Opened, isRestored: Bool = false
  ) async throws -> any Hostable {
    let isHosted: Bool
    do {
      if isStopped { throw CancellationError() }
      isHosted = try await runner.host(
        content, as: name, unknown: unknown, log: opened.log, history: opened.history,
        isRestored: isRestored, snapshotEvery: snapshotEvery)
    } catch {
      runner.engine.remove(content, .notNow("The scope could not be opened", retryAfter: .zero))
      try? await opened.log.close()
      throw error
    }
    // The app may have removed the scope, or stopped the server, while its first state was written. Its log is closed
    // then: hosted once more, it would have none.
    guard isHosted else { throw WireError.notNow("The scope was removed", retryAfter: .zero) }
    return content
  }

  /// Returns the schema of the first client that has brought one.
  private func clientSchema(
    _ brought: JSONValue?, _ place: ScopePlace, _ stored: ScopeDirectory.Stored
  ) async throws -> ScopeSchema {
    if let schema = stored.schema { return schema }
    guard let brought else { throw WireError.schemaWanted }
    let schema = try ScopeSchema(brought)
    try await directory.keep(schema, of: place)
    return schema
  }

  // MARK: Closing

  private func close(_ name: String, _ content: ObjectIdentifier) async {
    await closeLog(of: content, named: name)
    report(Diagnostic(.info, .scope, scope: name, "was closed"))
    tasks[name] = nil
    runner.closed(name)
  }

  private func closeLog(of content: ObjectIdentifier, named name: String?) async {
    do {
      try await runner.closeLog(of: content)
    } catch {
      report(Diagnostic(.error, .storage, scope: name, "could not be closed: \(error)"))
    }
  }
}
