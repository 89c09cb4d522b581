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

  private struct Appointment {
    let due: Duration
    let client: any TickClient
  }

  private let mode: Mode
  private let start = ContinuousClock.now
  private var manualTime: Duration = .zero
  private var nextTurn: [() -> Void] = []
  private var jobs: [Job] = []
  /// Clients that have something to deliver, in the order in which they asked.
  private var appointments: [Appointment] = []
  /// Models with something for their coalesced observers.
  private var dirtyModels = DirtyModels()
  private var isTurnScheduled = false
  private var scheduledTimer: Duration?

  private init(mode: Mode) { self.mode = mode }

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
  public var isIdle: Bool {
    nextTurn.isEmpty && jobs.isEmpty && appointments.isEmpty && dirtyModels.isEmpty
  }

  /// Delivers, in this order: coalesced property and collection observers, tree observers, and what
  /// the scopes have that is due. What callbacks change belongs to the next tick: a tick never loops.
  ///
  /// Must be called in the ticker's isolation domain; on an actor's ticker it happens by itself.
  public func tick() {
    let now = now
    let clients = appointments.filter { $0.due <= now }.map(\.client)
    appointments.removeAll { $0.due <= now }
    let dueJobs = jobs.filter { $0.due <= now }.sorted { $0.due < $1.due }
    jobs.removeAll { $0.due <= now }
    let turn = nextTurn
    nextTurn = []
    for client in clients { client.tickWillDeliver() }
    deliverToObservers()
    for client in clients { client.tickDidDeliver() }
    for action in turn { action() }
    for job in dueJobs { job.action() }
    scheduleIfNeeded()
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
  func deliverToObservers() { DirtyModels.deliver(dirtyModels.take()) }

  /// Queues a model for the next tick.
  func enqueue(_ record: ModelRecord) {
    dirtyModels.append(record)
    if !isTurnScheduled { scheduleIfNeeded() }
  }

  /// Runs `action` at the first tick that is at least `delay` from now.
  func perform(after delay: Duration = .zero, _ action: @escaping () -> Void) {
    if delay <= .zero {
      nextTurn.append(action)
    } else {
      jobs.append(Job(due: now + delay, action: action))
    }
    scheduleIfNeeded()
  }

  /// Lets the first tick that is at least `delay` from now serve `client`.
  func request(_ client: any TickClient, after delay: Duration) {
    appointments.append(Appointment(due: now + delay, client: client))
    scheduleIfNeeded()
  }

  private var hasTurn: Bool { !nextTurn.isEmpty || !dirtyModels.isEmpty }

  /// When the first of the timed jobs and appointments is due.
  private var nextDue: Duration? {
    let job = jobs.min { $0.due < $1.due }?.due
    let appointment = appointments.min { $0.due < $1.due }?.due
    guard let job, let appointment else { return job ?? appointment }
    return min(job, appointment)
  }

  private func scheduleIfNeeded() {
    guard case .actor(let actor) = mode else { return }
    if hasTurn, !isTurnScheduled {
      isTurnScheduled = true
      let alarm = Alarm(ticker: self, actor: actor, isTurn: true)
      Task { await alarm.ring(after: .zero) }
    }
    if let due = nextDue, scheduledTimer.map({ due < $0 }) ?? true {
      scheduledTimer = due
      let alarm = Alarm(ticker: self, actor: actor, isTurn: false)
      let delay = due - now
      Task { await alarm.ring(after: delay) }
    }
  }

  private func alarmRang(isTurn: Bool) {
    if isTurn { isTurnScheduled = false } else { scheduledTimer = nil }
    tick()
  }

  /// What the task that wakes a ticker up carries to the actor.
  ///
  /// Sound although a ticker is not Sendable: the task only moves the reference; the one method that
  /// follows it is isolated to the ticker's own actor.
  private struct Alarm: @unchecked Sendable {
    weak var ticker: Ticker?
    let actor: WeakActor
    let isTurn: Bool

    init(ticker: Ticker, actor: WeakActor, isTurn: Bool) {
      self.ticker = ticker
      self.actor = actor
      self.isTurn = isTurn
    }

    nonisolated func ring(after delay: Duration) async {
      if delay > .zero { try? await Task.sleep(for: delay) }
      guard let actor = actor.value else { return }
      await tick(on: actor)
    }

    private func tick(on actor: isolated any Actor) async { ticker?.alarmRang(isTurn: isTurn) }
  }
}

/// Something that takes part in a tick around the delivery to observers.
protocol TickClient: AnyObject {
  /// Seals what was collected: what observers do from here on belongs to the next tick.
  func tickWillDeliver()
  /// Delivers what was sealed.
  func tickDidDeliver()
}
