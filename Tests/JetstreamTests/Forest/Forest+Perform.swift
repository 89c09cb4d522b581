import Foundation

@testable import Jetstream

/// Doing something, to the models and to the reference.
extension Forest {
  func perform(_ operation: ForestOperation) {
    switch operation {
    case .plain(let id, let edit):
      let isBush = reference.nodes[id]!.isBush
      reference.edit(id) { edit.perform(on: &$0, isBush: isBush) }
      edit.perform(on: plants[id]!)
    case .reference(let id, let key, let child):
      reference.assign(id, key, child)
      plants[id]![key] = child.map { plants[$0]! }
    case .swapReferences(let a, let key, let b, let other):
      plants[a]!.change(key) { first in plants[b]!.change(other) { swap(&first, &$0) } }
      // The access that began last ends first.
      let (first, second) = (
        reference.nodes[a]!.references[key], reference.nodes[b]!.references[other]
      )
      reference.assign(b, other, first)
      reference.assign(a, key, second)
    case .list(let id, let key, let edits, let way): performList(id, key, edits, way)
    case .swapLists(let a, let key, let b, let other):
      plants[a]!.change(key) { first in plants[b]!.change(other) { swap(&first, &$0) } }
      let (first, second) = (reference.nodes[a]!.list(key), reference.nodes[b]!.list(other))
      reference.assign(b, other, first)
      reference.assign(a, key, second)
    case .within(let access, let inner): performWithin(access, inner)
    case .friend(let id, let friend):
      reference.assignFriend(id, friend, uuid: friend.map { reference.nodes[$0]!.uuid })
      plants[id]!.friend = friend.map { plants[$0]! }
    case .detach(let id):
      plants[id]!.detach()
      reference.remove(id, from: reference.parents[id] ?? [])
    case .releaseRoot(let number):
      scope(number).root = nil
      reference.setRoot(number, nil)
    case .setRoot(let number, let id):
      scope(number).root = plants[id]!
      reference.move(id, to: number)
    case .dropScope(let number): performDropScope(number)
    case .apply(let number, let fragments): performApply(number, fragments)
    case .saveState:
      flush()
      guard let root = reference.roots[0] else { return }
      saved = (root, scope(0).fullState(), scope(0).canonicalJSON)
    case .applyState: performState()
    case .takeFragments(let number):
      let fragments = scope(number).takeFragments()
      checkHeat(fragments, of: number)
      noteHeat(fragments, of: number)
      reference.collect(number, holdingBack: reference.holdsBack)
      if number == 0 {
        applyToReplica(fragments)
        keeper.forgetGone()
      }
    case .flush: flush()
    case .flushArmed: flushArmed()
    case .advance(let time):
      ticker.advance(by: .milliseconds(time))
      for number in places.keys.sorted() where places[number]!.scope?.schedule.isRequested == false
      {
        reference.collect(number, holdingBack: reference.holdsBack)
        if number == 0 { keeper.forgetGone() }
      }
      checkDelivery()
      if time >= 60 {
        expect(!scope(0).hasCollectedChanges, "something is held back for more than its interval")
        compareReplica(isFlushed: true)
      }
      if !scope(0).hasCollectedChanges, !scope(0).schedule.isRequested { compareReplica() }
    case .muted(let watchers, let inner):
      scope(0).withoutNotifying(watchers.flatMap(\.tokens)) {
        checkStep()
        checkDelivery()
        muted = watchers
        perform(inner)
        checkStep()
      }
      checkDelivery()
      muted = []
    case .observe(let id, let kind, let isFree):
      let watcher = ForestWatcher(kind, at: id, in: self, isFree: isFree)
      watcher.log.isWriter = chance(25)
      watcher.isNewborn = isArmed
      watchers.append(watcher)
    case .cancel(let watcher):
      watcher.isCutOff = isArmed
      watcher.cancel()
    case .releaseEar(let watcher): watcher.releaseEar()
    case .removeObservers(let watcher):
      watcher.isCutOff = isArmed
      if let ear = watcher.ear { plants[watcher.node]?.removeObservers(ear) }
      watcher.cancel()
    case .create(let id, let uuid, let isBush): make(id, uuid, isBush: isBush)
    case .drop(let id): performDrop(id)
    case .copy(let id, let keepingUUIDs): performCopy(id, keepingUUIDs)
    case .modify(let number, let steps, let throwing):
      performModify(number, steps: steps, throwing: throwing)
    }
  }

  func performList(
    _ id: Int, _ key: ListKey, _ edits: [ListEdit], _ way: ForestOperation.Way
  ) {
    let plant = plants[id]!
    let old = reference.nodes[id]!.list(key)
    var new = old
    for edit in edits { edit.perform(on: &new) }
    func change(_ list: inout ModelArray<Plant>) {
      for edit in edits { edit.perform(on: &list, plant: { plants[$0]! }, number: self.id(of:)) }
    }
    // Of two models with one UUID the first to come stays. Which one that is in a series of steps is not
    // told by the list that they lead to.
    var uuids: Set<UUID> = []
    let tree = new.reduce(into: Set<Int>()) { $0.formUnion(reference.reach($1)) }
    let isAmbiguous = tree.contains { !uuids.insert(reference.nodes[$0]!.uuid).inserted }
    // Steps that lead back to where they began are steps all the same to coalesced observers.
    if new == old || edits.count > 1 { maybe.insert(id) }
    reference.assign(id, key, new)
    switch isAmbiguous ? .assigned : way {
    case .inPlace: plant.change(key, change)
    case .assigned: plant[key] = ModelArray(new.map { plants[$0]! })
    case .copied:
      var copy = plant[key]
      change(&copy)
      plant[key] = copy
    }
  }
}
