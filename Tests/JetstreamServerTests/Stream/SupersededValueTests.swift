import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// A client that is behind is told the last value of each property, and what it costs the server does not depend on how
/// long it is behind.
@Suite("Superseded values", .paced)
struct SupersededValueTests {
  private static let kilobyte = 1 << 10

  private static func client() -> ClientEngine.Configuration {
    var configuration = ClientEngine.Configuration()
    configuration.limits.acknowledgeAfter = .init(messages: 4, bytes: 16 * kilobyte)
    return configuration
  }

  private static func world(
    sets: Int = 4096, bytes: Int = 64 * kilobyte, stream: Int = 16 << 20
  ) -> InMemoryWorld {
    var configuration = ServerEngine.Configuration()
    configuration.window = .init(sets: sets, bytes: bytes)
    configuration.streamLimit.bytes = stream
    // Small scopes keep as much as large ones.
    configuration.streamLimit.leastBytes = stream
    let world = InMemoryWorld(configuration: configuration)
    world.canvas.shapes.append(Shape())
    return world
  }

  private static func join(_ world: InMemoryWorld) -> WorldClient {
    let client = world.addClient(configuration: client())
    client.join()
    world.settle()
    client.heard = []
    return client
  }

  /// A text of so many kilobytes that tells its number.
  private static func text(_ number: Int, _ size: Int = 10) -> String {
    "\(number) " + String(repeating: "x", count: size * kilobyte)
  }

  private func expectAgreement(_ world: InMemoryWorld) {
    world.settle()
    // Each client acknowledges all with a ping.
    world.pass(24)
    let state = world.scope.canonicalJSON
    for client in world.clients {
      let isRight = client.scope.canonicalJSON == state
      #expect(isRight)
      #expect(client.engine.pendingCount == 0 && client.engine.checkInvariants() == [])
    }
    #expect(world.server.checkInvariants() == [] && world.endedSessions.isEmpty)
    for session in world.server.sessions.values { #expect(session.waiting == StreamAmount()) }
  }

  private func syncs(_ client: WorldClient) -> [ScopeSync] {
    client.heard.compactMap { if case .scopeSync(let sync) = $0 { sync } else { nil } }
  }

  @Test("Behind the window, only the last value of a property is sent, and every sequence")
  func lastValue() {
    let world = Self.world()
    let reader = Self.join(world)
    for number in 1...200 {
      world.canvas.name = Self.text(number)
      world.scope.flush()
    }
    let link = reader.link!
    #expect(link.toClient.reduce(0) { $0 + $1.count } < 80 * Self.kilobyte)
    world.settle()
    #expect(world.now < .seconds(9) && reader.canvas.name == world.canvas.name)
    expectAgreement(world)
    let syncs = syncs(reader)
    let first = syncs.first?.sequence ?? 0
    #expect(syncs.map(\.sequence) == (first..<first + 200).map { $0 })
    let values = syncs.filter { !$0.fragments.isEmpty }
    // The window, and one value for all that has waited; acknowledgements come in between.
    #expect(values.count < 20, "\(values.count) of 200 values were sent")
  }

  @Test("Twenty clients that read nothing while 100 changes of 1 MiB are made keep their sessions")
  func twentyReaders() throws {
    var configuration = ServerEngine.Configuration()
    configuration.window.bytes = 4 << 20
    let world = InMemoryWorld(configuration: configuration)
    for _ in 0..<20 { world.addClient().join() }
    world.settle()
    for number in 1...100 {
      world.canvas.name = Self.text(number, 1024)
      world.scope.flush()
    }
    let most = 6 << 20
    for client in world.clients {
      let link = try #require(client.link)
      #expect(link.toClient.reduce(0) { $0 + $1.count } < most)
    }
    let host = try #require(world.server.hosts.values.first)
    for session in world.server.sessions.values {
      #expect(session.waiting.bytes + session.channel.keptBytes < most)
      #expect(session.link.outbox.isEmpty && session.subscriptions.all.allSatisfy(\.later.isEmpty))
    }
    #expect(host.order.stream.bytes <= 2 * host.order.stream.limit.bytes + (1 << 20))
    for client in world.clients { client.heard = [] }
    expectAgreement(world)
  }

  @Test("No frame leaves a client with values of different times")
  func noMixture() {
    // Behind eight change sets, the next ones wait.
    let world = Self.world(sets: 8)
    let (reader, writer) = (Self.join(world), Self.join(world))
    var seen: [String] = []
    let canvas = reader.canvas
    world.onDelivered = {
      let (name, label) = (Int(canvas.name ?? "0") ?? -1, Int(canvas.shapes[0].label) ?? 0)
      if seen.last != "\(name) \(label)" { seen.append("\(name) \(label)") }
      #expect(name == label || name == label + 1, "values of different times: \(seen)")
    }
    for number in 1...40 {
      writer.canvas.name = "\(number)"
      writer.flush()
      deliver(writer)
      writer.canvas.shapes[0].label = "\(number)"
      writer.flush()
      deliver(writer)
    }
    expectAgreement(world)
    #expect(seen.last == "40 40" && seen.count > 3)
    #expect(syncs(reader).contains { $0.fragments.isEmpty }, "values were left out")
  }

  /// Delivers everything between one client and the server.
  private func deliver(_ client: WorldClient) {
    while let link = client.link, !link.toServer.isEmpty || !link.toClient.isEmpty {
      client.world.deliver(link, toServer: !link.toServer.isEmpty)
    }
  }

  @Test("Its own change sets, and the replies to them, keep their places and their values")
  func ownSets() {
    let world = Self.world(sets: 8)
    let (reader, writer) = (Self.join(world), Self.join(world))
    for round in 1...10 {
      for number in 1...6 {
        writer.canvas.name = "\(10 * round + number)"
        writer.flush()
        deliver(writer)
      }
      reader.canvas.name = "own \(round)"
      reader.canvas.likes += 1
      reader.flush()
      let link = reader.link!
      while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    }
    #expect(reader.engine.pendingCount == 10)
    expectAgreement(world)
    #expect(world.canvas.likes == 10 && reader.rejections.isEmpty)
    #expect(writer.canvas.name == "own 10")
    #expect(syncs(reader).contains { $0.fragments.isEmpty }, "values were left out")
  }

  @Test("A conflict is found although the value that has overwritten the client's own was replaced")
  func conflict() throws {
    let world = Self.world(sets: 4)
    let (reader, writer) = (Self.join(world), Self.join(world))
    // The writer has not seen the reader's value when it overwrites it.
    reader.canvas.name = "mine"
    reader.flush()
    writer.canvas.name = "theirs"
    writer.flush()
    let (own, other) = (try #require(reader.link), try #require(writer.link))
    while !own.toServer.isEmpty { world.deliver(own, toServer: true) }
    // The reader gets its reply, and falls behind before the writer's change set is accepted.
    while !own.toClient.isEmpty { world.deliver(own, toServer: false) }
    for number in 1...4 {
      world.canvas.likes = number
      world.scope.flush()
    }
    while !other.toServer.isEmpty { world.deliver(other, toServer: true) }
    for number in 1...3 {
      world.canvas.name = "\(number)"
      world.scope.flush()
    }
    expectAgreement(world)
    let conflict = try #require(reader.scope.conflicts.items.first)
    #expect(reader.scope.conflicts.items.count == 1 && conflict.reason == .overwritten)
    #expect(conflict.mine == .value("mine") && conflict.theirs == "3")
    let names = syncs(reader).flatMap(\.fragments).compactMap { $0.properties["name"] }
    #expect(names == ["theirs", "3"])
  }

  @Test("A scope that the client has paused does not hold up its other scopes")
  func pausedScope() throws {
    let world = Self.world()
    let notes = Canvas()
    let other = Scope(name: "Notes", root: notes, ticker: world.serverTicker)
    world.moreScopes["Notes"] = other
    let reader = Self.join(world)
    let copy = Canvas()
    let scope = Scope(name: "Notes", root: copy, ticker: reader.ticker)
    reader.engine.fetch(scope, params: [:], now: world.now) { _ in }
    world.settle()
    reader.scope.pauseIncoming()
    for number in 1...20 {
      world.canvas.name = Self.text(number)
      world.scope.flush()
    }
    notes.name = "quick"
    other.flush()
    world.exchange()
    #expect(copy.name == "quick" && reader.canvas.name == nil)
    reader.scope.resumeIncoming()
    expectAgreement(world)
  }

  @Test("A client that wants no later change sets is told the values that were current then")
  func limited() throws {
    let world = Self.world(sets: 4)
    let (peer, writer) = (RawPeer.joined(world, protocol: 2), Self.join(world))
    let position = world.server.positions[0]
    for number in 1...9 {
      writer.canvas.name = "\(number)"
      writer.flush()
      deliver(writer)
    }
    var fetch = ScopeFetch(name: "Canvas")
    (fetch.since, fetch.tell) = (position, .missed)
    peer.send(peer.stamp(.scopeFetch(fetch)))
    writer.canvas.name = "later"
    writer.flush()
    deliver(writer)
    for _ in 0..<4 { peer.acknowledge() }
    let last = peer.syncs.last { !$0.fragments.isEmpty }
    #expect(last?.fragments.first?.properties["name"] == "9")
    #expect(peer.syncs.last?.sequence == position.sequence + 9)
  }

  @Test("A connection that is lost with a group loses nothing")
  func cut() throws {
    let world = Self.world(sets: 8)
    let (reader, writer) = (Self.join(world), Self.join(world))
    func write(_ numbers: ClosedRange<Int>) {
      for number in numbers {
        writer.canvas.name = "\(number)"
        writer.canvas.shapes[0].x = Float(number)
        writer.flush()
        deliver(writer)
      }
    }
    write(1...20)
    let link = try #require(reader.link)
    // The client makes room, and a group is on its way.
    for _ in 0..<4 { world.deliver(link, toServer: false) }
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    #expect(link.toClient.contains { String(decoding: $0, as: UTF8.self).contains("[]") })
    world.cut(link)
    write(21...30)
    expectAgreement(world)
    #expect(reader.canvas.name == "30" && reader.tokens.count == 2 && reader.tokens[1] != nil)
  }

  @Test("Text with many escapes is sent whole rather than in a frame that is too large")
  func escapes() {
    var configuration = ServerEngine.Configuration()
    configuration.window.bytes = 64 * Self.kilobyte
    configuration.frameBytes = 8 * Self.kilobyte
    let world = InMemoryWorld(configuration: configuration)
    let shapes = (0..<60).map { _ in Shape() }
    world.canvas.shapes.append(contentsOf: shapes)
    let reader = Self.join(world)
    for (number, shape) in shapes.enumerated() {
      // Each character takes six bytes on the wire.
      world.canvas.name = "\(number)"
      shape.label = String(repeating: "\u{1}", count: 3 * Self.kilobyte)
      world.scope.flush()
    }
    expectAgreement(world)
    // As a group, what fits into the window takes six times as much.
    #expect(reader.largestFrame < 160 * Self.kilobyte)
  }
}
