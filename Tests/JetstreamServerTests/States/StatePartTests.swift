import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// A state that is too large for one message comes in several, and holds nothing else up.
@Suite("States that come in parts", .paced)
struct StatePartTests {
  private let world: InMemoryWorld
  private let writer: WorldClient
  private let reader: WorldClient
  private let notes = Canvas()
  private let notesScope: Scope

  init() {
    var configuration = ServerEngine.Configuration()
    configuration.stateBytes = 1_000
    configuration.frameBytes = 3_000
    world = InMemoryWorld(configuration: configuration)
    notesScope = Scope(name: "Notes", root: notes, ticker: world.serverTicker)
    world.moreScopes["Notes"] = notesScope
    for number in 0..<40 {
      let shape = Shape()
      shape.label = "\(number)"
      for _ in 0..<9 { shape.parts.append(Shape()) }
      world.canvas.shapes.append(shape)
    }
    world.scope.flush()
    func quick() -> ClientEngine.Configuration {
      var configuration = ClientEngine.Configuration()
      configuration.limits.acknowledgeAfter.messages = 4
      return configuration
    }
    writer = world.addClient(configuration: quick())
    writer.join()
    world.settle()
    reader = world.addClient(configuration: quick())
  }

  /// The reader has asked for the scope, and some parts have come.
  private func begin() throws -> InMemoryWorld.Link {
    reader.join()
    let link = try #require(reader.link)
    while parts.count < 5 {
      world.deliver(link, toServer: true)
      if !link.toClient.isEmpty { world.deliver(link, toServer: false) }
    }
    #expect(reader.fetchResult == nil && parts.allSatisfy(\.more))
    return link
  }

  private var parts: [ScopeState] {
    reader.heard.compactMap {
      if case .scopeState(let state) = $0, state.scopeIndex == 0 { state } else { nil }
    }
  }

  private func expectAgreement() {
    #expect(throws: Never.self) { try reader.fetchResult?.get() }
    for client in world.clients {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
      #expect(client.engine.checkInvariants() == [] && client.engine.pendingCount == 0)
    }
    #expect(reader.fetchResult != nil && world.endedSessions.isEmpty)
  }

  @Test("Every message and every frame is of the size that it should be, and the last one ends it")
  func sizes() throws {
    _ = try begin()
    world.settle()
    expectAgreement()
    #expect(parts.count > 36 && parts.dropLast().allSatisfy(\.more) && !parts.last!.more)
    #expect(parts.reduce(0) { $0 + $1.fragments.count } == 401)
    #expect(
      parts.allSatisfy { Message.scopeState($0).roughSize <= 1_128 || $0.fragments.count == 1 })
    #expect(reader.largestFrame < 6_000)
  }

  @Test("What another scope has to tell does not wait for the whole state")
  func others() throws {
    let link = try begin()
    let copy = Scope(name: "Notes", root: Canvas(), ticker: reader.ticker)
    reader.engine.fetch(copy, params: [:], now: world.now) { _ in }
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    let before = parts.count
    notes.name = "quick"
    notesScope.flush()
    while (copy.root as! Canvas).name == nil {
      if !link.toServer.isEmpty { world.deliver(link, toServer: true) }
      world.deliver(link, toServer: false)
    }
    #expect(parts.last!.more && parts.count - before <= 20)
    world.settle()
    expectAgreement()
  }

  @Test("What happens while a state is under way is told behind it")
  func changes() throws {
    let link = try begin()
    for number in 0..<20 {
      writer.canvas.shapes.remove(at: 0)
      writer.canvas.shapes.insert(Shape(), at: number)
      writer.canvas.likes += 1
      writer.flush()
      world.deliver(writer.link!, toServer: true)
    }
    #expect(reader.canvas.likes == 0 && !link.toClient.isEmpty)
    world.settle()
    expectAgreement()
    #expect(reader.canvas.likes == 20 && world.canvas.shapes.count == 40)
  }

  @Test("A connection that breaks between two parts loses none of them")
  func cut() throws {
    world.cut(try begin())
    writer.canvas.name = "meanwhile"
    writer.flush()
    world.settle()
    expectAgreement()
    #expect(reader.canvas.name == "meanwhile" && reader.tokens.count == 2)
  }

  @Test("A scope that is asked for in another way between two parts begins anew", arguments: 0..<4)
  func askedAgain(kind: Int) throws {
    let link = try begin()
    if kind > 1 {
      // It has the scope already, and loses faith in it.
      world.settle()
      reader.heard = []
      reader.engine.send(fetch: reader.engine.replicas[0], tell: .everything, isWhole: true)
      while parts.count < 5 {
        world.deliver(link, toServer: true)
        if !link.toClient.isEmpty { world.deliver(link, toServer: false) }
      }
    }
    reader.engine.setMode(.pushOnly, of: reader.scope, now: world.now)
    if kind % 2 == 1 { reader.engine.setMode(.realtime, of: reader.scope, now: world.now) }
    reader.canvas.likes += 3
    reader.flush()
    world.settle()
    reader.engine.setMode(.realtime, of: reader.scope, now: world.now)
    world.settle()
    expectAgreement()
    #expect(world.canvas.likes == 3)
  }
}
