import Synchronization

/// The models with changes for coalesced observers, in the order in which they changed.
struct DirtyModels {
  private var records: ContiguousArray<ModelRecord> = []
  /// An empty buffer for the next ``Work``, reused from the last one.
  private var room: Work = []

  var isEmpty: Bool { records.isEmpty }

  mutating func append(_ record: ModelRecord) { records.append(record) }

  /// Empties the queue without delivering, so that another ticker can enqueue the models.
  mutating func forget() {
    for record in records { record.isQueued = false }
    records = []
  }

  /// A model's record with the properties that have changed.
  typealias Work = ContiguousArray<(ModelRecord, PropertySet)>

  /// Empties the queue and returns its content. Changes made by observers afterwards are queued for
  /// the next tick.
  mutating func take() -> Work {
    var work: Work = []
    swap(&work, &room)
    if work.capacity < records.count { work.reserveCapacity(records.count) }
    // A model that has changed its scope may be in the queues of two tickers.
    for record in records where !record.dirty.isEmpty {
      work.append((record, record.dirty))
      record.dirty = PropertySet()
      record.isQueued = false
    }
    records.clear()
    return work
  }

  /// Returns the buffer of delivered work for reuse. `work` must be empty.
  mutating func giveBack(_ work: inout Work) { swap(&work, &room) }

  /// Collects the observers of all models in `work`, and evaluates getters and live queries that have changed.
  /// `evaluations` are evaluated with the live queries.
  static func collect(_ work: Work, _ evaluations: [any TickEvaluation]) -> Delivery {
    var delivery = Delivery()
    for evaluation in evaluations { delivery.trigger(evaluation) }
    for (record, dirty) in work { delivery.collect(from: record, dirty) }
    delivery.evaluateFollowers()
    delivery.evaluateQueries()
    delivery.trees = TreeObservers.concerned(by: work)
    for tree in delivery.trees { tree.isTriggered = true }
    return delivery
  }
}

/// The work of one tick. It is collected before any observer is called, so that observers may
/// change anything.
struct Delivery {
  /// The observations in the order in which they were triggered, each in one running delivery at most.
  private(set) var observations: ContiguousArray<ChangeObservation> = []
  private var followers: ContiguousArray<Follower> = []
  private(set) var queries: ContiguousArray<any TickEvaluation> = []
  /// The tree observations, which may be in a delivery around this one as well: the first of the two calls them.
  fileprivate(set) var trees: [TreeObservation] = []

  /// Collects the nodes that wait for changes of `dirty` properties of a model.
  mutating func collect(from record: ModelRecord, _ dirty: PropertySet) {
    let moment = record.changedAt
    record.nodes.forEach { node in
      if node.concerns(dirty) { node.propertiesChanged(dirty, at: moment, &self) }
    }
  }

  /// Schedules the observation for this tick, at most once.
  mutating func trigger(_ observation: ChangeObservation) {
    guard !observation.isTriggered else { return }
    observation.isTriggered = true
    observations.append(observation)
  }

  /// Schedules the follower for this tick, at most once.
  mutating func trigger(_ follower: Follower) {
    guard !follower.isTriggered else { return }
    follower.isTriggered = true
    followers.append(follower)
  }

  /// Schedules the query for this tick. Callers do this at most once per tick.
  mutating func trigger(_ query: any TickEvaluation) { queries.append(query) }

  fileprivate func evaluateQueries() { for query in queries { query.evaluate() } }

  fileprivate mutating func evaluateFollowers() {
    let all = followers
    followers = []
    for follower in all {
      follower.isTriggered = false
      if follower.isLive { follower.readsChanged(&self) } else { follower.end() }
    }
  }
}

/// Finds the tree observers that the changes of a tick concern.
enum TreeObservers {
  /// The number of tree observations in the process. Writes cost nothing extra while it is 0.
  private static let counter = Atomic<Int>(0)
  /// The number of tree observations made on models in no scope. Only while there are any, a write
  /// outside a scope must look for its ticker in the ancestors.
  private static let looseCounter = Atomic<Int>(0)

  static func count(_ delta: Int, isLoose: Bool) {
    counter.add(delta, ordering: .relaxed)
    if isLoose { looseCounter.add(delta, ordering: .relaxed) }
  }

  /// True if a write may concern a tree observer.
  static var exist: Bool { counter.load(ordering: .relaxed) > 0 }

  /// True if a write to a model in no scope may concern a tree observer.
  static var existOutsideOfScopes: Bool { looseCounter.load(ordering: .relaxed) > 0 }

  /// Returns the observations on the changed models and on all their ancestors, each once, that
  /// were made before the change.
  static func concerned(
    by work: DirtyModels.Work
  ) -> [TreeObservation] {
    guard exist else { return [] }
    var result: [TreeObservation] = []
    var candidates: [(tree: TreeObservation, record: ModelRecord)] = []
    var visited: Set<ObjectIdentifier> = []
    // The latest change comes first, so that each ancestor is visited for its latest change.
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

/// Orders changes and observations in time: an observer is not notified of a model whose last change
/// was made before the observer was registered.
///
/// A model keeps the moment of its last change only, because a moment for each property would cost
/// every write. So an observer that is registered between two writes of a tick may be notified of
/// the first one as well.
enum ObservationClock {
  private static let sequence = Atomic<Int>(1)

  static var now: Int { sequence.load(ordering: .relaxed) }

  /// Returns a moment later than every change so far.
  static func next() -> Int { sequence.add(1, ordering: .relaxed).newValue }
}
