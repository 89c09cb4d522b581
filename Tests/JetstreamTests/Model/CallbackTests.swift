import Testing

@testable import Jetstream

/// What may be done inside of a callback, for each way of observing.
#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct CallbackTests {
  let world: ObservationWorld
  let listener = Listener()

  init() { world = ObservationWorld() }

  @Test("Each kind is told once about one thing", arguments: ObservationKind.allCases)
  func once(kind: ObservationKind) {
    world.observe(kind, listener) { $0.called() }
    for round in 1...3 {
      world.trigger(kind)
      #expect(listener.count == round)
    }
    world.scope.ticker.tick()
    #expect(listener.count == 3)
  }

  @Test("Cancelling itself ends it", arguments: ObservationKind.allCases)
  func cancelSelf(kind: ObservationKind) {
    var token: ObservationToken?
    token = world.observe(kind, listener) { me in
      me.called()
      token?.cancel()
      token?.cancel()
    }
    for _ in 0..<3 { world.trigger(kind) }
    #expect(listener.count == 1)
    #expect(world.entries == 0)
  }

  @Test(
    "Cancelled by an earlier one it is not called any more",
    arguments: ObservationKind.allCases)
  func cancelOthers(kind: ObservationKind) {
    var tokens: [ObservationToken] = []
    tokens.append(world.observe(kind, listener) { $0.log.append("before") })
    tokens.append(
      world.observe(kind, listener) { me in
        me.log.append("middle")
        tokens[0].cancel()
        tokens[2].cancel()
      })
    tokens.append(world.observe(kind, listener) { $0.log.append("after") })
    world.trigger(kind)
    #expect(listener.log == ["before", "middle"])
    world.trigger(kind)
    #expect(listener.log == ["before", "middle", "middle"])
  }

  @Test(
    "An earlier callback may remove all of an observer", arguments: ObservationKind.allCases)
  func removeObserver(kind: ObservationKind) {
    let other = Listener()
    world.observe(kind, listener) { [world] me in
      me.called()
      world.model.removeObservers(other)
    }
    world.observe(kind, other) { $0.called() }
    world.trigger(kind)
    world.trigger(kind)
    #expect(listener.count == 2 && other.count == 0)
  }

  @Test(
    "One that is added is told from the next time on", arguments: ObservationKind.allCases)
  func add(kind: ObservationKind) {
    var isAdded = false
    world.observe(kind, listener) { [world] me in
      me.log.append("old")
      guard !isAdded else { return }
      isAdded = true
      world.observe(kind, me) { $0.log.append("new") }
    }
    world.trigger(kind)
    world.scope.ticker.tick()
    #expect(listener.log == ["old"])
    world.trigger(kind)
    #expect(listener.log == ["old", "old", "new"])
  }

  @Test(
    "Doing again what is observed is told at once, or in the next tick",
    arguments: ObservationKind.allCases)
  func repeats(kind: ObservationKind) {
    world.observe(kind, listener) { [world] me in
      me.called()
      guard me.count < 3 else { return }
      if kind.isLeaving { world.root.items.append(world.model) }
      world.write(kind)
    }
    world.trigger(kind)
    #expect(listener.count == (kind.isCoalesced ? 1 : 3))
    world.scope.ticker.tick()
    #expect(listener.count == (kind.isCoalesced ? 2 : 3))
    for _ in 0..<3 { world.scope.ticker.tick() }
    #expect(listener.count == 3)
  }

  @Test(
    "Writing something else reaches its observers and the change set",
    arguments: ObservationKind.allCases)
  func writesOther(kind: ObservationKind) {
    world.observe(kind, listener) { [world] me in
      if me.count == 0 { world.root.label = "written" }
      me.called()
    }
    let other = Listener()
    world.root.observeChange(other, \.label, isolation: here()) { $0.called() }
    world.root.observeChangeImmediately(other, \.label) { me, _, new in me.log.append(new) }
    let sets = world.scope.changeSets {
      world.trigger(kind)
      world.scope.ticker.tick()
    }
    #expect(other.count == 1 && other.log == ["written"])
    #expect(sets.contains { $0.fragments.contains { $0.properties["label"] == "written" } })
  }

  @Test(
    "Taking the observed model out of the tree; the others are told all the same",
    arguments: ObservationKind.allCases)
  func removesModel(kind: ObservationKind) {
    let other = Listener()
    var isFirst = true
    world.observe(kind, listener) { [world] me in
      me.called()
      guard isFirst else { return }
      isFirst = false
      world.model.detach()
    }
    world.observe(kind, other) { $0.called() }
    world.trigger(kind)
    world.scope.flush()
    #expect(listener.count == 1 && other.count == 1)
    #expect((world.model.scope == nil) == !kind.isLeaving)
    #expect(
      world.scope.count == (kind.isLeaving ? 3 : 1) + world.model.items.count
        * (kind.isLeaving ? 1 : 0))
    world.model.detach()
    world.root.items.append(world.model)
    world.scope.flush()
    listener.count = 0
    world.trigger(kind)
    #expect(listener.count == 1)
  }

  @Test(
    "An observer released inside its own callback is told no more and leaves nothing",
    arguments: ObservationKind.allCases)
  func releasesItself(kind: ObservationKind) {
    var calls = 0
    var temporary: Listener? = Listener()
    weak let weakListener = temporary
    world.observe(kind, temporary!) { _ in
      calls += 1
      temporary = nil
    }
    world.trigger(kind)
    #expect(calls == 1)
    #expect(weakListener == nil)
    world.trigger(kind)
    #expect(calls == 1)
    #expect(world.entries == 0)
  }

  @Test(
    "An observer released by an earlier callback is not told, not even this time",
    arguments: ObservationKind.allCases)
  func releasesOther(kind: ObservationKind) {
    var other: Listener? = Listener()
    var calls = 0
    world.observe(kind, listener) { me in
      me.called()
      other = nil
    }
    world.observe(kind, other!) { _ in calls += 1 }
    world.trigger(kind)
    world.trigger(kind)
    #expect(listener.count == 2 && calls == 0)
    #expect(other == nil)
  }

  @Test(
    "Observers that are gone are let go by the next delivery",
    arguments: ObservationKind.allCases)
  func goneObserver(kind: ObservationKind) {
    var temporary: Listener? = Listener()
    weak var weakCaptured: Node?
    do {
      let captured = Node("captured")
      weakCaptured = captured
      world.observe(kind, temporary!) { _ in captured.number += 1 }
    }
    world.trigger(kind)
    #expect(weakCaptured?.number == 1)
    temporary = nil
    world.trigger(kind)
    #expect(weakCaptured == nil)
    #expect(world.entries == 0)
  }

  @Test(
    "Observers that come and go leave nothing behind, although nothing is delivered",
    arguments: ObservationKind.allCases)
  func shortLived(kind: ObservationKind) {
    for _ in 0..<1_000 { world.observe(kind, Listener()) { $0.called() } }
    #expect(world.entries < 100)
    world.observe(kind, listener) { $0.called() }
    world.trigger(kind)
    #expect(listener.count == 1)
    // A composite waits on the two models that it reads.
    #expect(world.entries <= (kind == .composite ? 3 : 2))
  }

  @Test(
    "Muted, it is not told; others are, and it is told again from then on",
    arguments: ObservationKind.allCases)
  func muted(kind: ObservationKind) {
    let other = Listener()
    let token = world.observe(kind, listener) { $0.called() }
    world.observe(kind, other) { $0.called() }
    world.scope.withoutNotifying([token]) { world.write(kind) }
    world.scope.ticker.tick()
    #expect(listener.count == 0 && other.count == 1)
    world.trigger(kind)
    #expect(listener.count == 1 && other.count == 2)
    token.cancel()
    world.trigger(kind)
    #expect(listener.count == 1 && other.count == 3)
  }
}
