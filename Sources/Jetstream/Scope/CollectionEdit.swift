import Foundation

/// The changes of a collection since the last change set, as operations, with the operations that undo them.
///
/// Made from the net change: a change that was undone within the interval is in neither. Cost: O(k log k) for k
/// steps, and the time to find the positions of the k models; the size of the collection does not matter.
struct CollectionEdit {
  /// The operations from the old content to the new one.
  let forward: [PropertyOperation]
  /// The operations from the new content to the old one.
  let backward: [PropertyOperation]

  /// Makes the operations for `steps`, which have led to the content `now`.
  init(_ steps: some Collection<ListOperation>, now: ModelList) {
    let stretches = StepComposition(steps, newCount: now.count).stretches()
    if Self.isNothingToOthers(stretches, steps, now) {
      (forward, backward) = ([], [])
      return
    }
    var removals: [PropertyOperation] = []
    var placements: [PropertyOperation] = []
    // Stretches are placed from front to back: when a model is placed, everything in front of it is in place
    // already.
    var last = Trail()
    let lastThatStays = stretches.new.lastIndex(where: \.stays) ?? -1
    for (place, stretch) in stretches.new.enumerated() {
      if stretch.stays {
        last.pass(stretch.count) { now[stretch.newOffset + $0] }
        continue
      }
      for offset in 0..<stretch.count {
        let model = now[stretch.newOffset + offset]
        let at = last.place(isLast: place > lastThatStays)
        placements.append(
          stretch.isNew ? .insert(model.uuid, at) : .move(model.uuid, at))
        last.pass(1) { _ in model }
      }
    }
    for (_, model) in stretches.removed { removals.append(.remove(model.uuid)) }
    forward = removals + placements

    removals = []
    placements = []
    for stretch in stretches.new where stretch.isNew {
      for offset in 0..<stretch.count {
        removals.append(.remove(now[stretch.newOffset + offset].uuid))
      }
    }
    // The same in the other direction: removed models are put back between those that stayed.
    last = Trail()
    var old = stretches.new.filter { !$0.isNew }.map { Old(offset: $0.oldOffset, stretch: $0) }
    old += stretches.removed.map { Old(offset: $0.offset, model: $0.model) }
    old.sort { $0.offset < $1.offset }
    let lastOld = old.lastIndex { $0.stretch?.stays == true } ?? -1
    for (place, entry) in old.enumerated() {
      if let stretch = entry.stretch, stretch.stays {
        last.pass(stretch.count) { now[stretch.newOffset + $0] }
        continue
      }
      for offset in 0..<(entry.stretch?.count ?? 1) {
        let model = entry.model ?? now[entry.stretch!.newOffset + offset]
        let at = last.place(isLast: place > lastOld)
        placements.append(entry.model == nil ? .move(model.uuid, at) : .insert(model.uuid, at))
        last.pass(1) { _ in model }
      }
    }
    backward = removals + placements
  }

  /// Returns true if other replicas, which know models by their UUIDs, see no difference: an instance may have been
  /// replaced by another one with its UUID. Only then does this cost O(n) in the size of the collection.
  private static func isNothingToOthers(
    _ stretches: (new: [StepComposition.Stretch], removed: [(offset: Int, model: ModelObject)]),
    _ steps: some Collection<ListOperation>, _ now: ModelList
  ) -> Bool {
    let inserted = stretches.new.filter(\.isNew)
    let count = inserted.reduce(0) { $0 + $1.count }
    if count == 0 || count != stretches.removed.count { return false }
    let removed = Set(stretches.removed.map { $0.model.uuid })
    for stretch in inserted {
      for offset in 0..<stretch.count where !removed.contains(now[stretch.newOffset + offset].uuid)
      {
        return false
      }
    }
    let before = Array(steps).undone(on: now)
    return before.count == now.count
      && zip(before.models, now.models).allSatisfy { $0.uuid == $1.uuid }
  }

  /// Models that stood side by side in the old content: a removed one, or a stretch of the new content.
  private struct Old {
    let offset: Int
    var stretch: StepComposition.Stretch?
    var model: ModelObject?
  }

  /// The last models that were passed on the way through a collection.
  private struct Trail {
    private var models: [ModelObject] = []

    /// Passes `count` models; `model` returns the one at an offset.
    mutating func pass(_ count: Int, _ model: (Int) -> ModelObject) {
      for offset in max(0, count - CollectionContent.anchorCount)..<count {
        if models.count == CollectionContent.anchorCount { models.removeFirst() }
        models.append(model(offset))
      }
    }

    /// Returns the place for the next model.
    func place(isLast: Bool) -> PropertyOperation.Place {
      if isLast { return .end }
      if models.isEmpty { return .start }
      return .after(models.reversed().map(\.uuid))
    }
  }
}
