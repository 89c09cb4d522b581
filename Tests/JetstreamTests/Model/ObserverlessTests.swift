import Testing

@testable import Jetstream

/// The ways of observing that name no observer, and those by text.
#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct ObserverlessTests {
  let world: ObservationWorld
  let listener = Listener()

  init() { world = ObservationWorld() }

  @Test("Every way of observing exists without an observer, until its token is cancelled")
  func withoutObserver() {
    let model = world.model
    var log: [String] = []
    let tokens: [ObservationToken] = [
      model.observeChange(\.number, isolation: here()) { log.append("change") },
      model.observeChange(\.number, isolation: here()) { old, new in
        log.append("values \(old) \(new)")
      },
      model.observeChangeImmediately(\.number) { old, new in log.append("at once \(old) \(new)") },
      model.signals.onPropertyChange.listen(filter: { $0.key == "number" }) {
        log.append("at once \($0.key)")
      },
      model.observeChangeImmediately(\.doubled) { old, new in log.append("doubled \(old) \(new)") },
      model.observeTreeChange(isolation: here()) { log.append("tree") },
      model.observeTreeChange(\.left, isolation: here()) { log.append("left") },
      model.observeTreeChange(path: "left.number", isolation: here()) { log.append("path") },
      model.observeCollectionAdd(\.items) { node, at in log.append("+\(node.label)\(at)") },
      model.observeCollectionMove(\.items) { node, from, to in
        log.append("\(node.label)\(from)>\(to)")
      },
      model.observeCollectionRemove(\.items) { node, at in log.append("-\(node.label)\(at)") },
      model.observeDifference(\.items, isolation: here()) { log.append("difference \($0.count)") },
      model.observeAttach { log.append("attach \($0.name)") },
      model.observeDetach { log.append("detach \($0.name)") },
      model.observeAddedToParent { log.append("to \(($0 as! Node).label).\($1)") },
      model.observeRemovedFromParent { log.append("from \(($0 as! Node).label).\($1)") },
      model.signals.onTreeChange.listen { log.append("raw tree") },
    ]
    func change() -> [String] {
      log = []
      model.number += 1
      model.items = [Node("a"), Node("b")]
      model.items.move(from: 0, to: 1)
      model.items.remove(at: 0)
      world.child.number += 1
      model.detach()
      world.root.items.append(model)
      world.scope.ticker.tick()
      return log
    }
    let first = change()
    #expect(
      first.prefix(11) == [
        "at once 0 1", "at once number", "doubled 0 2", "+a0", "+b1", "a0>1",
        "-b0",
        "from root.items", "detach Test", "attach Test", "to root.items",
      ])
    #expect(
      first.dropFirst(11).sorted() == [
        "change", "difference 1", "left", "path", "raw tree", "tree", "values 0 1",
      ])
    for token in tokens { token.cancel() }
    #expect(change().isEmpty)
    world.scope.ticker.tick()
    #expect(world.entries == 0)
  }

  @Test("Collections by name report models of any class, with their indices")
  func collectionsByKey() {
    final class Bag: ModelObject {
      @Property var content: ModelArray<ModelObject> = []
      @Property var more: ModelArray<Shape> = []
    }
    let bag = Bag()
    bag.signals.onCollectionChange.listen(listener, filter: { $0.key == "content" }) { me, change in
      let name = change.model.wireClassName
      switch change.kind {
      case .insert(let at): me.log.append("+\(name)\(at)")
      case .remove(let at): me.log.append("-\(name)\(at)")
      case .move(let from, let to): me.log.append("\(name)\(from)>\(to)")
      }
    }
    var bare = 0
    bag.signals.onCollectionChange.listen(filter: { $0.key == "more" }) {
      switch $0.kind {
      case .insert: bare += 1
      case .remove: bare += 10
      case .move: bare += 100
      }
    }
    bag.observeCollectionAdd(listener, \.content) { me, model, _ in
      me.log.append("typed \(model.schema.wireName)")
    }
    let node = Node()
    bag.content = [Shape(), node]
    bag.content.move(from: 1, to: 0)
    bag.content.remove(node)
    #expect(
      listener.log == [
        "+Shape0", "typed Shape", "+Node1", "typed Node", "Node1>0", "-Node0",
      ])
    #expect(bare == 0)
    bag.more = [Shape(), Shape()]
    bag.more.move(from: 0, to: 1)
    bag.more.remove(at: 0)
    #expect(bare == 112)
  }

  @Test("OnTreeChange fires once a tick, and costs nothing while nobody listens")
  func rawTree() {
    let signal = world.model.signals.onTreeChange
    #expect(world.entries == 0)
    let token = signal.listen { [listener] in listener.called() }
    signal.listen(listener) { me, _ in me.log.append("bound") }
    #expect(world.model.signals.onTreeChange === signal)
    world.child.number = 1
    world.model.number = 1
    #expect(listener.count == 0)
    world.scope.ticker.tick()
    #expect(listener.count == 1 && listener.log == ["bound"])
    world.root.number = 1
    world.scope.ticker.tick()
    #expect(listener.count == 1)
    token.cancel()
    world.model.removeObservers(listener)
    world.child.number = 2
    world.scope.ticker.tick()
    #expect(listener.count == 1 && listener.log == ["bound"])
    #expect(world.entries == 0)
    signal.listenOnce { [listener] in listener.called() }
    for value in 3...5 {
      world.child.number = value
      world.scope.ticker.tick()
    }
    #expect(listener.count == 2)
    #expect(world.entries == 0)
  }

  @Test("The signal lives on when the model is gone, and keeps it not")
  func rawTreeLifetime() {
    weak var weakNode: Node?
    var signal: Signal<Void>?
    do {
      let node = Node()
      weakNode = node
      signal = node.signals.onTreeChange
      signal?.listen {}
    }
    #expect(weakNode == nil)
    signal?.listen {}
    #expect(signal?.hasListeners == true)
  }

  @Test("Every kind is told as often about a remote change as about a local one")
  func remote() {
    func counts(_ change: (ObservationWorld) -> Void) -> [String: Int] {
      let world = ObservationWorld()
      world.model.items = [Node("old")]
      world.scope.flush()
      var listeners: [String: Listener] = [:]
      for kind in ObservationKind.allCases {
        let listener = Listener()
        listeners[kind.rawValue] = listener
        world.observe(kind, listener) { $0.called() }
      }
      change(world)
      world.scope.ticker.tick()
      return listeners.mapValues(\.count)
    }
    let local = counts { world in
      let old = world.model.items[0]
      world.model.number = 3
      world.model.items = [Node("new"), old]
      world.child.number = 4
      world.root.items = []
    }
    let remote = counts { world in
      let (new, old) = (Node("new"), world.model.items[0])
      world.scope.apply([
        SyncFragment(.add, uuid: new.uuid, className: "Node", properties: ["label": "new"]),
        SyncFragment(
          .change, uuid: world.model.uuid, className: "Node",
          properties: [
            "number": 3,
            "items": [.string(new.uuid.wireText), .string(old.uuid.wireText)],
          ]),
        SyncFragment(.change, uuid: world.child.uuid, className: "Node", properties: ["number": 4]),
        SyncFragment(.change, uuid: world.root.uuid, className: "Node", properties: ["items": []]),
      ])
    }
    #expect(remote == local)
    #expect(local.values.count { $0 > 0 } == ObservationKind.allCases.count - 4)
  }
}
