import Jetstream
import JetstreamServer
import Testing

@Suite("Edits that cross on their way", .paced)
struct InFlightTests {
  private let world = InMemoryWorld()
  private let first: WorldClient
  private let second: WorldClient

  init() {
    for _ in 0..<3 { world.canvas.shapes.append(Shape()) }
    first = world.addClient()
    second = world.addClient()
    first.join()
    second.join()
    world.settle()
  }

  /// Both edit, then the server hears of them in the given order.
  private func cross(
    isFirstEarlier: Bool, _ one: (Canvas) -> Void, _ other: (Canvas) -> Void
  ) {
    one(first.canvas)
    other(second.canvas)
    first.scope.flush()
    second.scope.flush()
    let order = isFirstEarlier ? [first, second] : [second, first]
    for client in order {
      while !client.link!.toServer.isEmpty { world.deliver(client.link!, toServer: true) }
    }
    world.settle()
    for client in [first, second] {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    }
  }

  @Test("The later value wins everywhere", arguments: [true, false])
  func scalars(isFirstEarlier: Bool) {
    cross(
      isFirstEarlier: isFirstEarlier, { $0.shapes[0].x = 1 }, { $0.shapes[0].x = 2 })
    #expect(world.canvas.shapes[0].x == (isFirstEarlier ? 2 : 1))
  }

  @Test("The later reference wins everywhere", arguments: [true, false])
  func references(isFirstEarlier: Bool) {
    cross(
      isFirstEarlier: isFirstEarlier, { $0.selected = $0.shapes[1] },
      { $0.selected = $0.shapes[2] })
    #expect(world.canvas.selected === world.canvas.shapes[isFirstEarlier ? 2 : 1])
  }

  @Test("Both insertions stay, the removal too", arguments: [true, false])
  func collections(isFirstEarlier: Bool) {
    cross(
      isFirstEarlier: isFirstEarlier, { $0.shapes.append(Shape()) },
      {
        $0.shapes.insert(Shape(), at: 0)
        $0.shapes.remove($0.shapes[1])
      })
    #expect(world.canvas.shapes.count == 4)
  }

  @Test("A model is removed here and referred to there", arguments: [true, false])
  func removalAndReference(isFirstEarlier: Bool) {
    cross(
      isFirstEarlier: isFirstEarlier,
      {
        $0.shapes[0].x = 5
        $0.shapes.remove($0.shapes[0])
      },
      { $0.selected = $0.shapes[0] })
    #expect(world.canvas.shapes.count == 2 && world.canvas.selected?.x == 0)
  }

  @Test("What the app changed of a model that it had removed does not come back with it")
  func detachedEdits() {
    let shape = first.canvas.shapes[0]
    cross(
      isFirstEarlier: false,
      {
        $0.shapes.remove(shape)
        shape.x = 9
      },
      { $0.hidden.append($0.shapes[0]) })
    #expect(shape.x == 0 && first.canvas.hidden.first === shape)
  }

  @Test("A set is rejected in the middle of others")
  func rejectionInTheMiddle() {
    first.canvas.shapes[0].x = 1
    first.scope.flush()
    let gone = first.canvas.shapes[2]
    gone.x = 1
    first.scope.flush()
    first.canvas.shapes[1].x = 3
    first.scope.flush()
    world.canvas.shapes.remove(world.canvas.shapes[2])
    world.scope.flush()
    world.settle()
    #expect(first.rejections.count == 1 && first.canvas.shapes.map(\.x) == [1, 3])
    #expect(first.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("Edits made while the state is on its way are sent, and stay in front of it")
  func editsDuringFetch() {
    let late = world.addClient()
    late.join()
    for _ in 0..<3 { world.deliver(late.link!, toServer: true) }
    world.deliver(late.link!, toServer: false)
    late.canvas.name = "early"
    late.canvas.shapes.append(Shape())
    late.scope.flush()
    world.settle()
    #expect(world.canvas.name == "early" && second.canvas.name == "early")
    #expect(world.canvas.shapes.count == 4)
    #expect(late.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("The session is lost while sets are pending")
  func refetchWhilePending() {
    first.canvas.shapes[0].x = 1
    first.canvas.shapes.append(Shape())
    first.scope.flush()
    world.cut(first.link!)
    world.canvas.shapes[0].x = 2
    world.canvas.shapes.insert(Shape(), at: 0)
    world.scope.flush()
    world.advance(by: .seconds(601))
    world.settle()
    #expect(first.canvas.shapes.count == 5 && first.canvas.shapes[1].x == 1)
    #expect(first.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("What an immediate observer edits while others' changes are applied is synced")
  func immediateObservers() {
    let shape = first.canvas.shapes[0]
    let token = shape.observeChangeImmediately(first, \.x) { _, _, new in
      shape.label = "x is \(new)"
    }
    second.canvas.shapes[0].x = 4
    second.scope.flush()
    world.settle()
    #expect(world.canvas.shapes[0].label == "x is 4.0")
    #expect(second.canvas.shapes[0].label == "x is 4.0")
    token.cancel()
  }

  // MARK: Flicker

  @Test(
    "What an immediate observer makes a set of while others' changes are applied is the same everywhere",
    arguments: [false, true], [false, true])
  func immediateSets(onServer: Bool, byModify: Bool) {
    let (canvas, scope) = onServer ? (world.canvas, world.scope) : (first.canvas, first.scope)
    let shape = canvas.shapes[0]
    let token = shape.observeChangeImmediately(self.world, \.x) { _, _, _ in
      if byModify {
        scope.modify { shape.y = 5 }
      } else {
        shape.y = 5
        scope.flush()
      }
    }
    second.canvas.shapes[0].x = 1
    second.canvas.shapes[0].y = 3
    second.canvas.shapes[0].label = "new"
    second.scope.flush()
    world.settle()
    token.cancel()
    #expect(world.canvas.shapes[0].y == 5 && world.canvas.shapes[0].label == "new")
    for client in [first, second] {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    }
  }

  @Test("Observers of a property whose value is hidden by a pending edit are not called")
  func noFlicker() {
    let shape = first.canvas.shapes[0]
    var seen: [Float] = []
    shape.x = 1
    first.scope.flush()
    let token = shape.observeChangeImmediately(first, \.x) { _, _, new in seen.append(new) }
    second.canvas.shapes[0].x = 2
    second.scope.flush()
    while !second.link!.toServer.isEmpty { world.deliver(second.link!, toServer: true) }
    while !first.link!.toClient.isEmpty { world.deliver(first.link!, toServer: false) }
    #expect(seen.isEmpty && shape.x == 1)
    world.settle()
    #expect(seen.isEmpty && second.canvas.shapes[0].x == 1)
    second.canvas.shapes[0].x = 3
    second.scope.flush()
    world.settle()
    #expect(seen == [3])
    token.cancel()
  }
}
