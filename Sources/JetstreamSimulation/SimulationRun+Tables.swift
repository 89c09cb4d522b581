import Jetstream
import JetstreamServer

/// The sizes of the engines' tables.
extension SimulationRun {
  /// Waits until the sessions of ended processes have expired and everything is acknowledged, and checks that
  /// the engines keep no entries for either, and keep the others within their limits.
  func checkTables() {
    guard problems.isEmpty else { return }
    pass(.milliseconds(Simulation.Times.expiry + 2 * Simulation.Times.ping) + longestWay * 2)
    // A slow disk may still be at work, and a log whose disk has failed tries again a second later.
    for _ in 0..<60 where problems.isEmpty && isAnyDiskBusy { pass(.milliseconds(500)) }
    guard problems.isEmpty else { return }
    let limits = configuration.limits
    report(
      server.engine.restingTables.merging(server.scope.restingTables) { $0 + $1 }, of: "the server")
    for length in server.engine.streamLengths where length > 2 * limits.streamLength {
      report(
        .tables,
        "The server keeps \(length) change sets to tell, twice \(limits.streamLength) at most")
    }
    let clients = server.engine.rememberedClients(of: server.scope) ?? 0
    // The sessions of killed processes counted, too, when clients were last forgotten.
    let most = limits.rememberedClients + max(limits.rememberedClients / 4, 1) + 2 * present.count
    if clients > most {
      report(.tables, "The server remembers \(clients) clients, \(most) at most")
    }
    for client in present {
      report(
        client.engine.restingTables.merging(client.scope.restingTables) { $0 + $1 },
        of: "client \(client.number)")
      for count in client.engine.rememberedWrites where count > 4 * limits.ownWrites {
        report(
          .tables,
          "Client \(client.number) remembers \(count) own writes, four times \(limits.ownWrites) at most"
        )
      }
    }
  }

  private var isAnyDiskBusy: Bool {
    journal?.isBusy == true || outboxes.values.contains { $0.isBusy }
  }

  private var longestWay: Duration { .milliseconds(configuration.delay.upperBound) }

  private func report(_ tables: [String: Int], of owner: String) {
    for (name, size) in tables.sorted(by: { $0.key < $1.key })
    where size > 0 {
      report(.tables, "At rest, \(owner) has \(size) entries in \(name)")
    }
  }
}
