#if os(Linux)
import Foundation

/// The watchers and the publisher of a server, all on one thread, so that they cost less than the server.
final class FanoutLoad<Wire: FanoutWire> {
  private static var second: Int { 1_000_000_000 }
  /// The time for which the load waits for a connection that owes something.
  private static var patience: Int { 10 * second }
  private static var readSize: Int { 256 << 10 }

  private var wire: Wire
  private let plan: FanoutPlan
  private let port: UInt16
  private let server: Int32
  /// The watchers, and the publisher behind them.
  private var connections: [FanoutConnection] = []
  private var tally = FanoutTally()
  private var published = 0
  private let poll = FanoutPoll()
  /// The bytes of the connection that is being read.
  private var buffer = [UInt8](repeating: 0, count: 1 << 20)
  private var nextLook = 0

  /// - Parameters:
  ///   - port: the port of the server on this machine.
  ///   - server: the server's process.
  init(_ wire: Wire, _ plan: FanoutPlan, port: UInt16, server: Int32) {
    (self.wire, self.plan, self.port, self.server) = (wire, plan, port, server)
  }

  /// Publishes for a second that does not count, and for three that do.
  func run() throws -> FanoutFigures {
    try connect()
    let start = FanoutClock.now
    try publish(since: start, until: start + Self.second)
    let (begin, deliveries) = (FanoutClock.now, tally.deliveries)
    let (cost, ownCost) = try (Processors.time(of: server), Processors.time(of: getpid()))
    tally.isMeasuring = true
    try publish(since: start, until: begin + 3 * Self.second)
    tally.isMeasuring = false
    let seconds = Double(FanoutClock.now - begin) / Double(Self.second)
    let count = Double(tally.deliveries - deliveries)
    let time = try Processors.time(of: server) - cost
    let ownTime = try Processors.time(of: getpid()) - ownCost
    try finish()
    let latencies = tally.latencies.sorted()
    guard count > 0, !latencies.isEmpty else {
      throw RoleProblem(text: "nothing was delivered in \(seconds) seconds")
    }
    func quantile(_ part: Double) -> Double {
      Double(latencies[Int(part * Double(latencies.count - 1))]) / 1e6
    }
    return FanoutFigures(
      deliveries: count / seconds, cost: time * 1e6 / count, median: quantile(0.5),
      slowest: quantile(0.99), server: time / seconds, load: ownTime / seconds)
  }

  // MARK: Connections

  /// Connects all, a few at a time, until they are ready.
  private func connect() throws {
    let stride = max(plan.watchers / 16, 1)
    var ready = 0
    while ready <= plan.watchers {
      while connections.count <= plan.watchers, connections.count - ready < 64 {
        let number = connections.count
        let connection = try FanoutConnection(
          to: port, isPublisher: number == plan.watchers, isSampled: number % stride == 0)
        connections.append(connection)
        try poll.add(connection.socket, number)
        wire.greet(connection)
        try send(connection, number)
      }
      try step(upTo: 10)
      while ready < connections.count, connections[ready].phase == .ready { ready += 1 }
    }
    for connection in connections { connection.lastDelivery = FanoutClock.now }
  }

  private var publisher: FanoutConnection { connections[plan.watchers] }

  /// Handles the sockets that are ready.
  private func step(upTo limit: Int) throws {
    try poll.wait(upTo: limit) { number in
      let connection = connections[number]
      if connection.awaitsRoom { try send(connection, number) }
      try receive(connection, number)
    }
    let now = FanoutClock.now
    if now > nextLook {
      nextLook = now + Self.second
      try lookForSilence(now)
    }
  }

  private func send(_ connection: FanoutConnection, _ number: Int) throws {
    try connection.send()
    let awaitsRoom = !connection.output.isEmpty
    guard awaitsRoom != connection.awaitsRoom else { return }
    connection.awaitsRoom = awaitsRoom
    try poll.watch(connection.socket, number, forRoom: awaitsRoom)
  }

  private func receive(_ connection: FanoutConnection, _ number: Int) throws {
    let kept = connection.rest.count
    guard kept + Self.readSize <= buffer.count else {
      throw RoleProblem(text: "the server has sent a long message")
    }
    if kept > 0 { buffer.replaceSubrange(0..<kept, with: connection.rest) }
    let received = try FanoutSocket.receive(
      from: connection.socket, into: &buffer, at: kept, upTo: Self.readSize)
    if received == 0 { return }
    let count = kept + received
    tally.now = FanoutClock.now
    let bytes = buffer
    let taken = try wire.take(bytes.span.extracting(0..<count), of: connection, &tally)
    connection.rest.removeAll(keepingCapacity: true)
    connection.rest.append(contentsOf: bytes[taken..<count])
    if !connection.output.isEmpty, !connection.awaitsRoom { try send(connection, number) }
  }

  /// Ends the load if it has waited too long for a connection.
  private func lookForSilence(_ now: Int) throws {
    for (number, connection) in connections.enumerated()
    where now - connection.lastDelivery > Self.patience {
      let name = connection.isPublisher ? "the publisher" : "watcher \(number)"
      if connection.phase != .ready {
        throw RoleProblem(text: "\(name) was not let in for 10 seconds")
      }
      if !connection.isPublisher, connection.delivered < published {
        throw RoleProblem(
          text: "\(name) got nothing for 10 seconds, after \(connection.delivered) messages")
      }
    }
  }

  // MARK: Publishing

  /// Publishes until a time.
  private func publish(since start: Int, until end: Int) throws {
    while true {
      let now = FanoutClock.now
      if now >= end { return }
      try publish(now, since: start)
      try step(upTo: waitingTime(now, since: start))
    }
  }

  /// Publishes what the window and the rate permit.
  private func publish(_ now: Int, since start: Int) throws {
    guard publisher.output.isEmpty else { return }
    var permitted = tally.deliveries / plan.watchers + plan.window
    if let rate = plan.rate { permitted = min(permitted, (now - start) * rate / Self.second + 1) }
    guard published < permitted else { return }
    while published < permitted, publisher.output.count < Self.readSize {
      wire.publish(now, by: publisher)
      published += 1
    }
    try send(publisher, plan.watchers)
  }

  /// Returns the milliseconds until the next message is due, 10 at most.
  private func waitingTime(_ now: Int, since start: Int) -> Int {
    guard let rate = plan.rate else { return 10 }
    let due = start + published * Self.second / rate
    return min(max((due - now) / 1_000_000 + 1, 0), 10)
  }

  /// Waits until each watcher has received all that was published, and no more.
  private func finish() throws {
    while tally.deliveries < published * plan.watchers { try step(upTo: 10) }
    for (number, connection) in connections.dropLast().enumerated()
    where connection.delivered != published {
      throw RoleProblem(
        text: "watcher \(number) got \(connection.delivered) of \(published) messages")
    }
  }
}
#endif
