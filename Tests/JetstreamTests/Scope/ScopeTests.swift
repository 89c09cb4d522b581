import Foundation
import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct ScopeTests {
  @Test("Setting the root makes the tree belong to the scope, as new models")
  func setRoot() {
    let scope = Scope(name: "Late", ticker: testTicker())
    #expect(scope.root == nil && scope.count == 0 && scope.fullState().isEmpty)
    let (a, b) = (Node("a"), Node("b"))
    a.items = [b]
    let sets = scope.changeSets { scope.root = a }
    #expect(a.scope === scope && b.scope === scope)
    #expect(scope.root === a)
    #expect(sets.first?.fragments.map(\.kind) == [.add, .add])
  }

  @Test("The tree that a scope is made with is where it begins, not a change")
  func initialRoot() {
    let a = Node("a")
    a.left = Node("b")
    let scope = manualScope(a)
    #expect(scope.count == 2)
    #expect(!scope.hasCollectedChanges)
  }

  @Test("A second root is refused")
  func secondRoot() {
    let first = Node("first")
    let scope = manualScope(first)
    var errors: [ScopeError] = []
    scope.onError.listen { errors.append($0) }
    scope.root = Node("second")
    scope.root = nil
    scope.root = first
    #expect(scope.root === first)
    #expect(errors == [.rootIsSet(scope: "Test")])
  }

  @Test("The root of one scope cannot be the root of another")
  func rootOfTwo() {
    let root = Node("root")
    let scope = manualScope(root)
    let other = Scope(name: "Other", ticker: testTicker())
    var errors: [ScopeError] = []
    other.onError.listen { errors.append($0) }
    other.root = root
    #expect(other.root == nil && other.count == 0)
    #expect(root.scope === scope)
    #expect(
      errors == [
        .modelInTwoScopes(className: "Node", model: root.uuid, scope: "Test", other: "Other")
      ])
  }

  @Test("Models are found by UUID while they are attached, in either case of text")
  func lookUp() {
    let root = Node("root")
    let child = Node("child")
    root.left = child
    let scope = manualScope(root)
    #expect(scope.model(child.uuid) === child)
    #expect(scope.model(child.uuid.uuidString.uppercased()) === child)
    #expect(scope.model(child.uuid.uuidString.lowercased()) === child)
    #expect(scope.model("nonsense") == nil)
    root.left = nil
    #expect(scope.model(child.uuid) == nil)
    root.left = child
    #expect(scope.model(child.uuid) === child)
  }

  @Test("Several edits in one turn give one change set")
  func oneChangeSet() {
    let root = Node("root")
    let scope = manualScope(root)
    let sets = scope.changeSets {
      root.number = 1
      root.label = "x"
      root.left = Node()
      root.left?.number = 2
    }
    #expect(sets.count == 1)
    #expect(sets[0].fragments.count == 2)
    #expect(sets[0].bases == [root.uuid: ["number": 0, "label": "root", "left": .null]])
  }

  @Test("A change interval is ten milliseconds unless set")
  func defaultInterval() {
    let root = Node("root")
    let scope = Scope(name: "Test", root: root, ticker: .manual())
    var sets = 0
    scope.onChanges.listen { _ in sets += 1 }
    root.number = 1
    scope.ticker.tick()
    scope.ticker.advance(by: .milliseconds(9))
    #expect(sets == 0)
    scope.ticker.advance(by: .milliseconds(1))
    #expect(sets == 1)
  }

  @Test("With an interval of 0.2 s nothing comes at 0.19 s and one set at 0.2 s")
  func interval() {
    let root = Node("root")
    let scope = Scope(name: "Test", root: root, ticker: .manual())
    scope.changeInterval = .milliseconds(200)
    var sets: [ChangeSet] = []
    scope.onChanges.listen { sets.append($0) }
    root.number = 1
    scope.ticker.advance(by: .milliseconds(190))
    root.number = 2
    #expect(sets.isEmpty)
    scope.ticker.advance(by: .milliseconds(10))
    #expect(sets.map { $0.fragments.map(\.properties) } == [[["number": 2]]])
    scope.ticker.advance(by: .seconds(1))
    #expect(sets.count == 1)
  }

  @Test("Taking the fragments drains them")
  func drain() {
    let root = Node("root")
    let scope = manualScope(root)
    scope.onChanges.listen { _ in Issue.record("taken fragments came out again") }
    root.number = 1
    #expect(scope.takeFragments().map(\.properties) == [["number": 1]])
    #expect(scope.takeFragments().isEmpty)
    scope.advance()
  }

  @Test("After taking them, the next change is collected as usual")
  func drainAndGoOn() {
    let root = Node("root")
    let scope = manualScope(root)
    root.number = 1
    _ = scope.takeFragments()
    let sets = scope.changeSets { root.number = 2 }
    #expect(sets.map { $0.bases[root.uuid] } == [["number": 1]])
  }

  @Test("Classes reachable through property types are known, others by name or by use")
  func registry() {
    final class Circle: ModelObject { @Property var r = 1 }
    final class Square: ModelObject { @Property var a = 1 }
    final class Bag: ModelObject { @Property var content: ModelArray<ModelObject> = [] }
    let scope = manualScope(Bag(), models: [Circle.self])
    #expect(scope.schema(named: "Circle")?.modelClass == Circle.self)
    #expect(scope.schema(named: "Square") == nil)
    (scope.root as? Bag)?.content.append(Square())
    #expect(scope.schema(named: "Square")?.modelClass == Square.self)
    #expect(manualScope(Canvas()).schema(named: "Shape")?.modelClass == Shape.self)
  }

  @Test("a scope that is released leaves its models free for another, which collects them anew")
  func released() {
    let root = Node("root")
    let child = Node("child")
    do {
      let scope = manualScope(root)
      root.left = child
      child.number = 1
      #expect(scope.hasCollectedChanges)
    }
    #expect(root.scope == nil && child.scope == nil)
    let scope = manualScope(root)
    #expect(scope.count == 2)
    let sets = scope.changeSets { child.number = 2 }
    #expect(sets.map { $0.fragments.map(\.properties) } == [[["number": 2]]])
  }

  @Test("a model may leave one scope and enter another in one interval")
  func changeScope() {
    let (rootA, rootB, child) = (Node("A"), Node("B"), Node("child"))
    rootA.left = child
    var scopeA: Scope? = manualScope(rootA)
    let scopeB = manualScope(rootB)
    child.number = 1
    rootA.left = nil
    rootB.left = child
    child.number = 2
    let inB = scopeB.changeSets {}
    #expect(inB.first?.fragments.map(\.kind) == [.add, .change])
    #expect(inB.first?.fragments.first?.properties["number"] == 2)
    #expect(scopeA!.changeSets {}.first?.fragments.map(\.properties) == [["left": .null]])

    rootB.left = nil
    rootA.left = child
    rootA.left = nil
    rootB.left = child
    scopeA = nil
    scopeB.flush()
    #expect(scopeB.changeSets { child.number = 3 }.first?.fragments.count == 1)
  }
}
