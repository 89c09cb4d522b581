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

  /// Calls the observers of all models in `work`: property observers, live queries, tree observers.
  /// Composites and queries are evaluated before any of them; `evaluations` are those that wait.
  static func deliver(_ work: Work, _ evaluations: [any TickEvaluation] = []) {
    if work.isEmpty, evaluations.isEmpty { return }
    var evaluations = evaluations
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
          if !observation.isLive {
            foundDead = true
          } else if observation.madeAt <= record.changedAt {
            trigger(observation)
          }
        case .composite(let watch):
          if !watch.isLive {
            foundDead = true
          } else if !watch.isTriggered {
            watch.isTriggered = true
            composites.append(watch)
          }
        case .dependency(let target):
          if let evaluation = target.dependencyDidChange(dirty, at: record.changedAt) {
            evaluations.append(evaluation)
          }
        }
      }
      if foundDead { observers.dropDead() }
    }
    for watch in composites {
      watch.isTriggered = false
      if watch.evaluate(), let observation = watch.observation { trigger(observation) }
    }
    for evaluation in evaluations { evaluation.evaluate() }
    let trees = TreeObservers.concerned(by: work)
    for observation in observations {
      observation.isTriggered = false
      if observation.isLive { observation.handler?() }
    }
    for evaluation in evaluations { evaluation.deliver() }
    for tree in trees where tree.isLive { tree.handler?() }
  }
}

/// Finds the tree observers that a tick concerns.
enum TreeObservers {
  /// How many tree observations there are in the process, so that writes cost nothing where none are.
  private static let counter = Atomic<Int>(0)
  /// How many of them were made on models in no scope: only for these a write outside of a scope has
  /// to look for its ticker above.
  private static let looseCounter = Atomic<Int>(0)

  static func count(_ delta: Int, isLoose: Bool) {
    counter.add(delta, ordering: .relaxed)
    if isLoose { looseCounter.add(delta, ordering: .relaxed) }
  }

  /// Whether a write might concern a tree observer.
  static var exist: Bool { counter.load(ordering: .relaxed) > 0 }

  /// Whether a write to a model in no scope might concern a tree observer.
  static var existOutsideOfScopes: Bool { looseCounter.load(ordering: .relaxed) > 0 }

  /// The observations on the changed models and on everything above them, each once, that were made
  /// before the change.
  static func concerned(
    by work: DirtyModels.Work
  ) -> [TreeObservation] {
    guard exist else { return [] }
    var result: [TreeObservation] = []
    var visited: Set<ObjectIdentifier> = []
    // The latest change comes first, so that it is the one that each ancestor is looked at for.
    var stack = work.reversed().map { (record: $0.0, changedAt: $0.0.changedAt) }
    stack.sort { $0.changedAt < $1.changedAt }
    while let (record, changedAt) = stack.popLast() {
      guard visited.insert(ObjectIdentifier(record)).inserted else { continue }
      for tree in record.observers?.trees ?? [] where tree.isLive && tree.madeAt <= changedAt {
        result.append(tree)
      }
      record.parents.forEach { stack.append(($0.parent, changedAt)) }
    }
    return result
  }
}

/// Tells for a change and an observation which came first: an observer is not told about what had
/// changed before it came.
enum ObservationClock {
  private static let sequence = Atomic<Int>(1)

  static var now: Int { sequence.load(ordering: .relaxed) }

  /// A moment later than every change so far.
  static func next() -> Int { sequence.add(1, ordering: .relaxed).newValue }
}
