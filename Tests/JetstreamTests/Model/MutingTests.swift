import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct MutingTests {
  let world: ObservationWorld
  let listener = Listener()

  init() { world = ObservationWorld() }

  @Test("What had changed before is told although the token is muted afterwards")
  func before() {
    let token = world.model.observeChange(listener, \.number, isolation: here()) { $0.called() }
    world.model.number = 1
    world.scope.withoutNotifying([token]) { world.model.number = 2 }
    #expect(listener.count == 1)
    world.scope.ticker.tick()
    #expect(listener.count == 1)
  }

  @Test("Old values and differences count from the end of the muted change")
  func values() {
    var content = Array(world.model.items)
    let model = world.model
    let tokens = [
      model.observeChange(listener, \.number, isolation: here()) { me, old, new in
        me.log.append("\(old)>\(new)")
      },
      model.observeChangeImmediately(listener, \.doubled) { me, old, new in
        me.log.append("\(old):\(new)")
      },
      model.observeDifference(listener, \.items, isolation: here()) { _, difference in
        content = content.applying(difference)!
      },
    ]
    let given = Node("given")
    world.scope.withoutNotifying(tokens) {
      model.number = 5
      model.items.append(given)
    }
    #expect(listener.log.isEmpty && content.isEmpty)
    content = [given]
    model.number = 6
    model.items.append(Node("more"))
    world.scope.ticker.tick()
    #expect(listener.log == ["10:12", "5>6"])
    #expect(content == Array(model.items))
  }

  @Test("Nested, and ended by an error")
  func nested() {
    struct Failure: Error {}
    let first = world.model.signals.onPropertyChange.listen(listener) { me, _ in
      me.log.append("first")
    }
    let second = world.model.signals.onPropertyChange.listen(listener) { me, _ in
      me.log.append("second")
    }
    #expect(throws: Failure.self) {
      try world.scope.withoutNotifying([first]) {
        world.scope.withoutNotifying([first, second]) { world.model.number = 1 }
        world.model.number = 2
        throw Failure()
      }
    }
    #expect(listener.log == ["second"])
    world.model.number = 3
    #expect(listener.log == ["second", "first", "second"])
  }

  @Test("The change set contains what the muted observer was not told")
  func changeSet() {
    let token = world.model.observeChange(listener, isolation: here()) { $0.called() }
    let sets = world.scope.changeSets {
      world.scope.withoutNotifying([token]) { world.model.number = 9 }
    }
    #expect(sets.map { $0.fragments.map(\.properties) } == [[["number": 9]]])
    #expect(listener.count == 0)
  }
}
