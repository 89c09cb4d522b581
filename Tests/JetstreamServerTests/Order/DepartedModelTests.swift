import Foundation
import Jetstream
import JetstreamServer
import Testing

private final class Depot: ModelObject {
  @Property var note = 0
  @Property var crates: ModelArray<Crate> = []
}

private final class Crate: ModelObject {
  @Property var parts: ModelArray<Part> = []
  @Property var labels: ModelDictionary<String, Part> = [:]
}

private final class Part: ModelObject {
  @Property var size = 0
}

/// A client keeps models that have left its scope while the server may still move them to where they stay.
@Suite("Departed models of a client", .paced)
struct DepartedModelTests {
  private let world = InMemoryWorld()
  private let client: WorldClient
  private let depot = Depot()
  /// The root of the client.
  private let local: Depot

  init() {
    let scope = Scope(name: "Canvas", root: depot, ticker: world.serverTicker)
    for _ in 0..<2 { depot.crates.append(Crate()) }
    for size in 1...2 {
      let part = Part()
      part.size = size
      depot.crates[0].parts.append(part)
    }
    world.replaced = scope
    world.server.host(scope, unknown: .reject)
    var configuration = ClientEngine.Configuration()
    configuration.limits.departedModels = 0
    local = Depot()
    client = world.addClient(configuration: configuration, root: local)
    client.join()
    world.settle()
  }

  /// Has the client hear what the server says, while what it says itself is on its way.
  private func hear() {
    world.replaced?.flush()
    guard let link = client.link else {
      Issue.record("The client is not connected.")
      return
    }
    while !link.toClient.isEmpty { world.deliver(link, toServer: false) }
  }

  /// Moves the first part on the server to the crate that the client still has, and expects both to end equal.
  private func expectMovedPart() {
    let part = depot.crates[0].parts[0]
    depot.crates[1].parts.append(part)
    depot.crates[0].parts.remove(part)
    hear()
    #expect(local.crates.last?.parts.map(\.size) == [1])
    world.settle()
    #expect(client.scope.canonicalJSON == world.replaced?.canonicalJSON)
    world.pass(21)
    #expect(client.repaired.isEmpty && depot.crates.last?.parts.map(\.size) == [1])
  }

  @Test(
    "A part of a crate that the app empties and removes at once is found when it is moved elsewhere"
  )
  func emptied() {
    local.crates[0].parts.removeAll()
    local.crates.remove(at: 0)
    client.scope.flush()
    depot.note = 1
    hear()
    expectMovedPart()
  }

  @Test(
    "A part of a crate whose removal is in no change set yet is found when it is moved elsewhere")
  func collected() {
    local.note = 1
    client.scope.flush()
    world.server.advance(to: world.now + .seconds(20))
    local.crates.remove(at: 0)
    let frames = client.heard.count
    hear()
    guard case .ping? = client.heard.last, client.heard.count > frames else {
      Issue.record("The client has heard no ping.")
      return
    }
    expectMovedPart()
  }

  @Test(
    "A part that is missing from a crate that the app puts back is found when it is moved elsewhere",
    arguments: [false, true])
  func putBack(isSealed: Bool) {
    let crate = local.crates[0]
    local.crates.remove(at: 0)
    client.scope.flush()
    crate.parts.remove(at: 0)
    if isSealed {
      local.crates.insert(crate, at: 0)
      client.scope.flush()
      depot.note = 1
      hear()
    } else {
      world.server.advance(to: world.now + .seconds(20))
      local.crates.insert(crate, at: 0)
      hear()
    }
    expectMovedPart()
  }

  @Test("A crate that comes back has the entry that the app has put into it before it left")
  func comesBack() {
    let crate = local.crates[0]
    crate.labels["a"] = crate.parts[0]
    client.scope.flush()
    let other = depot.crates.remove(at: 0)
    hear()
    #expect(local.crates.count == 1)
    depot.crates.append(other)
    hear()
    #expect(local.crates.last === crate)
    #expect(local.crates.last?.labels["a"]?.size == 1)
    world.settle()
    #expect(depot.crates.last?.labels["a"]?.size == 1)
    #expect(client.scope.canonicalJSON == world.replaced?.canonicalJSON)
    world.pass(21)
    #expect(client.repaired.isEmpty)
  }

  @Test("Departed models that no pending change set needs are dropped while others are pending")
  func dropped() {
    local.note = 1
    client.scope.flush()
    depot.crates.remove(at: 0)
    hear()
    #expect(local.crates.count == 1)
    #expect(client.engine.restingTables["graveyard"] == 0)
    #expect(client.engine.pendingCount == 1)
  }

  @Test("Departed models are dropped although an observer changes something with each of them")
  func observed() {
    local.observeCollectionRemove(local, \.crates) { depot, _, _ in depot.note += 1 }
    for crate in Array(depot.crates) {
      depot.crates.remove(crate)
      hear()
    }
    #expect(local.crates.isEmpty && local.note == 2 && client.engine.pendingCount > 0)
    // The last one is dropped with the next batch.
    #expect(client.engine.restingTables["graveyard"] == 1)
  }
}
