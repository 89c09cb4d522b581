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
    #expect(copy.friend == nil || copy.items.contains(copy.friend!))
  }
}

private final class FriendReader: ModelObject {
  @WeakReference var friend: Plant?
  var friendNumber: Int { friend?.number ?? 0 }
}
