import Jetstream
import JetstreamServer
import Testing

/// A client that takes in less than there is to tell is told the rest when it has caught up.
@Suite("Clients that are slow", .paced)
struct SlowClientTests {
  private let world: InMemoryWorld
  private let writer: WorldClient
  private let reader: WorldClient

  init() {
    var configuration = ServerEngine.Configuration()
    configuration.keptLimit.messages = 40
    world = InMemoryWorld(configuration: configuration)
    // Each has a name of its own.
    func quick() -> ClientEngine.Configuration {
      var configuration = ClientEngine.Configuration()
      configuration.limits.acknowledgeAfter.messages = 4
      configuration.limits.sendWindow.messages = 8
      return configuration
    }
    writer = world.addClient(configuration: quick())
    reader = world.addClient(configuration: quick())
    for client in world.clients { client.join() }
    world.settle()
  }

  /// Everything between one client and the server arrives.
  private func deliver(_ client: WorldClient) {
    while let link = client.link, !link.toServer.isEmpty || !link.toClient.isEmpty {
      if !link.toServer.isEmpty { world.deliver(link, toServer: true) }
      if !link.toClient.isEmpty { world.deliver(link, toServer: false) }
    }
  }

  private func write(_ numbers: Range<Int>) {
    for number in numbers {
      writer.canvas.name = "\(number)"
      writer.canvas.shapes.append(Shape())
      writer.flush()
      deliver(writer)
    }
  }

  private func expectAgreement(_ numbers: Int) {
    #expect(reader.canvas.name == writer.canvas.name && writer.canvas.name == "\(numbers - 1)")
    #expect(reader.canvas.shapes.map(\.uuid) == world.canvas.shapes.map(\.uuid))
    #expect(writer.canvas.shapes.map(\.uuid) == world.canvas.shapes.map(\.uuid))
    #expect(world.endedSessions.isEmpty && reader.tokens == [nil])
    #expect(reader.engine.checkInvariants() == [] && reader.engine.pendingCount == 0)
  }

  @Test("Its session goes on, the server keeps few messages for it, and nothing is missing")
  func slowReader() {
    write(0..<200)
    #expect(reader.link!.toClient.count <= 20)
    #expect(world.endedSessions.isEmpty && reader.canvas.name == nil)
    world.settle()
    expectAgreement(200)
    #expect(world.now < .seconds(9), "it was told at once")
  }

  @Test("Answers to its own sets keep their place among what it is told late")
  func ownSets() {
    write(0..<30)
    for number in 0..<6 {
      reader.canvas.shapes.insert(Shape(), at: 0)
      reader.flush()
      while !reader.link!.toServer.isEmpty { world.deliver(reader.link!, toServer: true) }
      write((30 + 10 * number)..<(40 + 10 * number))
    }
    #expect(reader.engine.pendingCount == 6 && reader.link!.toClient.count <= 20)
    world.settle()
    expectAgreement(90)
    #expect(world.canvas.shapes.count == 96 && world.now < .seconds(9))
  }

  @Test("Who goes on sending and takes nothing in loses its session")
  func greedyClient() {
    var greedy = ClientEngine.Configuration()
    greedy.limits.sendWindow.messages = 1000
    let client = world.addClient(configuration: greedy)
    client.join()
    world.settle()
    write(0..<60)
    #expect(world.endedSessions.isEmpty)
    for number in 0..<60 {
      client.canvas.likes = number + 1
      client.flush()
    }
    while let link = client.link, !link.toServer.isEmpty, link.serverClose == nil {
      world.deliver(link, toServer: true)
    }
    #expect(world.endedSessions.count == 1 && client.link?.serverClose?.code == 4097)
    world.settle()
    #expect(world.canvas.likes == 60 && client.canvas.name == "59")
  }

  @Test("A connection that breaks while it is behind loses nothing")
  func cut() {
    write(0..<60)
    world.cut(reader.link!)
    write(60..<120)
    world.settle()
    #expect(reader.canvas.name == "119" && world.endedSessions.isEmpty)
    #expect(reader.canvas.shapes.map(\.uuid) == world.canvas.shapes.map(\.uuid))
  }

  @Test("What a client that comes back has missed may be more than a session keeps")
  func returns() {
    reader.wantsOnline = false
    reader.engine.close()
    world.settle()
    write(0..<300)
    reader.wantsOnline = true
    reader.join()
    world.settle()
    #expect(reader.canvas.name == "299")
    #expect(reader.canvas.shapes.map(\.uuid) == world.canvas.shapes.map(\.uuid))
    #expect(world.endedSessions.isEmpty)
  }

  @Test("A scope that is asked for again while the server writes its history is told from there")
  func askedAgain() throws {
    var made = 0
    try world.server.host(world.scope, history: nil) { _ in made += 1 }
    func store() { world.server.stored(made, of: world.scope) }
    func write(_ numbers: Range<Int>) {
      for number in numbers {
        self.write(number..<number + 1)
        store()
        deliver(writer)
      }
    }
    write(0..<24)
    reader.canvas.likes = 5
    reader.flush()
    let link = try #require(reader.link)
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    store()
    #expect(world.canvas.likes == 5 && reader.engine.pendingCount == 1)
    // Room is made for more, and the scope is asked for again, before the next record is kept.
    self.write(24..<25)
    while !link.toClient.isEmpty { world.deliver(link, toServer: false) }
    #expect(reader.engine.pendingCount == 1)
    reader.engine.sync(reader.scope, now: world.now) { _ in }
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    store()
    deliver(reader)
    store()
    world.settle()
    #expect(reader.rejections.isEmpty && reader.canvas.likes == 5)
    expectAgreement(25)
  }

  @Test("A client too far behind in both of its scopes fetches them again in its session")
  func forgotten() throws {
    let notes = Canvas()
    let other = Scope(name: "Notes", root: notes, ticker: world.serverTicker)
    world.moreScopes["Notes"] = other
    let copy = Canvas()
    let scope = Scope(name: "Notes", root: copy, ticker: reader.ticker)
    reader.engine.fetch(scope, params: [:], now: world.now) { _ in }
    world.settle()
    // More than twice what the stream of a scope keeps.
    for number in 1...9000 {
      world.canvas.likes = number
      notes.likes = number
      world.scope.flush()
      other.flush()
      if number.isMultiple(of: 10) { deliver(writer) }
    }
    #expect(world.endedSessions.isEmpty && reader.link!.toClient.count <= 20)
    reader.canvas.name = "mine"
    reader.flush()
    world.settle()
    #expect(world.endedSessions.isEmpty && reader.tokens == [nil])
    #expect(world.now < .seconds(9), "it was told at once")
    #expect(reader.canvas.likes == 9000 && copy.likes == 9000)
    #expect(world.canvas.name == "mine" && reader.canvas.name == "mine")
    #expect(reader.engine.checkInvariants() == [] && reader.engine.pendingCount == 0)
    // Both scopes live on.
    write(0..<3)
    notes.name = "again"
    other.flush()
    world.settle()
    #expect(reader.canvas.name == "2" && copy.name == "again")
  }

  @Test("One that is too far behind fetches again, also if replies have brought it to the end")
  func endedByReplies() {
    var configuration = ServerEngine.Configuration()
    configuration.keptLimit.messages = 40
    configuration.streamLimit.sets = 2
    let world = InMemoryWorld(configuration: configuration)
    let writer = RawPeer.joined(world, protocol: 2)
    let peer = RawPeer.joined(world, protocol: 2)
    func write(_ count: Int, _ peer: RawPeer) {
      for number in 1...count {
        peer.send([
          SyncFragment(
            .change, uuid: world.canvas.uuid, className: "Canvas",
            properties: ["likes": .integer(Int64(number))])
        ])
      }
    }
    // More than may wait for it: some of the first, and its own replies.
    for _ in 0..<30 {
      write(1, writer)
      writer.acknowledge()
    }
    write(1, peer)
    for _ in 0..<10 {
      write(1, writer)
      writer.acknowledge()
    }
    peer.acknowledge()
    peer.take()
    let told = peer.messages.compactMap {
      if case .ping(let ping) = $0 { ping.told.first?.sequence } else { nil }
    }
    #expect(told.last == 42, "\(told)")
  }
}
