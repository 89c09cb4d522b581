import Foundation
import Jetstream
import JetstreamServer

/// A server and two clients over real sockets, each on an actor of its own.
func loopbackRows() -> [Row] {
  func row(
    _ name: String, unit: String, bar: Bar, rounds: Int = 5,
    _ measure: @escaping (Loopback) -> Double
  ) -> Row {
    // Each round has sessions of its own.
    Row(name: name, unit: unit, bar: bar, rounds: rounds) { Probes(ours: { measure(Loopback()) }) }
  }
  return [
    row("edits seen by another client, of 5,000", unit: "per s", bar: .least(10_000)) { loopback in
      loopback.rate(of: 5_000, LoopbackClient.setLevels, until: LoopbackClient.hasLevel)
    },
    // More than a session may leave unacknowledged.
    row("edits seen by another client, of 25,000", unit: "per s", bar: .least(10_000), rounds: 3) {
      loopback in
      loopback.rate(of: 25_000, LoopbackClient.setLevels, until: LoopbackClient.hasLevel)
    },
    row("appends seen by another client, of 5,000", unit: "per s", bar: .least(6_000)) { loopback in
      loopback.rate(of: 5_000, LoopbackClient.append, until: LoopbackClient.hasShapes)
    },
    row("an edit until another client sees it", unit: "us", bar: 600) { $0.latency(of: 200) },
  ]
}

/// A server, a client that edits and a client that receives the edits.
private final class Loopback: Sendable {
  typealias Edit = @Sendable (isolated LoopbackClient, _ count: Int) -> Int
  typealias Condition = @Sendable (isolated LoopbackClient, _ goal: Int) -> Bool

  private let server = LoopbackServer()
  private let author = LoopbackClient()
  private let reader = LoopbackClient()

  /// Returns the number of edits per second, each a change set: from the first of `count` edits until the other client
  /// has the last.
  func rate(of count: Int, _ edit: @escaping Edit, until condition: @escaping Condition) -> Double {
    measure { [self] in
      let clock = ContinuousClock()
      let start = clock.now
      let goal = await edit(author, count)
      try await reader.reach(goal, condition)
      return Double(count) / (start.duration(to: clock.now) / .seconds(1))
    }
  }

  /// Microseconds an edit, of some that follow each other.
  func latency(of count: Int) -> Double {
    measure { [self] in
      let clock = ContinuousClock()
      let start = clock.now
      for _ in 0..<count {
        let goal = await LoopbackClient.setLevels(author, 1)
        try await reader.reach(goal, LoopbackClient.hasLevel)
      }
      return start.duration(to: clock.now) / .microseconds(1) / Double(count)
    }
  }

  /// Measures with all connected, while the calling thread waits.
  private func measure(_ body: @escaping @Sendable () async throws -> Double) -> Double {
    let done = DispatchSemaphore(value: 0)
    let figure = Box(.nan)
    Task { [self] in
      do {
        let port = try await server.start()
        try await author.join(port)
        try await reader.join(port)
        figure.value = try await body()
        if let problem = await server.problem { figure.value = Row.failed(problem) }
      } catch {
        figure.value = Row.failed("\(error)")
      }
      await author.leave()
      await reader.leave()
      await server.stop()
      done.signal()
    }
    done.wait()
    return figure.value
  }

  /// Sound as unchecked: it is written before the semaphore is signalled, and read after that.
  private final class Box: @unchecked Sendable {
    var value: Double

    init(_ value: Double) { self.value = value }
  }
}

private actor LoopbackServer {
  private var server: Server?
  /// The first message that the server has logged; nil if there is none.
  private(set) var problem: String?

  /// Starts the server and returns its port.
  func start() async throws -> UInt16 {
    let server = Server()
    self.server = server
    server.host(Scope(name: "Canvas", root: Shape.canvas(of: 10).0))
    server.onDiagnostic.listen { [unowned self] diagnostic in
      let text = "\(diagnostic)"
      assumeIsolated { $0.problem = $0.problem ?? text }
    }
    return try await server.listen()
  }

  func stop() async { await server?.stop() }
}

private actor LoopbackClient {
  /// The expected change did not arrive in time.
  struct Absent: Error, CustomStringConvertible {
    let description: String
  }

  private var client: Client?
  private let canvas = Canvas()
  private var scope: Scope?
  private var level = 0
  private let watcher = SyncWatcher()

  func join(_ port: UInt16) async throws {
    let client = Client(url: "ws://127.0.0.1:\(port)")
    let scope = Scope(name: "Canvas", root: canvas)
    (self.client, self.scope) = (client, scope)
    try await client.connect()
    try await client.fetch(scope)
    canvas.observeChange(watcher, \.shapes) { $0.check() }
    canvas.shapes[0].observeChange(watcher, \.level) { $0.check() }
  }

  func leave() { client?.close() }

  /// Changes one property, in a change set each time, and gives the last value.
  static func setLevels(_ self: isolated LoopbackClient, _ count: Int) -> Int {
    for _ in 0..<count {
      self.level += 1
      self.canvas.shapes[0].level = self.level
      self.scope?.flush()
    }
    return self.level
  }

  static func hasLevel(_ self: isolated LoopbackClient, _ goal: Int) -> Bool {
    self.canvas.shapes[0].level >= goal
  }

  /// Appends shapes, in a change set each, and gives how many there are then.
  static func append(_ self: isolated LoopbackClient, _ count: Int) -> Int {
    for _ in 0..<count {
      self.canvas.shapes.append(Shape())
      self.scope?.flush()
    }
    return self.canvas.shapes.count
  }

  static func hasShapes(_ self: isolated LoopbackClient, _ goal: Int) -> Bool {
    self.canvas.shapes.count >= goal
  }

  /// Waits, woken up by the models' observers, until a condition holds; for a minute at most.
  func reach(_ goal: Int, _ condition: @escaping Loopback.Condition) async throws {
    if condition(self, goal) { return }
    let limit = Task {
      try await Task.sleep(for: .seconds(60))
      watcher.finish(false)
    }
    defer { limit.cancel() }
    let isThere = await withCheckedContinuation { continuation in
      watcher.wait(continuation) { self.assumeIsolated { condition($0, goal) } }
    }
    if !isThere {
      throw Absent(description: "what the first client has done did not arrive within a minute")
    }
  }
}

/// Observes models while they change. Lives on one actor.
private final class SyncWatcher {
  private var condition: (() -> Bool)?
  private var continuation: CheckedContinuation<Bool, Never>?

  func wait(_ continuation: CheckedContinuation<Bool, Never>, until condition: @escaping () -> Bool)
  {
    (self.continuation, self.condition) = (continuation, condition)
  }

  func check() { if let condition, condition() { finish(true) } }

  func finish(_ isThere: Bool) {
    let waiting = continuation
    (continuation, condition) = (nil, nil)
    waiting?.resume(returning: isThere)
  }
}
