import Foundation
import Synchronization
import Testing

@testable import Jetstream

/// What the random changes of the forest have found, each as short as it gets.
@Suite(.paced(counting: Plant.self)) struct ForestFindingTests {
  @Test("An observer of refusals may change the collection that has refused")
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

  @Test("Steps that lead back to where they began are no change of the property")
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

  @Test("A swap that moves the owner of one of its properties counts parents right")
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

  @Test("A token keeps nothing of a model that is gone")
  func tokenOfGoneModel() {
    weak var gone: Plant?
    let token: ObservationToken
    do {
      let (plant, child) = (Plant(), Plant())
      plant.left = child
      gone = child
      token = plant.observeChange(\.left, isolation: here()) { _, _ in }
    }
    #expect(gone == nil)
    withExtendedLifetime(token) {}
  }

  @Test("A composite that is changed back and forth within a tick is not missed")
  func changedBackAndForth() {
    let plant = Plant()
    let scope = manualScope(plant)
    var told: [String] = []
    var seen: [Int] = []
    // Before the observers of the composite are called it is back, and then it is not any more.
    plant.observeChange(\.title, isolation: here()) { plant.number = 0 }
    plant.observeChange(\.total, isolation: here()) { told.append("\($0) -> \($1)") }
    plant.observeChange(\.total, isolation: here()) { seen.append(plant.total) }
    plant.observeChange(\.total, isolation: here()) { plant.number = 1 }
    plant.title = "a"
    plant.number = 1
    scope.flush()
    #expect(told.isEmpty && seen == [0])
    scope.flush()
    #expect(told == ["0 -> 1"] && seen == [0, 1])
  }

  @Test("What an observer of a composite has seen when it was told is not told again")
  func seenWhenTold() {
    let plant = Plant()
    let scope = manualScope(plant)
    var seen: [Int] = []
    plant.observeChange(\.title, isolation: here()) { plant.number = 4 }
    plant.observeChange(\.total, isolation: here()) { seen.append(plant.total) }
    plant.title = "a"
    plant.number = 1
    scope.flush()
    #expect(seen == [4])
    scope.flush()
    #expect(seen == [4])
  }

  @Test("A composite's model that goes while a tick delivers is not called")
  func goneWhileDelivering() {
    let read = Plant()
    let scope = manualScope(read)
    var reader: FriendReader? = FriendReader()
    reader!.friend = read
    var told: [String] = []
    // Both wait for the same change; the first one called lets go of the other's model.
    let first = read.observeChange(\.number, isolation: here()) { _, _ in
      told.append("first")
      reader = nil
    }
    let second = reader!.observeChange(\.friendNumber, isolation: here()) { _, _ in
      told.append("second")
    }
    read.number = 1
    scope.flush()
    #expect(told == ["first"])
    withExtendedLifetime((first, second)) {}
  }

  @Test("A tree observer is not told what happened before the model came into its tree")
  func changedBeforeItCame() {
    let (top, late) = (Plant(), Plant())
    let scope = manualScope(top)
    var told = 0
    let token = top.observeTreeChange(isolation: here()) { told += 1 }
    scope.root = nil
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

  @Test("A tree in no scope may have two models with one UUID, and is copied as it is")
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

  @Test(
    "A known model below one that was never told of is new once only a local property holds both")
  func unsharedBelowNew() throws {
    let (root, holder, known) = (Plant(), Plant(), Plant())
    root.items = [known]
    let scope = manualScope(root)
    scope.flush()
    let copy = manualScope(Plant())
    try copy.applyFullState(scope.fullState(), rootUUID: root.uuid)
    root.picks = [holder]
    root.others = [holder]
    holder.items = [known]
    root.items = []
    // Who is shared is found out here, and once more with the set.
    scope.apply([])
    root.others = []
    #expect(copy.apply(scope.takeFragments()).isComplete && copy.count == 1)
    #expect(holder.record?.isNew == true && known.record?.isNew == true)
    root.left = known
    #expect(copy.apply(scope.takeFragments()).isComplete && copy.count == 2)
    #expect(copy.canonicalJSON.contains(known.uuid.wireText))
  }
}
