/// Delivers collected changes to observers and scopes, one tick at a time, in one isolation domain.
///
/// A scope on an actor uses the ticker of that actor, ``Ticker/on(_:)``. A ``manual()`` ticker
/// ticks only when the app calls it, and reads no clock: use it in tests, simulations and code with
/// its own loop.
///
/// A ticker holds its actor weakly, so that an actor that owns its scope can be released. A tick
/// that is due after the actor was released does not happen.
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
  /// Clients that asked to be served, with their due times.
  @exclusivity(unchecked) private var appointments = Appointments()
  /// The work for coalesced observers; nil until there is some for the first time.
  @exclusivity(unchecked) var queue: (any TickQueue)?
  @exclusivity(unchecked) private var isTurnScheduled = false
  @exclusivity(unchecked) private weak var standIn: (any Actor)?
  /// The times at which sleeping tasks will wake this ticker. A new task starts only if it would
  /// wake earlier than all of them, so repeated short waits beside a long one do not accumulate
  /// tasks.
  private(set) var alarms: [Duration] = []

  private init(mode: Mode) { self.mode = mode }

  /// Returns a ticker that ticks only when ``tick()`` or ``advance(by:)`` is called.
  public static func manual() -> Ticker { Ticker(mode: .manual) }

  /// Returns the ticker of `actor`, which all scopes and observers on that actor share.
  public static func on(_ actor: any Actor) -> Ticker { TickerRegistry.ticker(for: actor) }

  /// The actor that this ticker ticks on. A manual ticker, and one whose actor was released, has an actor that stands
  /// for it, keeps it and runs nothing.
  ///
  /// Code that is on no actor passes it to the methods that observe:
  ///
  /// ```swift
  /// let newest = scope.query(Shape.self).live(isolation: scope.ticker.isolation)
  /// ```
  public var isolation: any Actor {
    if case .actor(let actor) = mode, let actor = actor.value { return actor }
    if let standIn { return standIn }
    let made = TickerRegistry.standIn(for: self)
    standIn = made
    return made
  }

  static func make(for actor: WeakActor) -> Ticker { Ticker(mode: .actor(actor)) }

  /// The time since the ticker was made: by the clock or, on a manual ticker, the sum of all
  /// ``advance(by:)`` calls.
  package var now: Duration {
    switch mode {
    case .manual: manualTime
    case .actor: start.duration(to: .now)
    }
  }

  /// True while nothing is scheduled, neither for the next tick nor for a later time.
  package var isIdle: Bool {
    !hasTurn && nextDue == nil
  }

  /// The number of actions that wait for a later time.
  package var jobCount: Int { jobs.count }

  /// Runs one tick now. It delivers, in this order, to coalesced property and collection observers,
  /// live queries, tree observers, and the scopes that are due. Changes made by callbacks belong to
  /// the next tick, so a tick never loops.
  ///
  /// Call it in the ticker's isolation domain. On an actor's ticker, ticks also run automatically.
  public func tick() {
    let now = now
    // Due clients and jobs are taken first. Those that callbacks add during the delivery wait for
    // the next tick.
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

  /// Moves the time of a manual ticker forward and ticks at each moment at which work is due. Traps
  /// on the ticker of an actor.
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

  /// Delivers all changes made so far to coalesced observers.
  func deliverToObservers() {
    queue?.deliver()
  }

  /// Makes sure that there will be a tick. Called after something was added to the queue.
  func queueDidGrow() {
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

  /// Serves `client` at the first tick that is at least `delay` from now. Replaces its earlier
  /// request.
  func request(_ client: any TickClient, after delay: Duration) {
    appointments.make(for: client.seat, due: now + delay)
    scheduleIfNeeded()
  }

  private var hasTurn: Bool {
    !nextTurn.isEmpty || queue?.isEmpty == false
  }

  /// The earliest due time of the timed jobs and client requests; nil if there are none.
  private var nextDue: Duration? {
    let job = jobs.isEmpty ? nil : jobs.min { $0.due < $1.due }?.due
    guard let job, let appointment = appointments.next else { return job ?? appointments.next }
    return min(job, appointment)
  }

  private func scheduleIfNeeded() {
    guard case .actor(let actor) = mode else { return }
    if hasTurn, !isTurnScheduled {
      isTurnScheduled = true
      home(on: actor).performLater { $0.alarmRang(due: nil) }
    }
    if let due = nextDue, alarms.allSatisfy({ due < $0 }) {
      alarms.append(due)
      let home = home(on: actor)
      let delay = due - now
      Task {
        try? await Task.sleep(for: delay)
        await home.perform { $0.alarmRang(due: due) }
      }
    }
  }

  private func home(on actor: WeakActor) -> HomeReference<Ticker> {
    HomeReference(self, on: actor, isPermanent: actor.isMain)
  }

  private func alarmRang(due: Duration?) {
    if let due { alarms.removeAll { $0 == due } } else { isTurnScheduled = false }
    tick()
  }
}

/// The work that waits for the next tick of a ticker.
///
/// The ticker asks only whether there is any and when to do it: what it consists of is known to those that fill the
/// queue.
protocol TickQueue: AnyObject {
  /// True if no work waits.
  var isEmpty: Bool { get }
  /// Does the work that waits. Work that is added meanwhile belongs to the next tick.
  func deliver()
}
