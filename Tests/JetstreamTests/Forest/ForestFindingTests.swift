import Foundation
import Synchronization
import Testing

@testable import Jetstream

/// What the random changes of the forest have found, each as short as it gets.
@Suite(.paced) struct ForestFindingTests {
  @Test("J051: a change is sent of a model that local properties lead to as well")
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

  @Test("J051: a model is added that local properties lead to as well")
  func additionBelowLocal() {
    let (root, local, shared) = (Plant(), Plant(), Plant())
    let scope = manualScope(root)
    root.picks.append(local)
    local.items.append(shared)
    let sets = scope.changeSets { root.items.append(shared) }
    #expect(sets.flatMap(\.fragments).map(\.uuid) == [shared.uuid, root.uuid])
  }

  @Test("J051: a model that only a local property held for a while is added again")
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

  @Test("J051: a model that comes back to a local property alone is added again")
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

  @Test("J051: what was put into a model that was away is added when others bring the model back")
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
    "J051: what a local property of a model holds is still new when others bring the model back")
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

  @Test("J051: others bring a model back, but not what was taken out of it before it left")
  func takenOutBeforeReturn() {
    let (root, away, gone) = (Plant(), Plant(), Plant())
    let scope = manualScope(root)
    root.items.append(away)
    away.items.append(gone)
    scope.apply([change(of: root, ["what": true])])  // Something unknown is kept from here on.
    scope.flush()
    let other = Scope(name: "Other", ticker: .manual())
    gone.makeRoot(of: other)
    root.items = []
    scope.apply([change(of: root, ["left": .string(away.uuid.wireText)])])
    #expect(root.left === away && away.items.isEmpty)
    #expect(scope.count == 2)
  }

  @Test("J051: what others add below a model that only a local property holds is shared with it")
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

  @Test("J051: models that others add and that only hold each other are let go")
  func orphansInACircle() {
    let root = Plant()
    let scope = manualScope(root)
    let before = Plant.alive.load(ordering: .relaxed)
    let (a, b) = (UUID(), UUID())
    let report = scope.apply([
      SyncFragment(
        .add, uuid: a, className: "Plant", properties: ["left": .string(b.wireText)]),
      SyncFragment(
        .add, uuid: b, className: "Plant",
        properties: ["items": [.string(a.wireText), .string(root.uuid.wireText)]]),
    ])
    #expect(report.isComplete)
    withExtendedLifetime(report) {}
    #expect(root.parents.isEmpty)
    #expect(Plant.alive.load(ordering: .relaxed) == before)
  }

  @Test("J020: an observer of refusals may change the collection that has refused")
  func changeInRefusal() {
    let (root, kept, other) = (Plant(), Plant(), Plant())
    let scope = manualScope(root)
    let second = manualScope(other)
    var told: [String] = []
    scope.onError.listen { _ in root.items = [] }
    root.signals.onPropertyChange.listen {
      told.append(
        "\(($0.old as! ModelArray<Plant>).count) -> \(($0.new as! ModelArray<Plant>).count)")
    }
    root.items = [kept, other]
    #expect(root.items.isEmpty && kept.scope == nil)
    #expect(told.sorted() == ["0 -> 1", "1 -> 0"])
    withExtendedLifetime(second) {}
  }

  private func change(of model: Plant, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(.change, uuid: model.uuid, className: "Plant", properties: properties)
  }

  @Test("J020: steps that lead back to where they began are no change of the property")
  func stepsThatCancelOut() {
    let (plant, child) = (Plant(), Plant())
    var told = 0
    var steps = 0
    plant.signals.onPropertyChange.listen { _ in told += 1 }
    plant.signals.onCollectionChange.listen { _ in steps += 1 }
    plant.change(.items) {
      $0.append(child)
      $0.remove(child)
    }
    #expect(told == 0)
    #expect(steps == 2)
  }

  @Test("J037: a swap that moves the owner of one of its properties counts parents right")
  func swapAcrossScopes() {
    let (root, inner, child) = (Plant(), Plant(), Plant())
    let scope = manualScope(root)
    root.right = inner
    inner.right = child
    swap(&inner.right, &root.right)
    #expect(root.right === child && inner.right === inner)
    #expect(child.scope === scope && inner.scope == nil)
    #expect(child.parents.count == 1)
    #expect(child.record?.scopedParents == 1)
    inner.right = nil
  }

  @Test("J037: a model whose collection is being changed may leave its scope, and be told of")
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

  @Test("J041: a token keeps nothing of a model that is gone")
  func tokenOfGoneModel() {
    weak var gone: Plant?
    let token: ObservationToken
    do {
      let (plant, child) = (Plant(), Plant())
      plant.left = child
      gone = child
      token = plant.observeChange(\.left) { _, _ in }
    }
    #expect(gone == nil)
    withExtendedLifetime(token) {}
  }

  @Test("J023: a composite that is changed back and forth within a tick is not missed")
  func changedBackAndForth() {
    let plant = Plant()
    let scope = manualScope(plant)
    var told: [String] = []
    var seen: [Int] = []
    // Before the observers of the composite are called it is back, and then it is not any more.
    plant.observeChange(keys: ["title"]) { plant.number = 0 }
    plant.observeChange(\.total) { told.append("\($0) -> \($1)") }
    plant.observeChange(\.total) { seen.append(plant.total) }
    plant.observeChange(\.total) { plant.number = 1 }
    plant.title = "a"
    plant.number = 1
    scope.flush()
    #expect(told.isEmpty && seen == [0])
    scope.flush()
    #expect(told == ["0 -> 1"] && seen == [0, 1])
  }

  @Test("J041: a composite's model that goes while a tick delivers is not called")
  func goneWhileDelivering() {
    let read = Plant()
    let scope = manualScope(read)
    var reader: FriendReader? = FriendReader()
    reader!.friend = read
    var told: [String] = []
    // Both wait for the same change; the first one called lets go of the other's model.
    let first = read.observeChange(\.number) { _, _ in
      told.append("first")
      reader = nil
    }
    let second = reader!.observeChange(\.friendNumber) { _, _ in told.append("second") }
    read.number = 1
    scope.flush()
    #expect(told == ["first"])
    withExtendedLifetime((first, second)) {}
  }

  @Test("J026: a tree observer is not told what happened before the model came into its tree")
  func changedBeforeItCame() {
    let (top, late) = (Plant(), Plant())
    let scope = manualScope(top)
    var told = 0
    let token = top.observeTreeChange { told += 1 }
    scope.releaseRoot()
    _ = late.uuid  // Something is known about it from here on.
    late.number = 1
    top.left = late
    scope.flush()
    #expect(told == 1)
    let other = manualScope(late)
    other.flush()
    scope.flush()
    #expect(told == 1)
    withExtendedLifetime((token, other)) {}
  }

  @Test("R017: a tree in no scope may have two models with one UUID, and is copied as it is")
  func twoWithOneUUID() throws {
    let (top, first) = (Plant(), Plant())
    let second = Plant(uuid: first.uuid)
    top.items = [first, second]
    top.friend = second
    let copy = top.snapshot().makeModel() as Plant
    #expect(copy.items.count == 2)
    #expect(copy.items[0] !== copy.items[1])
    #expect(copy.friend === copy.items[0])
  }
}

private final class FriendReader: ModelObject {
  @WeakReference var friend: Plant?
  var friendNumber: Int { friend?.number ?? 0 }
}
