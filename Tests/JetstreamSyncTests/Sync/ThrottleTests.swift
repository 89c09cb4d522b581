import Foundation
import Jetstream
import JetstreamServer
import Testing

private final class Gauge: ModelObject {
  @Property([.minSyncInterval(.milliseconds(50)), .wireName("v")]) var value = 0
  @Property([.counter, .minSyncInterval(.milliseconds(50))]) var tally = 0
  @Property(.wireName("remark")) var note = ""
  @WeakReference(.wireName("follows")) var next: Gauge?
  @Property(.wireName("pieces")) var parts: ModelArray<Gauge> = []
}

@Suite("Throttled, renamed and weakly referring properties between server and clients")
struct ThrottleTests {
  private let world = InMemoryWorld()
  private let server = Gauge()
  private let serverScope: Scope

  init() {
    serverScope = Scope(name: "Gauges", root: server, ticker: world.serverTicker)
    world.moreScopes["Gauges"] = serverScope
  }

  private func join() -> Scope {
    let client = world.addClient()
    client.join()
    world.settle()
    let scope = Scope(name: "Gauges", root: Gauge(), ticker: client.ticker)
    client.engine.fetch(scope, params: [:], now: world.now) { _ in }
    deliver()
    return scope
  }

  /// Delivers what is on its way, without making anybody hand out what was collected.
  private func deliver() {
    while let link = world.links.first(where: { !$0.toServer.isEmpty || !$0.toClient.isEmpty }) {
      world.deliver(link, toServer: !link.toServer.isEmpty)
    }
  }

  private func advance(_ milliseconds: Int) {
    for _ in 0..<milliseconds {
      world.advance(by: .milliseconds(1))
      deliver()
    }
  }

  private func gauge(_ scope: Scope) -> Gauge { scope.root as! Gauge }

  @Test("wire names go both ways, and the server's errors speak of them")
  func wireNames() {
    let scope = join()
    gauge(scope).note = "hello"
    gauge(scope).parts.append(Gauge())
    advance(20)
    #expect(server.note == "hello" && server.parts.count == 1)
    server.note = "back"
    advance(20)
    #expect(gauge(scope).note == "back")
    #expect(scope.canonicalJSON == serverScope.canonicalJSON)
    #expect(scope.canonicalJSON.contains(#""remark":"back""#))
  }

  @Test("a client that joins while the server holds a value back is told the value that counts")
  func joining() {
    let early = join()
    server.value = 1
    advance(10)
    server.value = 2
    advance(10)
    let late = join()
    #expect(gauge(late).value == 1)
    server.value = 1
    advance(200)
    #expect(gauge(early).value == 1 && gauge(late).value == 1)
    #expect(late.canonicalJSON == serverScope.canonicalJSON)
  }

  @Test("what a client holds back of a counter adds up with what others have added in front of it")
  func counter() {
    let scope = join()
    gauge(scope).tally = 1
    world.advance(by: .milliseconds(10))
    gauge(scope).tally += 2
    // The server's addition comes before the client's first one, which is still on its way.
    server.tally += 10
    serverScope.flush()
    advance(200)
    #expect(server.tally == 13)
    #expect(gauge(scope).tally == 13)
    #expect(scope.canonicalJSON == serverScope.canonicalJSON)
  }

  @Test(
    "a client's change of a value that the server holds back goes to all, and so does the server's")
  func contested() {
    let a = join()
    let b = join()
    server.value = 1
    advance(10)
    server.value = 2
    advance(5)
    gauge(a).value = 7
    advance(15)
    #expect(gauge(b).value == 7)
    #expect(server.value == 2)
    server.value = 7
    advance(200)
    for scope in [a, b] { #expect(scope.canonicalJSON == serverScope.canonicalJSON) }
    #expect(server.value == 7)
  }

  @Test("A value that was held back when the scope was fetched gives way to the server's")
  func heldBackBeforeFetch() {
    server.value = 7
    serverScope.flush()
    let client = world.addClient()
    client.join()
    world.settle()
    let scope = Scope(name: "Gauges", root: Gauge(), ticker: client.ticker)
    gauge(scope).value = 1
    advance(20)
    gauge(scope).value = 2
    advance(15)
    client.engine.fetch(scope, params: [:], now: world.now) { _ in }
    deliver()
    advance(200)
    #expect(gauge(scope).value == 7 && server.value == 7)
  }

  @Test("A sync sends a value that waits for its interval to pass")
  func sync() throws {
    let scope = join()
    let engine = try #require(world.clients.last?.engine)
    engine.setMode(.paused, of: scope, now: world.now)
    deliver()
    gauge(scope).value = 1
    advance(20)
    gauge(scope).value = 2
    var result: Result<Void, SyncError>?
    engine.sync(scope, now: world.now) { result = $0 }
    deliver()
    try result?.get()
    #expect(result != nil && server.value == 2 && engine.pendingCount == 0)
  }

  @Test(
    "all write a throttled value and a counter, seeded: all end with the same, and each addition counts",
    arguments: [7, 8, 9] as [UInt64])
  func seeded(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var total = 0
    let scopes = [serverScope, join(), join()]
    for _ in 0..<400 {
      let scope = scopes.randomElement(using: &generator)!
      let gauge = gauge(scope)
      switch Int.random(in: 0..<12, using: &generator) {
      case 0: gauge.parts.append(Gauge())
      case 1: if let part = gauge.parts.last { gauge.parts.remove(part) }
      case 2: gauge.note = "\(Int.random(in: 0..<9, using: &generator))"
      case 3: gauge.parts.first?.value = .random(in: 0..<3, using: &generator)
      case 4: gauge.next = gauge.parts.randomElement(using: &generator)
      case 5, 6, 7:
        let step = Int.random(in: -9..<10, using: &generator)
        gauge.tally += step
        total += step
      default: gauge.value = .random(in: 0..<3, using: &generator)
      }
      advance(.random(in: 0..<12, using: &generator))
    }
    advance(500)
    for scope in scopes {
      #expect(scope.canonicalJSON == serverScope.canonicalJSON, "seed \(seed)")
      #expect(!scope.hasCollectedChanges, "seed \(seed)")
      #expect(self.gauge(scope).tally == total, "seed \(seed)")
    }
  }
}
