/// The models and the queries whose observers one ticker calls at its next tick.
///
/// Made by the first write or query that has something to deliver, so that the ticker need not know of models.
final class DeliveryQueue: TickQueue {
  // Everything here is used in one isolation domain, and no access to it is open while other code runs.
  @exclusivity(unchecked) private var models = DirtyModels()
  /// Evaluations that asked for the next tick, although no model that they follow has changed.
  @exclusivity(unchecked) private var evaluations: [any TickEvaluation] = []

  deinit { models.forget() }

  var isEmpty: Bool { models.isEmpty && evaluations.isEmpty }

  func append(_ record: ModelRecord) { models.append(record) }
  func append(_ evaluation: any TickEvaluation) { evaluations.append(evaluation) }

  /// Calls first property observers, then live queries, then tree observers.
  ///
  /// An observer may change models without notifying others, which then have to be called with the changes of the tick
  /// before that, and not afterwards. It may also run another tick. So each observation and each query keeps the calls
  /// that it waits for, and leaves out here those that were made within the call of another observer.
  func deliver() {
    if isEmpty { return }
    let waiting = evaluations
    if !waiting.isEmpty { evaluations = [] }
    var work = models.take()
    let delivery = DirtyModels.collect(work, waiting)
    for observation in delivery.observations { observation.callIfDue() }
    for query in delivery.queries { query.deliver() }
    for tree in delivery.trees { tree.callIfDue() }
    // Releasing the models may call back, so they are released before the buffer is returned.
    work.clear()
    models.giveBack(&work)
  }
}

extension Ticker {
  /// Queues a model for the next tick.
  func enqueue(_ record: ModelRecord) {
    deliveries.append(record)
    queueDidGrow()
  }

  /// Schedules `evaluation` for the next tick. Callers enqueue an evaluation at most once per tick.
  func enqueue(_ evaluation: any TickEvaluation) {
    deliveries.append(evaluation)
    queueDidGrow()
  }

  private var deliveries: DeliveryQueue {
    // Sound, since this is the only place that sets the queue. Checked in debug builds.
    if let queue { return unsafeDowncast(queue, to: DeliveryQueue.self) }
    let made = DeliveryQueue()
    queue = made
    return made
  }
}

/// An object that is brought up to date in a tick, before observers are called, and then calls its own observers.
protocol TickEvaluation: AnyObject {
  /// Brings the object up to date. No observer has been called in the tick yet.
  func evaluate()
  /// Calls the object's observers.
  func deliver()
}
