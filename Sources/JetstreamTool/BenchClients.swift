import Foundation
import Jetstream

/// The clients of a worker process, on one actor.
actor BenchClients {
  private let plan: BenchPlan
  private let meter = BenchMeter()
  private var clients: [BenchClient] = []

  /// The number of clients that connect at the same time.
  private static let connectingCount = 16
  /// The time that the last change sets have to be decided and seen.
  static let drainLimit = 10 * BenchClock.second

  init(_ plan: BenchPlan) { self.plan = plan }

  /// Connects all clients and fetches their scopes, a few at a time.
  func open() async throws {
    clients = plan.parts.map { BenchClient($0, plan, meter) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in clients.indices {
        if index >= Self.connectingCount { try await group.next() }
        group.addTask { try await self.open(index) }
      }
      try await group.waitForAll()
    }
    // The writers of another process may begin earlier than those of this one.
    meter.isRunning = true
  }

  private func open(_ index: Int) async throws {
    try await clients[index].open()
  }

  /// A sentence about the clients that have not got their scope yet.
  var lateness: String {
    let late = clients.filter { !$0.isOpen }
    let why = late.lazy.compactMap(\.problem).first.map { ": \($0)" } ?? "."
    return "\(late.count) of \(clients.count) clients have not got their scope in "
      + "\(plan.options.connectLimit) seconds\(why)"
  }

  // MARK: Load

  /// Has the writers write from a time on. Hands over a tally after each second, and the rest once all change sets are
  /// decided. A task that is cancelled ends without the rest.
  func load(from start: Int, send: @Sendable @escaping (BenchLine) -> Void) async {
    let end = start + plan.options.seconds * BenchClock.second
    await withTaskGroup(of: Void.self) { group in
      for index in clients.indices where clients[index].part.isWriter {
        group.addTask { await self.write(index, from: start, until: end) }
      }
      group.addTask { await self.sendSeconds(from: start, send) }
    }
    let limit = BenchClock.now + Self.drainLimit
    while undecided > 0, BenchClock.now < limit, !Task.isCancelled { await BenchClient.pause() }
    if Task.isCancelled { return }
    for client in clients { client.noteLostConnection() }
    var accepted = Array(repeating: 0, count: plan.options.scopes)
    for client in clients { accepted[client.part.scope - 1] += client.accepted }
    send(.written(meter.take(), accepted: accepted, undecided: undecided))
  }

  private func write(_ index: Int, from start: Int, until end: Int) async {
    await clients[index].write(from: start, until: end)
  }

  private func sendSeconds(from start: Int, _ send: (BenchLine) -> Void) async {
    for second in 1...plan.options.seconds {
      await BenchClock.sleep(until: start + second * BenchClock.second)
      if Task.isCancelled { break }
      send(.second(second, meter.take()))
    }
    for client in clients { client.wake() }
  }

  private var undecided: Int { clients.reduce(0) { $0 + $1.undecided } }

  // MARK: End

  /// Waits until the clients have seen the change sets of others.
  ///
  /// - Parameter accepted: The number of accepted change sets of each scope.
  func drain(accepted: [Int]) async -> BenchLine {
    func missed() -> Int {
      clients.reduce(0) { sum, client in
        sum + max(accepted[client.part.scope - 1] - client.accepted - client.seen, 0)
      }
    }
    let limit = BenchClock.now + Self.drainLimit
    while missed() > 0, BenchClock.now < limit { await BenchClient.pause() }
    return .done(meter.take(), missed: missed())
  }

  /// Returns the tally since the last one.
  func stop() -> BenchLine { .done(meter.take(), missed: nil) }

  /// Removes the models that the writers have added. Takes at most a little more than `limit` nanoseconds.
  func removeNotes(within limit: Int) async {
    meter.isRunning = false
    let end = BenchClock.now + limit
    await withTaskGroup(of: Void.self) { group in
      for index in clients.indices { group.addTask { await self.removeNotes(index, until: end) } }
    }
  }

  private func removeNotes(_ index: Int, until limit: Int) async {
    await clients[index].removeNotes(until: limit)
  }

  /// Closes all connections.
  func close() async {
    for client in clients { client.close() }
    // The process ends after this. Until then the close frames go out, so that the server sees no lost connections.
    await BenchClock.sleep(until: BenchClock.now + BenchClock.second / 20)
  }
}
