import Foundation
import Synchronization
import Testing

@testable import Jetstream

/// What the random changes of the forest have found about change sets and fragments, each as short as it
/// gets.
@Suite(.paced(counting: Plant.self)) struct ForestFragmentFindingTests {
  private func change(of model: Plant, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(.change, uuid: model.uuid, className: "Plant", properties: properties)
  }

  @Test("A change is sent of a model that local properties lead to as well")
  func changeBelowLocal() {
    let (root, local, shared) = (Plant(), Plant(), Plant())
    let scope = manualScope(root)
    root.picks.append(local)
    local.items.append(shared)
    root.items.append(shared)
    scope.flush()
    let sets = scope.changeSets { shared.number = 5 }
    #expect(sets.flatMap(\.fragments).map(\.uuid) == [shared.uuid])
    #expect(sets.first?.fragments.first?.properties == ["number": 5])
  }

  @Test("A model is added that local properties lead to as well")
  func additionBelowLocal() {
    let (root, local, shared) = (Plant(), Plant(), Plant())
    let scope = manualScope(root)
    root.picks.append(local)
    local.items.append(shared)
    let sets = scope.changeSets { root.items.append(shared) }
    #expect(sets.flatMap(\.fragments).map(\.uuid) == [shared.uuid, root.uuid])
  }

  @Test("A model that only a local property held for a while is added again")
  func sharedAgain() {
    let (root, shared, below) = (Plant(), Plant(), Plant())
    let scope = manualScope(root)
    shared.left = below
    root.items.append(shared)
    root.picks.append(shared)
    scope.flush()
    let removal = scope.changeSets { root.items = [] }
    #expect(removal.flatMap(\.fragments).map(\.uuid) == [root.uuid])
    #expect(scope.changeSets { below.number = 3 }.isEmpty)
    let addition = scope.changeSets { root.items.append(shared) }
    let added = addition.flatMap(\.fragments).filter { $0.kind == .add }
    #expect(Set(added.map(\.uuid)) == [shared.uuid, below.uuid])
  }

  @Test("A model that comes back to a local property alone is added again")
  func backInLocal() {
    let (root, inner, shared) = (Plant(), Plant(), Plant())
    let scope = manualScope(root)
    inner.left = shared
    root.items.append(inner)
    scope.flush()
    inner.detach()
    root.picks.append(shared)
    scope.flush()
    let addition = scope.changeSets { root.items.append(shared) }
    let added = addition.flatMap(\.fragments).filter { $0.kind == .add }
    #expect(added.map(\.uuid) == [shared.uuid])
  }

  @Test("A model that only local properties and itself hold is added like others")
  func localHoldsItself() {
    let (root, inner, local) = (Plant(), Plant(), Plant())
    let scope = manualScope(root)
    inner.picks.append(local)
    local.others.append(local)
    local.picks.append(inner)
    root.items.append(inner)
    scope.flush()
    // It is away with what holds it, and others bring that back.
    root.items = []
    scope.apply([change(of: root, ["left": .string(inner.uuid.wireText)])])
    #expect(local.scope === scope)
    scope.flush()
    let addition = scope.changeSets { root.others.append(local) }
    let added = addition.flatMap(\.fragments).filter { $0.kind == .add }
    #expect(added.map(\.uuid) == [local.uuid])
  }

  @Test("What was put into a model that was away is added when others bring the model back")
  func newBelowReturned() {
    let (root, away, new, below) = (Plant(), Plant(), Plant(), Plant())
    let scope = manualScope(root)
    root.items.append(away)
    scope.flush()
    away.detach()
    new.left = below
    away.items.append(new)
    scope.apply([change(of: root, ["others": [.string(away.uuid.wireText)]])])
    #expect(below.scope === scope)
    let added = scope.changeSets {}.flatMap(\.fragments).filter { $0.kind == .add }
    #expect(Set(added.map(\.uuid)) == [new.uuid, below.uuid])
  }

  @Test(
    "What a local property of a model holds is still new when others bring the model back")
  func localBelowReturned() {
    let (root, away, picked) = (Plant(), Plant(), Plant())
    let scope = manualScope(root)
    root.items.append(away)
    away.picks.append(picked)
    scope.flush()
    away.detach()
    scope.apply([change(of: root, ["others": [.string(away.uuid.wireText)]])])
    scope.flush()
    #expect(picked.scope === scope)
    let added = scope.changeSets { root.left = picked }.flatMap(\.fragments)
    #expect(added.filter { $0.kind == .add }.map(\.uuid) == [picked.uuid])
  }

  @Test("Others bring a model back, but not what was taken out of it before it left")
  func takenOutBeforeReturn() {
    let (root, away, gone) = (Plant(), Plant(), Plant())
    let scope = manualScope(root)
    root.items.append(away)
    away.items.append(gone)
    scope.apply([change(of: root, ["what": true])])  // Something unknown is kept from here on.
    scope.flush()
    let other = Scope(name: "Other", ticker: .manual())
    other.root = gone
    root.items = []
    scope.apply([change(of: root, ["left": .string(away.uuid.wireText)])])
    #expect(root.left === away && away.items.isEmpty)
    #expect(scope.count == 2)
  }

  @Test("What others add below a model that only a local property holds is shared with it")
  func additionBelowUnshared() throws {
    let (root, picked) = (Plant(), Plant())
    let scope = manualScope(root)
    root.items.append(picked)
    root.picks.append(picked)
    scope.flush()
    root.items = []
    scope.apply([change(of: picked, ["number": 1])])
    let uuid = UUID()
    scope.apply([
      SyncFragment(.add, uuid: uuid, className: "Plant", properties: [:]),
      change(of: picked, ["items": [.string(uuid.wireText)]]),
    ])
    scope.flush()
    let sets = scope.changeSets { root.items.append(picked) }
    let added = sets.flatMap(\.fragments).filter { $0.kind == .add }
    #expect(Set(added.map(\.uuid)) == [picked.uuid, uuid])
  }

  @Test("Models that are added and that only hold each other are let go", arguments: [true, false])
  func orphansInACircle(isLocal: Bool) {
    let root = Plant()
    let scope = manualScope(root)
    let before = Plant.alive.load(ordering: .relaxed)
    let (a, b) = (UUID(), UUID())
    let circle = [
      SyncFragment(
        .add, uuid: a, className: "Plant", properties: ["left": .string(b.wireText)]),
      SyncFragment(
        .add, uuid: b, className: "Plant",
        properties: ["items": [.string(a.wireText), .string(root.uuid.wireText)]]),
    ]
    let report = isLocal ? scope.perform(circle) : scope.apply(circle)
    #expect(report.isComplete == !isLocal, "what is not made at once has to be told of")
    withExtendedLifetime(report) {}
    #expect(root.parents.isEmpty)
    #expect(Plant.alive.load(ordering: .relaxed) == before)
  }

  @Test("A model whose collection is being changed may leave its scope, and be told of")
  func leavesWhileChanged() {
    let (root, owner, first, second) = (Plant(), Plant(), Plant(), Plant())
    let scope = manualScope(root)
    root.left = owner
    owner.items = [first]
    scope.apply([change(of: root, ["what": true])])  // Something unknown is kept from here on.
    scope.flush()
    owner.items.append(second)
    owner.change(.items) {
      $0.removeAll()
      owner.detach()
    }
    #expect(owner.scope == nil && owner.items.isEmpty)
    root.left = owner
    scope.flush()
    var inner: [ChangeSet] = []
    let outer = scope.changeSets {
      owner.change(.items) {
        $0.append(first)
        inner = scope.changeSets {}
        $0.append(second)
      }
    }
    // What is not done yet is not told.
    #expect(inner.isEmpty)
    let change = outer.flatMap(\.fragments).last
    #expect(change?.operations["items"].compactMap(\.model) == [first.uuid, second.uuid])
  }
}
