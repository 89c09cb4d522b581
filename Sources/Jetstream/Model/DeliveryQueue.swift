/// The models and the queries whose observers one ticker calls at its next tick.
///
/// Made by the first write or query that has something to deliver, so that the ticker need not know of models.
final class DeliveryQueue: TickQueue {
  // Everything here is used in one isolation domain, and no access to it is open while other code runs.
  @exclusivity(unchecked) private var models = DirtyModels()
  /// Evaluations that asked for the next tick, although no model that they follow has changed.
  @exclusivity(unchecked) private var evaluations: [any TickEvaluation] = []
  /// The innermost delivery whose observers are being called.
  @exclusivity(unchecked) private var running: RunningDelivery?

  deinit { models.forget() }

  var isEmpty: Bool { models.isEmpty && evaluations.isEmpty }

  func append(_ record: ModelRecord) { models.append(record) }
  func append(_ evaluation: any TickEvaluation) { evaluations.append(evaluation) }

  func deliver() {
    if isEmpty { return }
    let waiting = evaluations
    if !waiting.isEmpty { evaluations = [] }
    var work = models.take()
    let outer = running
    let delivery = RunningDelivery(DirtyModels.collect(work, waiting), within: outer)
    running = delivery
    delivery.run()
    running = outer
    // Releasing the models may call back, so they are released before the buffer is returned.
    work.clear()
    models.giveBack(&work)
  }

  func complete() { running?.complete() }
}

/// The calls of one tick: first property observers, then live queries, then tree observers.
///
/// An observer may change models without notifying others. Those have to be called with the changes of the tick before
/// that, and not afterwards. So a delivery keeps its place before it makes a call, and the calls that are left can be made
/// within that call; there are none left when control comes back to it.
///
/// The deliveries of one ticker form a chain, the innermost first, since an observer may run another tick.
private final class RunningDelivery {
  private let delivery: Delivery
  private let outer: RunningDelivery?
  @exclusivity(unchecked) private var nextObservation = 0
  @exclusivity(unchecked) private var nextQuery = 0
  @exclusivity(unchecked) private var nextTree = 0

  init(_ delivery: Delivery, within outer: RunningDelivery?) {
    (self.delivery, self.outer) = (delivery, outer)
  }

  /// Makes the calls that are left, and removes observations whose observer has been released.
  func run() {
    while nextObservation < delivery.observations.count {
      let observation = delivery.observations[nextObservation]
      nextObservation += 1
      observation.isTriggered = false
      if !observation.composites.isEmpty { observation.refreshComposites() }
      if !observation.call() { observation.drop() }
    }
    while nextQuery < delivery.queries.count {
      nextQuery += 1
      delivery.queries[nextQuery - 1].deliver()
    }
    while nextTree < delivery.trees.count {
      let tree = delivery.trees[nextTree]
      nextTree += 1
      if tree.isLive { tree.handler?() }
    }
  }

  /// Makes the calls that are left of this delivery and of those around it, the outermost first. Called by an observer.
  func complete() {
    outer?.complete()
    // The observer may be one of the query that was taken last.
    if nextQuery > 0 { delivery.queries[nextQuery - 1].complete() }
    run()
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
  /// Calls those observers that a running call of `deliver()` has not called yet.
  func complete()
}
