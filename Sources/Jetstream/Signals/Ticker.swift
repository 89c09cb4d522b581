/// Delivers what was collected since the last turn: the run-loop tick of one isolation domain.
///
/// A scope on an actor uses that actor's ticker, ``Ticker/on(_:)``. A ``manual()`` ticker ticks only
/// when told to and reads no clock, for tests, simulations and code that owns its loop.
///
/// A ticker holds its actor weakly: an actor that owns its scope can be released. A tick that is
/// due when the actor is gone does not happen.
public final class Ticker {
  private enum Mode {
    case manual
    case actor(WeakActor)
  }

  private struct Job {
    let due: Duration
    let action: () -> Void
  }

  private let mode: Mode
  private let start = ContinuousClock.now
  // Everything here is used in one isolation domain, and no access to it is open while other code runs.
  @exclusivity(unchecked) private var manualTime: Duration = .zero
  @exclusivity(unchecked) private var nextTurn: [() -> Void] = []
  @exclusivity(unchecked) private var jobs: [Job] = []
  /// Clients that have something to deliver.
  @exclusivity(unchecked) private var appointments = Appointments()
  /// Models with something for their coalesced observers.
  @exclusivity(unchecked) private var dirtyModels = DirtyModels()
  /// What has something to evaluate in the next tick, although no model that it follows has changed.
  @exclusivity(unchecked) private var evaluations: [any TickEvaluation] = []
  @exclusivity(unchecked) private var isTurnScheduled = false
  /// When tasks that sleep will wake this ticker. None is started while an earlier one is to come,
  /// so that short waits beside a long one leave nothing behind.
  private(set) var alarms: [Duration] = []

  private init(mode: Mode) { self.mode = mode }

  deinit { dirtyModels.forget() }

  /// A ticker that is moved by ``tick()`` and ``advance(by:)`` alone.
  public static func manual() -> Ticker { Ticker(mode: .manual) }

  /// The ticker of `actor`, the same one for every scope and observer on it.
  public static func on(_ actor: any Actor) -> Ticker { TickerRegistry.ticker(for: actor) }

  static func make(for actor: WeakActor) -> Ticker { Ticker(mode: .actor(actor)) }

  /// Time since the ticker was made: the clock's, or what ``advance(by:)`` added up to.
  public var now: Duration {
    switch mode {
    case .manual: manualTime
    case .actor: start.duration(to: .now)
    }
  }

  /// Whether nothing waits for a tick or for its time.
  package var isIdle: Bool {
    !hasTurn && nextDue == nil
  }

  /// Delivers, in this order: coalesced property and collection observers, live queries, tree
  /// observers, and what the scopes have that is due. What callbacks change belongs to the next tick: a tick never loops.
  ///
  /// Must be called in the ticker's isolation domain; on an actor's ticker it happens by itself.
  public func tick() {
    let now = now
    let clients = appointments.take(dueBy: now)
    let dueJobs = jobs.isEmpty ? [] : takeJobs(dueBy: now)
    let turn = nextTurn
    if !turn.isEmpty { nextTurn = [] }
    clients.forEach { $0.tickWillDeliver() }
    deliverToObservers()
    clients.forEach { $0.tickDidDeliver() }
    if !turn.isEmpty { for action in turn { action() } }
    if !dueJobs.isEmpty { for job in dueJobs { job.action() } }
    scheduleIfNeeded()
  }

  private func takeJobs(dueBy now: Duration) -> [Job] {
    let due = jobs.filter { $0.due <= now }.sorted { $0.due < $1.due }
    jobs.removeAll { $0.due <= now }
    return due
  }

  /// Moves a manual ticker's time forward, ticking at each moment at which something is due.
  public func advance(by duration: Duration) {
    guard case .manual = mode else {
      preconditionFailure(
        "Only a manual ticker can be advanced; this one follows its actor's clock.")
    }
    let end = manualTime + duration
    if hasTurn { tick() }
    while let due = nextDue, due <= end {
      manualTime = max(manualTime, due)
      tick()
    }
    manualTime = end
    if hasTurn { tick() }
  }

  /// Calls the coalesced observers of everything that has changed so far.
  func deliverToObservers() {
    if dirtyModels.isEmpty, evaluations.isEmpty { return }
    let waiting = evaluations
    if !waiting.isEmpty { evaluations = [] }
    var work = dirtyModels.take()
    DirtyModels.deliver(work, waiting)
    // What goes with the models may call back, so they go before the room is given back.
    work.clear()
    dirtyModels.giveBack(&work)
  }

  /// Has `evaluation` run in the next tick. Nobody asks twice for one tick.
  func enqueue(_ evaluation: any TickEvaluation) {
    evaluations.append(evaluation)
    if !isTurnScheduled { scheduleIfNeeded() }
  }

  /// Queues a model for the next tick.
  func enqueue(_ record: ModelRecord) {
    dirtyModels.append(record)
    if !isTurnScheduled { scheduleIfNeeded() }
  }

  /// Runs `action` at the first tick that is at least `delay` from now.
  package func perform(after delay: Duration = .zero, _ action: @escaping () -> Void) {
    if delay <= .zero {
      nextTurn.append(action)
    } else {
      jobs.append(Job(due: now + delay, action: action))
    }
    scheduleIfNeeded()
  }

  /// Lets the first tick that is at least `delay` from now serve `client`, instead of what it asked for
  /// before.
  func request(_ client: any TickClient, after delay: Duration) {
    appointments.make(for: client.seat, due: now + delay)
    scheduleIfNeeded()
  }

  private var hasTurn: Bool {
    !nextTurn.isEmpty || !dirtyModels.isEmpty || !evaluations.isEmpty
  }

  /// When the first of the timed jobs and appointments is due.
  private var nextDue: Duration? {
    let job = jobs.isEmpty ? nil : jobs.min { $0.due < $1.due }?.due
    guard let job, let appointment = appointments.next else { return job ?? appointments.next }
    return min(job, appointment)
  }

  private func scheduleIfNeeded() {
    guard case .actor(let actor) = mode else { return }
    if hasTurn, !isTurnScheduled {
      isTurnScheduled = true
      let home = HomeReference(self, on: actor)
      Task { await home.perform { $0.alarmRang(due: nil) } }
    }
    if let due = nextDue, alarms.allSatisfy({ due < $0 }) {
      alarms.append(due)
      let home = HomeReference(self, on: actor)
      let delay = due - now
      Task {
        try? await Task.sleep(for: delay)
        await home.perform { $0.alarmRang(due: due) }
      }
    }
  }

  private func alarmRang(due: Duration?) {
    if let due { alarms.removeAll { $0 == due } } else { isTurnScheduled = false }
    tick()
  }
}
