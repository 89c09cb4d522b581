import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// A world of which the server and each client keep a log.
final class LoggedWorld {
  let world: InMemoryWorld
  let directory: TemporaryDirectory
  private let serverLog: ServerLog
  private var serverRecords = 0
  private var clientLogs: [ClientLog] = []
  private var replicas: [Replica] = []

  var serverPath: String { directory.path + "/server" }

  func clientPath(_ number: Int) -> String { directory.path + "/client\(number)" }

  /// - Parameter authors: the authors that the server names for the first clients.
  init(seed: UInt64, clients: Int, authors: [String] = []) async throws {
    world = InMemoryWorld(seed: seed)
    directory = try TemporaryDirectory()
    serverLog = try ServerLog(directory.path + "/server")
    for number in 0..<6 {
      let shape = Shape()
      shape.label = "at first \(number)"
      world.canvas.shapes.append(shape)
    }
    world.scope.flush()
    let state = try world.server.host(world.scope, history: nil) { [unowned self] record in
      serverRecords += 1
      do { _ = try serverLog.append(record) } catch { Issue.record("\(error)") }
    }
    try await serverLog.snapshot(#require(state))
    for number in 0..<clients {
      let log = try ClientLog(
        clientPath(number), configuration: LogConfiguration(history: .all))
      let client = world.addClient()
      let author = authors.indices.contains(number) ? authors[number] : nil
      client.engine.connect(
        params: author.map { ["author": .string($0)] } ?? [:], now: world.now)
      let replica = try client.engine.fetch(
        client.scope, params: [:], history: nil, now: world.now,
        store: { record in
          do { _ = try log.append(record) } catch { Issue.record("\(error)") }
        }, completion: { _ in })
      clientLogs.append(log)
      replicas.append(try #require(replica))
    }
  }

  /// Reports all records as durable.
  func store() {
    world.server.stored(serverRecords, of: world.scope)
    for replica in replicas { replica.stored(replica.journal.made) }
  }

  /// Lets everything arrive and be kept.
  func settle() {
    for _ in 0..<200 {
      store()
      world.exchange()
      world.advance(by: .seconds(1))
    }
  }

  func snapshotServer() async throws {
    guard let history = world.server.history(of: world.scope) else { return }
    try await serverLog.snapshot(history)
  }

  func snapshotClient(_ number: Int) async throws {
    guard let history = replicas[number].history else { return }
    try await clientLogs[number].snapshot(history, at: clientLogs[number].records.lastSequence)
  }

  func close() async throws {
    try await serverLog.records.close()
    for log in clientLogs { try await log.records.close() }
  }
}
