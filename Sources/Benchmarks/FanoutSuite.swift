#if os(Linux)
import Foundation

/// The suite that needs epoll, and processes that stay on their processors.
///
/// A load can be looked at without the suite, with the port and the process that `benchmarks --canvas` or
/// `benchmarks --redis` says: `benchmarks --fanout version2 100 64 0 PORT PROCESS` prints ``FanoutFigures``.
let fanoutSuites = [
  Suite(name: "fanout", summary: "a server that tells many watchers of change sets, beside redis") {
    let slow = FanoutStages(FanoutPlan(peer: .version2, watchers: 1_000, window: 64, rate: 60))
    func stages(_ watchers: Int, _ window: Int, _ peer: FanoutPlan.Peer = .version2) -> FanoutStages
    {
      FanoutStages(FanoutPlan(peer: peer, watchers: watchers, window: window))
    }
    return [
      stages(1, 64).deliveries("messages to 1 watcher, 64 in flight", bar: 0.3),
      stages(100, 64).deliveries("deliveries to 100 watchers, 64 in flight", bar: 1),
      stages(1_000, 64).deliveries("deliveries to 1,000 watchers, 64 in flight", bar: 1),
      stages(100, 1).cost("processor time, 100 watchers, 1 in flight", bar: 1),
      stages(1_000, 1).cost("processor time, 1,000 watchers, 1 in flight", bar: 1),
      slow.cost("processor time, 1,000 watchers, 60 a second", bar: 1),
      slow.row("latency, p99, 1,000 watchers, 60 a second", "ms", bar: .most(1)) { $0.slowest },
      stages(100, 64, .version1).deliveries("version 1: to 100 watchers, 64 in flight"),
      stages(100, 1, .version1).cost("version 1: processor time, 100 watchers, 1"),
    ]
  }
]

/// The stages of one row or of several: ours, and the same load on redis.
private struct FanoutStages {
  let ours: FanoutStage
  let redis: FanoutStage

  init(_ plan: FanoutPlan) {
    ours = FanoutStage(plan)
    var plan = plan
    plan.peer = .redis
    redis = FanoutStage(plan)
  }

  /// Makes a row of the deliveries in a second.
  func deliveries(_ name: String, bar: Double? = nil) -> Row {
    row(name, "/s", bar: bar.map { .leastRatio($0) }) { $0.deliveries }
  }

  /// Makes a row of the server's processor time for a delivery.
  func cost(_ name: String, bar: Double? = nil) -> Row {
    row(name, "us", bar: bar.map { .most($0) }) { $0.cost }
  }

  /// Makes a row. Its bar is a ratio, which there is only if there is a peer.
  func row(
    _ name: String, _ unit: String, bar: Bar?, _ figure: @escaping (FanoutFigures) -> Double
  ) -> Row {
    let isInstalled = RedisServer.path != nil
    return Row(
      name: name, unit: unit, peerName: isInstalled ? "redis" : "redis-server, not installed",
      bar: isInstalled ? bar : nil, rounds: 3
    ) {
      Probes(ours: ours.probe(figure), peer: isInstalled ? redis.probe(figure) : nil)
    }
  }
}

/// A server and its load, each in a process of its own and on a processor of its own.
private final class FanoutStage {
  private let plan: FanoutPlan
  private var rounds: [FanoutFigures] = []

  init(_ plan: FanoutPlan) { self.plan = plan }

  /// Returns a probe for one of the figures. Several rows share the rounds of the first one.
  func probe(_ figure: @escaping (FanoutFigures) -> Double) -> Probe {
    var round = 0
    return { [self] in
      if round == rounds.count { rounds.append(measure()) }
      round += 1
      return figure(rounds[round - 1])
    }
  }

  private func measure() -> FanoutFigures {
    do {
      let server = try RoleProcess([plan.peer == .redis ? "--redis" : "--canvas"])
      defer { server.finish() }
      let place = try server.line()
      let parts = place.split(separator: " ").map(String.init)
      guard parts.count == 2, parts.allSatisfy({ Int($0) != nil }) else {
        throw RoleProblem(text: place)
      }
      let load = try RoleProcess(["--fanout"] + plan.arguments + parts)
      defer { load.end() }
      let line = try load.line()
      guard let figures = FanoutFigures(line: line) else { throw RoleProblem(text: line) }
      return figures
    } catch {
      _ = Row.failed("\(error)")
      return .failed
    }
  }
}
#else
/// The suite that needs epoll; there is none here.
let fanoutSuites: [Suite] = []
#endif
