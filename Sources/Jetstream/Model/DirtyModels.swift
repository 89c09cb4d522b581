import Synchronization

/// The models that have something for coalesced observers, in the order in which they changed.
struct DirtyModels {
  private var records: ContiguousArray<ModelRecord> = []

  var isEmpty: Bool { records.isEmpty }

  mutating func append(_ record: ModelRecord) { records.append(record) }

  /// Empties the queue without delivering: another ticker may take the models.
  mutating func forget() {
    for record in records { record.isQueued = false }
    records = []
  }

  /// A model with the properties that have changed.
  typealias Work = ContiguousArray<(ModelRecord, PropertySet)>

  /// Empties the queue: what observers change from here on is queued anew, for the next tick.
  mutating func take() -> Work {
    let queued = records
    records = []
    var work: Work = []
    work.reserveCapacity(queued.count)
    for record in queued {
      work.append((record, record.dirty))
      record.dirty = PropertySet()
      record.isQueued = false
    }
    return work
  }

  /// Calls the observers of all models in `work`: property observers, then tree observers.
  static func deliver(_ work: Work) {
    if work.isEmpty { return }
    var observations: [ChangeObservation] = []
    var composites: [CompositeWatch] = []
    func trigger(_ observation: ChangeObservation) {
      guard !observation.isTriggered, observation.isLive else { return }
      observation.isTriggered = true
      observations.append(observation)
    }
    for (record, dirty) in work {
      guard let observers = record.observers else { continue }
      var foundDead = false
      for entry in observers.changes where entry.properties?.intersects(dirty) ?? true {
        switch entry.target {
        case .observation(let observation):
          if observation.isLive { trigger(observation) } else { foundDead = true }
        case .composite(let watch):
          if !watch.isLive {
            foundDead = true
          } else if !watch.isTriggered {
            watch.isTriggered = true
            composites.append(watch)
          }
        }
      }
      if foundDead { observers.dropDead() }
    }
    for watch in composites {
      watch.isTriggered = false
      if watch.evaluate(), let observation = watch.observation { trigger(observation) }
    }
    let trees = TreeObservers.concerned(by: work)
    for observation in observations {
      observation.isTriggered = false
      if observation.isLive { observation.handler?() }
    }
    for tree in trees where tree.isLive { tree.handler?() }
  }
}

/// Finds the tree observers that a tick concerns.
enum TreeObservers {
  /// How many tree observations exist in the process, so that writes cost nothing where none do.
  private static let counter = Atomic<Int>(0)

  static func count(_ delta: Int) { counter.add(delta, ordering: .relaxed) }

  /// Whether a write to the model might concern a tree observer.
  static func mayConcern(_ record: ModelRecord) -> Bool { counter.load(ordering: .relaxed) > 0 }

  /// The observations on the changed models and on everything above them, each once.
  static func concerned(
    by work: DirtyModels.Work
  ) -> [TreeObservation] {
    guard counter.load(ordering: .relaxed) > 0 else { return [] }
    var result: [TreeObservation] = []
    var visited: Set<ObjectIdentifier> = []
    var stack = work.map(\.0)
    stack.reverse()
    while let record = stack.popLast() {
      guard visited.insert(ObjectIdentifier(record)).inserted else { continue }
      result.append(contentsOf: record.observers?.trees.filter(\.isLive) ?? [])
      record.parents.forEach { stack.append($0.parent) }
    }
    return result
  }
}
