import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A model that leaves takes its unsent changes with it. When somebody else puts it back, everybody
/// has to show the values that the server has.
@Suite("Models that return")
struct RevivalTests {
  private let world = InMemoryWorld()
  private let client: WorldClient
  private var theirs: Shape { world.canvas.shapes[0] }
  private var mine: Shape { client.canvas.shapes[0] }

  init() {
    world.canvas.shapes.append(Shape())
    client = world.addClient()
    client.join()
    world.settle()
  }

  private func expectEqual(x: Float) {
    world.settle()
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(world.canvas.hidden.map(\.x) == [x])
  }

  @Test("Changed and removed here, kept there")
  func removedByClient() {
    mine.x = 97
    client.canvas.shapes.remove(mine)
    client.scope.flush()
    world.canvas.hidden.append(theirs)
    world.scope.flush()
    expectEqual(x: 0)
  }

  @Test("Changed, sent, changed again and removed here, kept there")
  func removedByClientBehindPending() {
    mine.x = 50
    client.scope.flush()
    mine.x = 97
    client.canvas.shapes.remove(mine)
    client.scope.flush()
    world.canvas.hidden.append(theirs)
    world.scope.flush()
    expectEqual(x: 50)
  }

  @Test("Changed and removed here, changed and kept there")
  func changedByServerMeanwhile() {
    mine.x = 97
    client.canvas.shapes.remove(mine)
    client.scope.flush()
    world.canvas.hidden.append(theirs)
    theirs.x = 3
    world.scope.flush()
    expectEqual(x: 3)
  }

  @Test("Changed and removed by the server, moved by a client")
  func removedByServer() {
    theirs.x = 97
    world.canvas.shapes.remove(theirs)
    world.scope.flush()
    client.canvas.hidden.append(mine)
    client.canvas.shapes.remove(mine)
    client.scope.flush()
    expectEqual(x: 97)
  }
}
