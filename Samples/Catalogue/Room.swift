import Foundation
import Jetstream
import JetstreamServer

/// A room of a server with its catalogue, which is opened before the server listens or when a client fetches it.
@MainActor
final class Room {
  private enum State {
    case closed
    case opening(Task<Participant, Never>)
    case open(Participant)
  }

  let name: String
  private let options: ServeOptions
  private var state = State.closed

  init(_ name: String, _ options: ServeOptions) {
    self.name = name
    self.options = options
  }

  /// The scope; while the room is closed, opens it and refuses the scope for now.
  func scope(in server: Server?) -> Result<Scope, WireError> {
    if case .open(let participant) = state {
      if !options.editing.waits { participant.start() }
      return .success(participant.scope)
    }
    if case .closed = state, let server { state = .opening(Task { await make(in: server) }) }
    return .failure(.notNow("The catalogue is being opened", retryAfter: .milliseconds(20)))
  }

  /// The server's own participant; nil before the room is opened. Waits while it is being opened.
  func participant() async -> Participant? {
    switch state {
    case .closed: nil
    case .opening(let task): await task.value
    case .open(let participant): participant
    }
  }

  /// Closes the log, if the room is open, once everything is in it. The server must have stopped.
  func close(in server: Server) async throws {
    if let participant = await participant() { try await server.remove(participant.scope) }
  }

  /// Opens the room. Ends the process if that fails.
  func open(in server: Server) async { _ = await make(in: server) }

  private func make(in server: Server) async -> Participant {
    do {
      let log = try options.log.map { folder throws(LogError) in
        try FragmentLog(options.rooms.log(of: name, in: folder))
      }
      let catalogue = try options.catalogue(for: log)
      let scope = Scope(name: name, root: catalogue)
      let participant = Participant(
        scope: scope, catalogue: catalogue, log: log, options: options.editing,
        prefix: options.rooms.prefix(of: name))
      if let log {
        try await server.host(scope, log: log, snapshotEvery: options.snapshotEvery)
      } else {
        server.host(scope)
      }
      state = .open(participant)
      return participant
    } catch {
      Console.fail("\(error)", status: 1)
    }
  }
}

extension ServeOptions {
  /// The catalogue to begin with: that of the file, unless the log has one.
  @MainActor
  func catalogue(for log: FragmentLog?) throws -> Catalogue {
    if let log, !log.opening.isEmpty { return Catalogue() }
    return try Catalogue(contentsOfFile: path(environment: ProcessInfo.processInfo.environment))
  }
}
