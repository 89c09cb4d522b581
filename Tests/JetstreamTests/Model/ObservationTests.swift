import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct ObservationTests {
  let canvas = Canvas()
  let shape = Shape()
  let scope: Scope
  let listener = Listener()

  init() {
    canvas.shapes = [shape]
    scope = manualScope(canvas)
  }

  @Test("Observing all properties gives one call a tick")
  func allProperties() {
    shape.observeChange(listener, isolation: here()) { $0.called() }
    shape.x = 1
    shape.y = 2
    shape.x = 3
    #expect(listener.count == 0)
    scope.ticker.tick()
    #expect(listener.count == 1)
    scope.ticker.tick()
    #expect(listener.count == 1)
  }

  @Test("Observing one property")
  func oneProperty() {
    shape.observeChange(listener, \.x, isolation: here()) { $0.called() }
    shape.y = 1
    scope.ticker.tick()
    #expect(listener.count == 0)
    shape.x = 1
    scope.ticker.tick()
    #expect(listener.count == 1)
  }

  @Test("Several properties in one observation still give one call a tick")
  func severalProperties() {
    shape.observeChange(listener, \.x, \.y, isolation: here()) { $0.called() }
    shape.observeChange(listener, \.color, \.width, isolation: here()) { $0.log.append("keys") }
    shape.x = 1
    shape.y = 1
    shape.color = .blue
    shape.width = 1
    scope.ticker.tick()
    #expect(listener.count == 1)
    #expect(listener.log == ["keys"])
    shape.height = 1
    scope.ticker.tick()
    #expect(listener.count == 1)
    #expect(listener.log == ["keys"])
  }

  @Test("A collection counts as a property, and the observer may be left out")
  func collectionAndNoObserver() {
    var calls = 0
    let token = canvas.observeChange(\.shapes, \.selected, isolation: here()) { calls += 1 }
    canvas.shapes.append(Shape())
    canvas.selected = shape
    scope.ticker.tick()
    #expect(calls == 1)
    token.cancel()
    canvas.selected = nil
    scope.ticker.tick()
    #expect(calls == 1)
  }

  @Test("Immediate observers are called before the statement after each assignment")
  func immediate() {
    shape.observeChangeImmediately(listener, \.x) { me, old, new in
      me.log.append("\(old)>\(new)")
    }
    shape.signals.onPropertyChange.listen(listener) { me, _ in me.called() }
    shape.x = 1
    #expect(listener.log == ["0.0>1.0"])
    shape.y = 5
    #expect(listener.log == ["0.0>1.0"])
    shape.x += 1
    #expect(listener.log == ["0.0>1.0", "1.0>2.0"])
    #expect(listener.count == 3)
  }

  @Test("The signal of all properties can be filtered by name")
  func namedProperties() {
    shape.signals.onPropertyChange.listen(
      listener, filter: { ["x", "color"].contains($0.key) }
    ) { me, change in me.log.append(change.key) }
    shape.x = 1
    shape.y = 1
    shape.color = .blue
    shape.x = 2
    #expect(listener.log == ["x", "color", "x"])
  }

  @Test("References and collections report old and new value, typed")
  func immediateModels() {
    canvas.observeChangeImmediately(listener, \.selected) { [shape] me, old, new in
      me.log.append("\(old === shape)\(new === shape)")
    }
    canvas.selected = shape
    canvas.selected = nil
    #expect(listener.log == ["falsetrue", "truefalse"])

    var seen: [([Shape], [Shape])] = []
    canvas.observeChangeImmediately(listener, \.shapes) {
      (_, old: ModelArray<Shape>, new: ModelArray<Shape>) in
      seen.append((Array(old), Array(new)))
    }
    let other = Shape()
    canvas.shapes.append(other)
    canvas.shapes.move(from: 1, to: 0)
    canvas.shapes = []
    #expect(seen.map(\.0) == [[shape], [shape, other], [other, shape]])
    #expect(seen.map(\.1) == [[shape, other], [other, shape], []])
  }

  @Test("The raw signal carries key, old and new value")
  func rawSignal() {
    shape.signals.onPropertyChange.listen(listener) { me, change in
      me.log.append("\(change.key) \(change.old as! Float) \(change.new as! Float)")
    }
    shape.height = 7
    #expect(listener.log == ["height 100.0 7.0"])
  }

  @Test("Observers cannot tell a remote change from a local one")
  func remoteIsTheSame() {
    shape.observeChange(listener, \.x, isolation: here()) { $0.called() }
    shape.observeChangeImmediately(listener, \.x) { me, old, new in me.log.append("\(old)\(new)") }
    canvas.observeTreeChange(listener, isolation: here()) { $0.log.append("tree") }
    shape.x = 1
    scope.flush()
    scope.apply([
      SyncFragment(.change, uuid: shape.uuid, className: "Shape", properties: ["x": 0])
    ])
    scope.ticker.tick()
    #expect(listener.count == 2)
    #expect(listener.log == ["0.01.0", "tree", "1.00.0", "tree"])
  }

  @Test("outside of a scope changes are delivered once the model is in one")
  func deliveredOnAttach() {
    let loose = Shape()
    loose.observeChange(listener, \.x, isolation: here()) { $0.called() }
    loose.x = 1
    scope.ticker.tick()
    #if ON_ACTOR
    // Or by the ticker of the actor that observes it, which is the scope's here.
    #expect(listener.count == 1)
    #else
    #expect(listener.count == 0)
    #endif
    canvas.shapes.append(loose)
    scope.ticker.tick()
    #expect(listener.count == 1)
  }

  @Test("a setter that stands for a property of another type is followed as a composite")
  func settableComposite() {
    final class Box: ModelObject {
      @Property var width = 1
      var isWide: Bool {
        get { width > 10 }
        set { width = newValue ? 20 : 1 }
      }
    }
    let box = Box()
    let scope = manualScope(box)
    box.observeChange(listener, \.isWide, isolation: here()) { $0.called() }
    box.width = 5
    scope.ticker.tick()
    #expect(listener.count == 0)
    box.isWide = true
    scope.ticker.tick()
    #expect(listener.count == 1)
  }

  @Test("a property that the getter returns for some values only is followed as a composite")
  func settableFallback() {
    final class Person: ModelObject {
      @Property var nickname = ""
      @Property var fullName = ""
      @Property var level = 1
      @Property var usual = 0
      var displayName: String {
        get { nickname.isEmpty ? fullName : nickname }
        set { nickname = newValue }
      }
      var shownLevel: Int {
        get { level == 0 ? usual : level }
        set { level = newValue }
      }
    }
    let person = Person()
    person.nickname = "Al"
    let scope = manualScope(person)
    func calls(_ change: () -> Void) -> Int {
      let before = listener.count
      change()
      scope.ticker.tick()
      return listener.count - before
    }
    person.observeChange(listener, \.displayName, isolation: here()) { $0.called() }
    person.observeChange(listener, \.shownLevel, isolation: here()) { $0.called() }
    #expect(
      calls {
        person.nickname = ""
        person.fullName = "Ada"
      } == 1)
    #expect(calls { person.fullName = "Ada L." } == 1)
    #expect(calls { person.level = 0 } == 1)
    #expect(calls { person.usual = 2 } == 1)
  }

  @Test("models that the getter returns in some states only are followed as a composite")
  func settableModels() {
    final class Player: ModelObject {
      @Property var isActive = false
    }
    final class Club: ModelObject {
      @Property var owner: Player?
      @Property var players: ModelArray<Player> = []
      @Property var named: ModelDictionary<String, Player> = [:]
      @WeakReference var guest: Player?
      var leader: Player? {
        get { owner?.isActive == true ? owner : nil }
        set { owner = newValue }
      }
      var team: ModelArray<Player> {
        get { ModelArray(players.filter(\.isActive)) }
        set { players = newValue }
      }
      var speaker: Player? {
        get { guest?.isActive == true ? guest : nil }
        set { guest = newValue }
      }
      var first: ModelDictionary<String, Player> {
        get { named["a"]?.isActive == true ? named : [:] }
        set { named = newValue }
      }
    }
    let club = Club()
    let player = Player()
    let scope = manualScope(club)
    club.observeChange(listener, \.leader, isolation: here()) { $0.log.append("leader") }
    club.observeChange(listener, \.team, isolation: here()) { $0.log.append("team") }
    club.observeChange(listener, \.speaker, isolation: here()) { $0.log.append("speaker") }
    club.observeChange(listener, \.first, isolation: here()) { $0.log.append("first") }
    club.owner = player
    club.players = [player]
    club.named["a"] = player
    club.guest = player
    scope.ticker.tick()
    #expect(listener.log.isEmpty)
    player.isActive = true
    scope.ticker.tick()
    #expect(listener.log.sorted() == ["first", "leader", "speaker", "team"])
  }

  @Test("an observer is not told about what had changed before it came")
  func changesBefore() {
    let other = Listener()
    shape.observeChange(other, \.x, isolation: here()) { $0.called() }
    canvas.observeTreeChange(other, isolation: here()) { $0.log.append("tree") }
    shape.x = 1
    shape.observeChange(listener, isolation: here()) { $0.called() }
    canvas.observeTreeChange(listener, isolation: here()) { $0.called() }
    scope.flush()
    #expect(other.count == 1 && other.log == ["tree"])
    #expect(listener.count == 0)
    shape.x = 2
    scope.flush()
    #expect(listener.count == 2)
  }

  @Test("an observer of a value that cannot be compared is not told about what had changed before")
  func incomparableBefore() {
    let other = Listener()
    shape.observeChange(other, \.x, isolation: here()) { $0.called() }
    shape.x = 1
    shape.observeChange(listener, \.origin, isolation: here()) { me, _, _ in me.called() }
    shape.observeChange(listener, \.origin, isolation: here()) { $0.called() }
    scope.flush()
    #expect(other.count == 1)
    #expect(listener.count == 0)
    shape.y = 2
    scope.flush()
    #expect(listener.count == 2)
  }
}

extension Shape {
  fileprivate var origin: (Float, Float) { (x, y) }
}
