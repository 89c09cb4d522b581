import Foundation
import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct RootTests {
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

  @Test("A model that becomes a root leaves its parents; all below detach, then attach")
  func makeRoot() {
    watch(top, child)
    top.observeRemovedFromParent(listener) { $0.log.append("out of \($2)") }
    other.root = top
    #expect(other.root === top)
    #expect(root.left == nil && root.items.isEmpty)
    #expect(top.parents.isEmpty)
    #expect(other.root === top && top.scope === other && child.scope === other)
    #expect(scope.count == 1 && other.count == 2)
    let log = listener.log
    #expect(
      log.sorted() == [
        "+child Other", "+top Other", "-child Test", "-top Test", "out of items", "out of left",
      ])
    #expect(Array(log.suffix(2)) == ["+top Other", "+child Other"])
    other.root = top
    #expect(other.root === top)
    #expect(listener.log == log)
    let here = scope.changeSets {}
    #expect(here.map { $0.fragments.map(\.properties) } == [[["left": .null]]])
    #expect(here[0].fragments[0].operations == ["items": [.remove(top.uuid)]])
    #expect(other.changeSets {}.first?.fragments.map(\.kind) == [.add, .add])
  }

  @Test("Parents below the model stay, and parents in no scope are left as well")
  func backReference() {
    child.left = top
    let loose = Node("loose")
    loose.items = [top]
    other.root = top
    #expect(other.root === top)
    #expect(child.left === top && loose.items.isEmpty)
    #expect(top.parents.map(\.key) == ["left"])
    #expect(top.scope === other && child.scope === other && scope.count == 1)
    child.left = nil
    #expect(top.scope === other)
  }

  @Test("What another tree holds as well is not taken; nothing has changed")
  func sharedPart() {
    root.right = child
    watch(top, child)
    top.observeRemovedFromParent(listener) { me, _, _ in me.called() }
    var errors: [ScopeError] = []
    other.onError.listen { errors.append($0) }
    other.root = top
    #expect(other.root !== top)
    #expect(
      errors == [
        .modelInTwoScopes(className: "Node", model: child.uuid, scope: "Test", other: "Other")
      ])
    #expect("\(errors[0])".contains("belongs to scope Test and cannot be part of scope Other"))
    #expect(root.left === top && root.items.count == 1)
    #expect(listener.count == 0 && listener.log.isEmpty)
    #expect(other.root == nil && other.count == 0 && scope.count == 3)

    // The root itself is below.
    child.items = [root]
    root.right = nil
    other.root = top
    #expect(other.root !== top)
    #expect(
      errors.last
        == .modelInTwoScopes(className: "Node", model: root.uuid, scope: "Test", other: "Other"))
    child.items = []
    other.root = top
    #expect(other.root === top)
  }

  @Test("Refused where the scope has a root, or the model is the root of another")
  func refused() {
    var errors: [ScopeError] = []
    scope.onError.listen { errors.append($0) }
    other.onError.listen { errors.append($0) }
    scope.root = child
    #expect(scope.root !== child)
    other.root = root
    #expect(other.root !== root)
    #expect(
      errors == [
        .rootIsSet(scope: "Test"),
        .modelInTwoScopes(className: "Node", model: root.uuid, scope: "Test", other: "Other"),
      ])
    #expect(top.right === child && scope.count == 3)

    let twins = Node("twins")
    twins.items = [Node(uuid: twins.uuid)]
    let loose = Node("loose")
    loose.left = twins
    other.root = twins
    #expect(other.root !== twins)
    #expect(errors.last == .duplicateUUID(className: "Node", model: twins.uuid))
    #expect(loose.left === twins && twins.scope == nil)
  }

  @Test("Observers may change the tree while it moves")
  func reentrant() {
    top.observeRemovedFromParent(listener) { [root, top] me, _, key in
      me.log.append(key)
      if key == "left" { root.right = top }
    }
    other.onError.listen(listener) { me, _ in me.called() }
    other.root = top
    #expect(other.root !== top)
    #expect(listener.count == 1)
    #expect(root.right === top && top.scope === scope && other.root == nil)
  }

  @Test("A parent that an observer lets go of meanwhile does no harm")
  func parentReleased() {
    var parents: [Node] = (0..<3).map { Node("\($0)") }
    let model = Node("model")
    for parent in parents { parent.left = model }
    model.observeRemovedFromParent(listener) { me, _, _ in
      me.called()
      parents = []
    }
    model.detach()
    #expect(model.parents.isEmpty)
    #expect(listener.count == 3)
  }

  // MARK: Releasing the root

  @Test("A scope without its root is empty, and the tree can go into another scope")
  func releaseRoot() {
    watch(root, top, child)
    root.number = 1
    scope.root = nil
    #expect(listener.log == ["-root Test", "-top Test", "-child Test"])
    #expect(scope.root == nil && scope.count == 0 && scope.models.isEmpty)
    #expect(root.scope == nil && child.scope == nil && root.left === top)
    scope.root = nil

    var sets: [ChangeSet] = []
    scope.onChanges.listen { sets.append($0) }
    child.number = 5
    scope.advance()
    #expect(sets.map { $0.fragments.map(\.properties) } == [[["number": 1]]])

    other.root = root
    #expect(child.scope === other && other.count == 3)
    let fresh = Node("fresh")
    scope.root = fresh
    #expect(scope.root === fresh && scope.count == 1)
    child.number = 6
    scope.advance()
    #expect(sets.count == 2)
    #expect(sets[1].fragments.map(\.uuid) == [fresh.uuid])
  }

  @Test("a root that is released and set again has not changed; a cycle through it goes as well")
  func releaseAndReturn() {
    child.left = root
    scope.flush()
    scope.root = nil
    #expect(root.scope == nil && child.scope == nil && child.record?.scopedParents == 0)
    scope.root = root
    #expect(scope.count == 3)
    #expect(scope.changeSets {}.isEmpty)
    #expect(scope.changeSets { child.number = 1 }.count == 1)
    child.left = nil
    #expect(root.scope === scope)
  }

  @Test("a released root is not kept alive by its scope")
  func releasedRootGoes() {
    weak var weakRoot: Node?
    do {
      let root = Node("root")
      root.left = Node("child")
      weakRoot = root
      other.root = root
      other.root = nil
    }
    other.flush()
    #expect(weakRoot == nil)
  }

  // MARK: Between scopes

  @Test("A root of its own cannot be put into a tree; its scope goes first")
  func ownRootIntoTree() {
    var errors: [ScopeError] = []
    scope.onError.listen { errors.append($0) }
    let model = Node("model")
    let own = Scope(name: "Own", root: model, ticker: .manual())
    root.items.append(model)
    #expect(
      errors == [
        .modelInTwoScopes(className: "Node", model: model.uuid, scope: "Own", other: "Test")
      ])
    #expect(root.items.count == 1 && model.parents.isEmpty)
    own.root = nil
    root.items.append(model)
    #expect(model.scope === scope)
  }

  @Test("A subtree goes from one scope to another with detach() and append")
  func betweenScopes() {
    let otherRoot = Node("other")
    other.root = otherRoot
    scope.flush()
    other.flush()
    watch(top, child)
    top.detach()
    otherRoot.items.append(top)
    #expect(listener.log == ["-top Test", "-child Test", "+top Other", "+child Other"])
    #expect(scope.model(child.uuid) == nil && other.model(child.uuid) === child)
    #expect(scope.changeSets {}.first?.fragments.count == 1)
    let there = other.changeSets {}.first?.fragments ?? []
    #expect(there.filter { $0.kind == .add }.map(\.uuid) == [top.uuid, child.uuid])
    #expect(there.filter { $0.kind == .change }.map(\.uuid) == [otherRoot.uuid])
    child.number = 3
    #expect(scope.changeSets {}.isEmpty)
    #expect(other.changeSets {}.first?.fragments.map(\.properties) == [["number": 3]])
  }

  @Test("A detached model can be read and written, and is found again when it returns")
  func detached() {
    top.detach()
    scope.flush()
    top.label = "changed"
    top.right = nil
    top.items = [child]
    child.number += 1
    top.items.move(from: 0, to: 0)
    #expect(top.label == "changed" && child.number == 1)
    #expect(scope.model(top.uuid) == nil && scope.model(top.uuid.uuidString) == nil)
    let sets = scope.changeSets {
      child.left = top
      child.left = nil
    }
    #expect(sets.isEmpty)
    root.right = top
    #expect(scope.model(top.uuid) === top && scope.model(child.uuid.uuidString) === child)
    let added = scope.changeSets {}.first?.fragments.first { $0.uuid == child.uuid }
    #expect(added?.kind == .add && added?.properties["number"] == 1)
  }
}
