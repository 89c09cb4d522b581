import Jetstream
import Testing

@Suite("Incoming messages can be held back")
struct PauseTests {
  @Test("Two pauses and one resume still hold; the second resume applies in order")
  func countedPauses() {
    let world = InMemoryWorld()
    world.canvas.shapes.append(Shape())
    let client = world.addClient()
    client.join()
    world.settle()
    client.scope.pauseIncoming()
    client.scope.pauseIncoming()
    var seen: [Float] = []
    client.canvas.shapes[0].observeChangeImmediately(client, \.x) { _, _, new in seen.append(new) }
    for value in [1, 2, 3] as [Float] {
      world.canvas.shapes[0].x = value
      world.settle()
    }
    client.scope.resumeIncoming()
    #expect(client.scope.isIncomingPaused)
    #expect(seen.isEmpty)
    client.scope.resumeIncoming()
    #expect(seen == [3], "what has come meanwhile is one change, to the last value")
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("Local changes are sent while paused, and decided after")
  func localChangesGoOn() {
    let world = InMemoryWorld()
    let client = world.addClient()
    client.join()
    world.settle()
    client.scope.pauseIncoming()
    client.canvas.name = "mine"
    client.scope.flush()
    client.link.map { world.deliver($0, toServer: true) }
    #expect(world.canvas.name == "mine")
    client.link.map { world.deliver($0, toServer: false) }
    #expect(client.engine.pendingCount == 1)
    client.scope.resumeIncoming()
    #expect(client.engine.pendingCount == 0)
  }

  @Test(
    "Local changes are sent while paused, also in another session",
    arguments: [false, true])
  func anotherSession(isDecided: Bool) throws {
    let world = InMemoryWorld()
    let client = world.addClient()
    client.join()
    world.settle()
    client.scope.pauseIncoming()
    client.canvas.likes += 1
    client.scope.flush()
    let link = try #require(client.link)
    if isDecided { world.deliver(link, toServer: true) }
    world.cut(link)
    world.server.advance(to: world.now + .seconds(3600))
    world.canvas.name = "theirs"
    world.pass(5)
    #expect(client.tokens.count > 1 && world.server.sessionCount == 1)
    client.canvas.likes += 2
    world.exchange()
    #expect(world.canvas.likes == 3)
    #expect(client.canvas.name == nil && client.engine.pendingCount == 2)
    client.scope.resumeIncoming()
    world.settle()
    #expect(client.engine.pendingCount == 0)
    #expect(client.canvas.name == "theirs" && client.canvas.likes == 3)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }
}
