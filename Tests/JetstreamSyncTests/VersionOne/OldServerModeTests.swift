import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A server of version 1 tells everything, whatever the mode: what is not wanted waits at the client.
@Suite("Sync modes towards a server of version 1")
struct OldServerModeTests {
  private let world = InMemoryWorld()
  private let client: WorldClient
  private let other: WorldClient

  init() {
    var configuration = ClientEngine.Configuration()
    configuration.highestVersion = 1
    client = world.addClient(configuration: configuration)
    other = world.addClient()
    for client in world.clients { client.join() }
    world.settle()
  }

  private func setMode(_ mode: SyncMode) {
    client.engine.setMode(mode, of: client.scope, now: world.now)
  }

  private var state: SyncState { client.engine.state(of: client.scope)! }

  private func expectEqual() {
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(other.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(client.engine.pendingCount == 0 && client.engine.checkInvariants() == [])
  }

  @Test("Push only: what is changed here goes out and is known to be decided; the rest waits")
  func pushOnly() {
    setMode(.pushOnly)
    other.canvas.name = "theirs"
    world.exchange()
    for number in 1...3 {
      client.canvas.selected = nil
      client.canvas.likes = number
      world.exchange()
    }
    #expect(other.canvas.likes == 3 && client.canvas.name == nil && client.canvas.likes == 3)
    #expect(state.pendingCount == 3 && state.decidedCount == 3 && state.unsentCount == 0)
    #expect(client.engine.checkInvariants() == [])
    setMode(.realtime)
    world.exchange()
    #expect(client.canvas.name == "theirs")
    expectEqual()
  }

  @Test("A session that is lost meanwhile: values are sent again, and all are equal in the end")
  func lostSession() {
    setMode(.pushOnly)
    other.canvas.name = "theirs"
    world.exchange()
    client.canvas.shapes.append(Shape())
    world.exchange()
    #expect(state.decidedCount == 1)
    world.cut(client.link!)
    world.server.advance(to: world.now + .seconds(3600))
    world.pass(5)
    #expect(client.engine.checkInvariants() == [])
    setMode(.realtime)
    world.settle()
    #expect(world.canvas.shapes.count == 1)
    expectEqual()
  }

  @Test("Manual: nothing goes out and nothing appears until a sync", arguments: [1, 3])
  func manual(rounds: Int) {
    setMode(.manual)
    for round in 1...rounds {
      client.canvas.name = "mine \(round)"
      other.canvas.shapes.append(Shape())
      world.exchange()
      world.pass(30)
      #expect(client.canvas.shapes.count == round - 1 && other.canvas.name != "mine \(round)")
      #expect(state.pendingCount == 1 && state.unsentCount == 1)
      var isDone = false
      client.engine.sync(client.scope, now: world.now) { if case .success = $0 { isDone = true } }
      world.exchange()
      #expect(isDone)
      expectEqual()
    }
  }

  @Test("Paused: nothing moves until it goes on")
  func paused() {
    setMode(.paused)
    client.canvas.name = "mine"
    other.canvas.likes = 3
    world.exchange()
    world.pass(60)
    #expect(other.canvas.name == nil && client.canvas.likes == 0 && state.unsentCount == 1)
    setMode(.realtime)
    world.exchange()
    expectEqual()
  }

  @Test("Polling: what others change appears with the next round")
  func polling() {
    setMode(.polling(every: .seconds(3)))
    world.pass(3)
    other.canvas.name = "theirs"
    client.canvas.likes = 2
    world.exchange()
    #expect(client.canvas.name == nil && world.canvas.likes == 0)
    world.pass(4)
    #expect(client.canvas.name == "theirs" && world.canvas.likes == 2)
    expectEqual()
  }

  @Test("While incoming changes are paused, what the server has decided is known")
  func incomingPaused() {
    other.scope.pauseIncoming()
    client.canvas.name = "theirs"
    world.exchange()
    other.canvas.likes = 7
    world.exchange()
    let state = other.engine.state(of: other.scope)!
    #expect(state.pendingCount == 1 && state.decidedCount == 1 && other.canvas.name == nil)
    other.scope.resumeIncoming()
    world.exchange()
    #expect(other.canvas.name == "theirs" && other.engine.pendingCount == 0)
    expectEqual()
  }
}
