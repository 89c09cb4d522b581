import Synchronization

/// The models that have something for coalesced observers, in the order in which they changed.
struct DirtyModels {
  private var records: ContiguousArray<ModelRecord> = []
  /// Room for the next ``Work``, from the last one.
  private var room: Work = []

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
    var work: Work = []
    swap(&work, &room)
    if work.capacity < records.count { work.reserveCapacity(records.count) }
    // A model that has changed its scope may stand in the queues of two tickers.
    for record in records where !record.dirty.isEmpty {
      work.append((record, record.dirty))
      record.dirty = PropertySet()
      record.isQueued = false
    }
    records.clear()
    return work
  }

  /// What was taken is delivered, and `work` is empty; its room is used again.
  mutating func giveBack(_ work: inout Work) { swap(&work, &room) }

  /// Calls the observers of all models in `work`: property observers, those of live queries, then tree
  /// observers. `evaluations` wait for this tick besides what follows the models.
  static func deliver(_ work: Work, _ evaluations: [any TickEvaluation] = []) {
    if work.isEmpty, evaluations.isEmpty { return }
    var delivery = Delivery()
    for evaluation in evaluations { delivery.trigger(evaluation) }
    for (record, dirty) in work { delivery.collect(from: record, dirty) }
    delivery.evaluateFollowers()
    delivery.evaluateQueries()
    let trees = TreeObservers.concerned(by: work)
    delivery.callObservers()
    delivery.callQueries()
    for tree in trees where tree.isLive { tree.handler?() }
  }
}

/// What one tick has to deliver: found out first, so that observers can do what they like.
struct Delivery {
  private var observations: ContiguousArray<ChangeObservation> = []
  private var followers: ContiguousArray<Follower> = []
  private var queries: ContiguousArray<any TickEvaluation> = []

  /// Finds what waits for changes of `dirty` properties of a model.
  mutating func collect(from record: ModelRecord, _ dirty: PropertySet) {
    let moment = record.changedAt
    record.nodes.forEach { node in
      if node.concerns(dirty) { node.propertiesChanged(dirty, at: moment, &self) }
    }
  }

  /// Has the observation called in this tick, once.
  mutating func trigger(_ observation: ChangeObservation) {
    guard !observation.isTriggered else { return }
    observation.isTriggered = true
    observations.append(observation)
  }

  /// Has the follower evaluated in this tick, once.
  mutating func trigger(_ follower: Follower) {
    guard !follower.isTriggered else { return }
    follower.isTriggered = true
    followers.append(follower)
  }

  /// Has the query evaluated in this tick; it is triggered once.
  mutating func trigger(_ query: any TickEvaluation) { queries.append(query) }

  fileprivate func evaluateQueries() { for query in queries { query.evaluate() } }
  fileprivate func callQueries() { for query in queries { query.deliver() } }

  fileprivate mutating func evaluateFollowers() {
    let all = followers
    followers = []
    for follower in all {
      follower.isTriggered = false
      if follower.isLive { follower.readsChanged(&self) } else { follower.end() }
    }
  }

  /// Calls the observations in the order in which they were triggered, and lets go of those whose
  /// observer has gone.
  fileprivate func callObservers() {
    for observation in observations {
      observation.isTriggered = false
      if !observation.composites.isEmpty { observation.refreshComposites() }
      if !observation.call() { observation.drop() }
    }
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
    var candidates: [(tree: TreeObservation, record: ModelRecord)] = []
    var visited: Set<ObjectIdentifier> = []
    // The latest change comes first, so that it is the one that each ancestor is looked at for.
    var stack = work.reversed().map { (record: $0.0, changedAt: $0.0.changedAt) }
    stack.sort { $0.changedAt < $1.changedAt }
    while let (record, changedAt) = stack.popLast() {
      guard visited.insert(ObjectIdentifier(record)).inserted else { continue }
      if let observers = record.observers {
        var foundDead = false
        for tree in observers.trees {
          if !tree.isLive {
            foundDead = true
          } else if tree.madeAt <= changedAt {
            if tree.pattern == nil {
              result.append(tree)
            } else {
              candidates.append((tree, record))
            }
          }
        }
        if foundDead { observers.dropDead() }
      }
      record.parents.forEach { stack.append(($0.parent, changedAt)) }
    }
    if candidates.isEmpty { return result }
    let search = PatternSearch(work)
    for (tree, record) in candidates
    where search.finds(tree.pattern!, below: record, since: tree.madeAt) {
      result.append(tree)
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
