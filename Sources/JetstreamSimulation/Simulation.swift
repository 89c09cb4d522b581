import Jetstream

/// A server and some clients in one thread, with a network and a clock that are derived from a
/// seed.
///
/// Engines, scopes and models are the real ones; sockets, time and chance are simulated. A run
/// performs a list of ``SimulationEvent``s: edits, the passing of time, and faults. It checks
///
/// - after each event: that the engines' invariants hold, that accepted changes are in the server's
///   stream, and that no client has sent or acknowledged anything that a crash could take from its
///   disk;
/// - whenever everything is at rest, and at the end: that all replicas are equal byte for byte;
///   that nothing is pending, and every `ChangeSetHandle` has the outcome that the server has sent;
///   that the server's stream leads to the server's state; that accepted changes are still there;
///   and that clients have noticed each loss of the server's history, and no other.
///
/// Most checks compare with references that share no code with the engines: plain dictionaries that
/// are built from the frames.
///
/// ```swift
/// for seed in 0..<1000 as Range<UInt64> {
///   let simulation = Simulation(seed: seed, world: .workshop, configuration: .rough)
///   if let failure = simulation.run().failure {
///     print(simulation.shrink(failure))
///   }
/// }
/// ```
///
/// The same seed does the same in every process, provided that edits take all chance, and the UUIDs
/// of new models, from the generator that is passed to them. To test an app, describe its models
/// and edits in a ``SimulationWorld``.
public struct Simulation: Sendable {
  /// The seed from which all chance in the run is derived.
  public let seed: UInt64
  /// The models and how they are edited.
  public let world: SimulationWorld
  /// The size of the simulation, its faults and its promises.
  public let configuration: SimulationConfiguration
  /// A deliberate defect, with which tests check that the simulation finds it.
  var sabotage = Sabotage()

  /// Creates a simulation. Nothing happens until it is run. Traps if the configuration leaves no
  /// client.
  public init(
    seed: UInt64, world: SimulationWorld = .workshop,
    configuration: SimulationConfiguration = .rough
  ) {
    precondition(
      (0..<configuration.clients).contains { !configuration.absent.contains($0) },
      "A simulation needs at least one client.")
    self.seed = seed
    self.world = world
    self.configuration = configuration
  }

  /// Runs the events that are derived from the seed, up to the first problem.
  ///
  /// - Parameter traced: whether to record a trace, which takes longer. A failure always comes with
  ///   a trace: an untraced run that fails is repeated with one.
  public func run(traced: Bool = false) -> SimulationOutcome { run(schedule, traced: traced) }

  /// Runs a list of events, and a rest after the last one, up to the first problem.
  public func run(_ events: [SimulationEvent], traced: Bool = false) -> SimulationOutcome {
    let outcome = runOnce(events, traced: traced)
    return outcome.failure == nil || traced ? outcome : runOnce(events, traced: true)
  }

  func runOnce(_ events: [SimulationEvent], traced: Bool) -> SimulationOutcome {
    let run = SimulationRun(
      seed: seed, world: world, configuration: configuration, sabotage: sabotage,
      isTracing: traced)
    defer { run.end() }
    var steps = 0
    for event in events + [.rest] {
      run.perform(event)
      if !run.problems.isEmpty { break }
      steps += 1
    }
    if configuration.checksTables { run.checkTables() }
    var failure: SimulationFailure?
    if !run.problems.isEmpty {
      failure = SimulationFailure(
        seed: seed, world: world.name, configuration: configuration, step: steps,
        kind: run.problems[0].kind,
        problems: run.problems.map(\.text),
        events: events, trace: run.trace)
    }
    return SimulationOutcome(
      failure: failure, trace: run.trace, digest: run.digest, virtualTime: run.now, events: steps)
  }
}

/// A deliberate defect of a simulation, for tests. It has no state, so that a repeated run does the
/// same.
struct Sabotage: Sendable {
  /// Returns the frames that arrive in place of a frame.
  var frames: @Sendable (_ frame: [UInt8], _ toServer: Bool, _ client: Int) -> [[UInt8]] = {
    frame, _, _ in [frame]
  }
  /// Called after each event of a client, with the client's scope.
  var afterEvent: @Sendable (SimulationEvent, Scope) -> Void = { _, _ in }
  /// True if a crash of the server also removes records that were reported as durable.
  var losesSafeRecords = false
}

/// The outcome of a run.
public struct SimulationOutcome: Sendable {
  /// The failure that was found; nil if all checks have passed.
  public let failure: SimulationFailure?
  /// The trace: a line with the time for each thing that has happened. Empty unless the run was
  /// traced.
  public let trace: [String]
  /// A hash of all frames that the network has delivered, if the run was traced. Runs with
  /// different digests have done different things.
  public let digest: UInt64
  /// The time that has passed on the run's virtual clock.
  public let virtualTime: Duration
  /// The number of events that were performed and checked without a problem, including the rest at
  /// the end.
  public let events: Int
}

/// A problem that a run has found, with the events that lead to it.
public struct SimulationFailure: Error, Sendable, CustomStringConvertible {
  /// The check that a problem belongs to.
  public enum Kind: String, Sendable {
    /// A replica differs from the server's state.
    case divergence
    /// The simulation does not come to rest: a client waits for something that does not happen.
    case unrest
    /// An invariant of an engine is broken.
    case invariant
    /// The server's messages are out of order, or do not lead to the server's state.
    case stream
    /// An accepted change is missing, or only a part of it is there.
    case intent
    /// A change set was decided twice.
    case decidedTwice
    /// A handle has an outcome other than the one that the server has sent.
    case handle
    /// A client's ledger lacks a conflict, or has one too many.
    case conflict
    /// The sync state that a client reports is wrong.
    case state
    /// A message contradicts what was submitted or decided before.
    case messages
    /// A client has not noticed that the server has lost its history, or has reported a loss that
    /// did not happen.
    case history
    /// A client sends or applies changes while its mode or its app forbids it, or reports a sync
    /// that is not complete.
    case mode
    /// A client relies on a record that is not durable, or a log has lost a record that was.
    case durability
    /// The memory of an app, such as a live query, does not fit the app's scope.
    case app
    /// An observer was notified of a change that is not there, or was not notified of one.
    case notification
    /// An engine keeps entries that it does not need any more, or more entries than its limits
    /// allow.
    case tables
  }

  struct Problem {
    let kind: Kind
    let text: String
  }

  /// The seed of the run.
  public let seed: UInt64
  /// The name of the world of the run.
  public let world: String
  /// The configuration of the run. After shrinking, more of its clients may be absent.
  public let configuration: SimulationConfiguration
  /// The index in ``events`` of the event after which the problem was noticed. From `events.count`
  /// on, it was noticed at the end.
  public let step: Int
  /// The check that the first problem belongs to.
  public let kind: Kind
  /// Descriptions of the problems that were noticed, the first one first.
  public let problems: [String]
  /// The events of the run, without the rest at the end.
  public let events: [SimulationEvent]
  /// The trace of the run; empty if it was not traced.
  public let trace: [String]

  /// A report with the last 40 lines of the trace.
  public var description: String { report(lines: 40) }

  /// Returns a report with the last `lines` lines of the trace.
  public func report(lines: Int) -> String {
    let last = step < events.count ? "\(events[step])" : "the rest at the end"
    var text = [
      "seed \(seed), \(configuration.name), \(world), "
        + "\(configuration.clients - configuration.absent.count) clients"
    ]
    text.append("wrong after event \(step + 1) of \(events.count), \(last):")
    text += problems.map { "  " + $0 }
    if events.count <= 60 {
      text.append("events:")
      text += events.enumerated().map { "  \($0 + 1). \($1)" }
    }
    if !trace.isEmpty {
      text.append(trace.count > lines ? "the last of what happened:" : "what happened:")
      text += trace.suffix(lines).map { "  " + $0 }
    }
    return text.joined(separator: "\n")
  }
}
