import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct CollectTests {
  let root = Node("root")
  let child = Node("child")
  let scope: Scope

  init() {
    root.left = child
    scope = manualScope(root)
  }

  private func fragments(_ body: () -> Void) -> [SyncFragment] {
    let sets = scope.changeSets(of: body)
    #expect(sets.count <= 1)
    return sets.first?.fragments ?? []
  }

  @Test("Edits to a new model fold into its addition")
  func foldIntoAdd() {
    let new = Node()
    let result = fragments {
      root.items.append(new)
      new.label = "first"
      new.label = "final"
      new.right = child
    }
    #expect(result.map(\.kind) == [.add, .change])
    #expect(result[0].uuid == new.uuid)
    #expect(result[0].properties["label"] == "final")
    #expect(result[0].properties["right"] == child._jsonValue)
    #expect(result[0].properties.count == 6)
  }

  @Test("Repeated edits collapse to the last value")
  func lastValue() {
    let result = fragments { for value in 1...100 { root.number = value } }
    #expect(result.map(\.properties) == [["number": 100]])
  }

  @Test("An addition that is taken back in one turn leaves nothing")
  func addThenRemove() {
    let result = fragments {
      root.right = Node()
      root.right = nil
      root.items.append(Node())
      root.items.removeAll()
    }
    #expect(result.isEmpty)
  }

  @Test("Changes of a model that is removed in the same turn are dropped")
  func changeThenRemove() {
    let result = fragments {
      child.number = 5
      root.left = nil
      child.number = 6
    }
    #expect(result.map(\.uuid) == [root.uuid])
    #expect(result.map(\.properties) == [["left": .null]])
  }

  @Test("A model that moves within one turn is not added")
  func move() {
    let result = fragments {
      root.left = nil
      root.right = child
      child.number = 9
    }
    #expect(result.map(\.kind) == [.change, .change])
    #expect(
      result.first { $0.uuid == root.uuid }?.properties == [
        "left": .null, "right": child._jsonValue,
      ])
    #expect(result.first { $0.uuid == child.uuid }?.properties == ["number": 9])
  }

  @Test("A model that comes back in a later turn is added again")
  func comeBackLater() {
    #expect(fragments { root.left = nil }.count == 1)
    #expect(fragments { root.left = child }.map(\.kind) == [.add, .change])
  }

  @Test("A change that is taken back leaves no change set")
  func revert() {
    let sets = scope.changeSets {
      root.number = 1
      root.number = 0
      root.items.append(child)
      root.items.remove(child)
      root.label = "other"
      root.label = "root"
    }
    #expect(sets.isEmpty)
    #expect(!scope.hasCollectedChanges)
  }

  @Test("A model that only a local property holds is not in any change set")
  func localOnly() {
    final class Desk: ModelObject {
      @Property(.local) var draft: Node?
      @Property var paper: Node?
    }
    let desk = Desk()
    let scope = manualScope(desk)
    let draft = Node("draft")
    draft.left = Node("below")
    #expect(scope.changeSets { desk.draft = draft }.isEmpty)
    #expect(scope.changeSets { draft.number = 1 }.isEmpty)
    let sets = scope.changeSets { desk.paper = draft }
    #expect(sets.first?.fragments.map(\.kind) == [.add, .add, .change])
    #expect(sets.first?.fragments.first?.properties["number"] == 1)
    #expect(scope.changeSets { draft.number = 2 }.first?.fragments.count == 1)
  }

  @Test("A move within a collection is a change of that collection alone")
  func reorder() {
    root.items = [Node(), Node(), Node()]
    scope.flush()
    let result = fragments { root.items.move(from: 0, to: 2) }
    #expect(result.map(\.properties) == [[:]])
    #expect(result[0].operations == ["items": [.move(root.items[2].uuid, .end)]])
  }

  @Test("the base of each changed property is the value as of the last change set")
  func bases() {
    root.items = [Node(), Node()]
    scope.flush()
    let gone = root.items[1]
    let sets = scope.changeSets {
      root.items.append(Node())
      root.items.remove(at: 1)
      root.number = 1
      root.number = 2
    }
    #expect(sets.first?.bases == [root.uuid: ["number": 0]])
    #expect(
      sets.first?.undo.last?.operations
        == ["items": [.remove(root.items[1].uuid), .insert(gone.uuid, .end)]])
    let next = scope.changeSets { root.number = 3 }
    #expect(next.first?.bases == [root.uuid: ["number": 2]])
  }

  @Test("a model released while it waits in the collection is no trouble")
  func releasedWhileCollected() {
    do {
      let short = Node("short")
      root.right = short
      short.number = 1
      root.right = nil
      let known = Node("known")
      root.items = [known]
      scope.flush()
      known.number = 1
      root.items = []
    }
    #expect(fragments {}.map(\.uuid) == [root.uuid])
    let again = Node("again")
    #expect(fragments { root.right = again }.count == 2)
  }

  @Test("What is written as models are released is in the next change set, and so is what follows")
  func writesOfWhatIsReleased() {
    final class OnRelease {
      let body: () -> Void
      init(_ body: @escaping () -> Void) { self.body = body }
      deinit { body() }
    }
    let added = Node("added")
    do {
      let short = Node("short")
      root.right = short
      scope.flush()
      let end = OnRelease { [unowned root] in
        root.number = 1
        root.items = [added]
      }
      short.observeChange(\.label, isolation: here()) { _, _ in withExtendedLifetime(end) {} }
      root.right = nil
    }
    let sets = scope.changeSets {} + scope.changeSets { root.label = "x" }
    let all = sets.flatMap(\.fragments)
    #expect(all.contains { $0.uuid == root.uuid && $0.properties["number"] == 1 })
    #expect(all.contains { $0.uuid == added.uuid && $0.kind == .add })
    #expect(all.contains { $0.uuid == root.uuid && $0.properties["label"] == "x" })
    #expect(!scope.hasCollectedChanges)
  }

  @Test("no two change sets share an id")
  func ids() {
    let sets = [1, 2].flatMap { value in scope.changeSets { root.number = value } }
    #expect(sets.count == 2)
    #expect(sets[0].id != sets[1].id)
  }
}
