import Foundation
import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct OwnScopeTests {
  let root = Node("root")
  let top = Node("top")
  let child = Node("child")
  let scope: Scope
  let other = Scope(name: "Other", ticker: .manual())
  let listener = Listener()

  init() {
    root.left = top
    root.items = [top]
    top.right = child
    scope = manualScope(root)
  }

  private func watch(_ nodes: Node...) {
    for node in nodes {
      node.observeDetach(listener) { $0.log.append("-\(node.label) \($1.name)") }
      node.observeAttach(listener) { $0.log.append("+\(node.label) \($1.name)") }
    }
  }

  @Test("IsScopeRoot makes a scope with the tree, and drops it")
  func isScopeRoot() {
    let model = Node("model")
    let below = Node("below")
    model.left = below
    let made = model.makeScopeRoot(ticker: .manual())
    #expect(model.isScopeRoot && !below.isScopeRoot)
    #expect(made != nil && model.scope === made && below.scope === made)
    #expect(made?.name == "Node" && made?.root === model && made?.count == 2)
    #expect(made?.hasCollectedChanges == false)
    #expect(model.makeScopeRoot() === made)
    model.isScopeRoot = true
    #expect(model.scope === made)
    model.isScopeRoot = false
    #expect(!model.isScopeRoot && model.scope == nil && below.scope == nil)
    model.isScopeRoot = false
    #expect(model.left === below)
  }

  @Test("Set to true inside of a tree, the model leaves it and takes the ticker along")
  func isScopeRootInTree() {
    watch(top, child)
    top.isScopeRoot = true
    #expect(root.left == nil && root.items.isEmpty && scope.count == 1)
    #expect(top.isScopeRoot && child.scope === top.scope && top.scope !== scope)
    #expect(top.scope?.ticker === scope.ticker)
    #expect(Array(listener.log.suffix(2)) == ["+top Node", "+child Node"])
    child.observeChange(listener, \.number) { $0.called() }
    child.number = 1
    scope.ticker.tick()
    #expect(listener.count == 1)
    // Into another scope: its own one is dropped.
    #expect(top.makeRoot(of: other))
    #expect(child.scope === other && other.count == 2)
    // The root of a scope that somebody made is taken off just as well.
    top.isScopeRoot = false
    #expect(child.scope == nil && other.root == nil)
  }

  @Test("The scope lasts as long as its root, and does not keep it alive")
  func ownScopeLifetime() {
    weak var weakModel: Node?
    weak var weakScope: Scope?
    let below = Node("below")
    do {
      let model = Node("model")
      model.left = below
      weakModel = model
      weakScope = model.makeScopeRoot(ticker: .manual())
      #expect(weakScope != nil && below.scope === weakScope)
      model.number = 1
      below.observeChange(listener, \.number) { $0.called() }
    }
    #expect(weakModel == nil && weakScope == nil)
    #expect(below.scope == nil && below.parents.isEmpty)
    root.right = below
    #expect(below.scope === scope)

    var kept: Scope?
    do { kept = Node("short").makeScopeRoot(ticker: .manual()) }
    #expect(kept?.root == nil && kept?.count == 0)
    kept?.root = Node("next")
    #expect(kept?.count == 1)

    do {
      let model = Node("model")
      weakModel = model
      weakScope = model.makeScopeRoot(ticker: .manual())
      model.isScopeRoot = false
      #expect(weakScope == nil)
    }
    #expect(weakModel == nil)
  }

  @Test("A deep tree with its own scope is released without recursion")
  func deepOwnScope() {
    weak var weakEnd: Node?
    do {
      var top = Node("end")
      weakEnd = top
      for _ in 0..<100_000 {
        let next = Node()
        next.left = top
        top = next
      }
      top.makeScopeRoot(ticker: .manual())
      #expect(weakEnd?.scope != nil)
    }
    #expect(weakEnd == nil)
  }

  @Test("On the main actor the main actor's ticker delivers")
  func mainActor() async {
    let isTold = await MainActor.run {
      let model = Node("model")
      model.isScopeRoot = true
      return model.scope?.ticker === Ticker.on(MainActor.shared)
    }
    #expect(isTold)
  }
}
