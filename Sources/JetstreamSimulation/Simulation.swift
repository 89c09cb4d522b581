import Jetstream

/// A server and some clients in one thread, with a network and a clock that follow from a seed.
///
/// Engines, scopes and models are the real ones; sockets, time and chance are not. What happens is a list
/// of ``SimulationEvent``s: edits, the passing of time, and faults. It is checked
///
/// - after each event: the engines' own invariants, that what was accepted is there, and that clients have
///   told nobody of what a crash may take from their disks;
/// - whenever all has come to rest, and at the end: that all replicas are equal byte for byte, that
///   nothing is pending and every `ChangeSetHandle` says what the server has said, that the server has
///   told everybody what it has, that what was accepted is still there, and that clients have noticed each
///   loss of the server's history, and no other.
///
/// Most of that are checked by references that know no engine: plain dictionaries that are made of the
/// frames.
///
/// ```swift
/// for seed in 0..<1000 as Range<UInt64> {
///   let simulation = Simulation(seed: seed, world: .drawing, configuration: .rough)
///   if let failure = simulation.run().failure {
///     print(simulation.shrink(failure))
///   }
/// }
/// ```
///
/// The same seed does the same in every process, as long as edits take all chance, and the UUIDs of new
/// models, from the generator that they are given. For tests of an app: describe its models in a
/// ``SimulationWorld``.
public struct Simulation: Sendable {
  /// What everything follows from.
  public let seed: UInt64
  /// The models and how they are edited.
  public let world: SimulationWorld
  /// How large it is, and what goes wrong.
  public let configuration: SimulationConfiguration
  /// Something that is broken on purpose, to see whether it is found.
  var sabotage = Sabotage()

  /// Makes a simulation. Nothing happens before it is run.
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

  /// Runs the events that follow from the seed, up to the first problem.
  ///
  /// - Parameter traced: whether to write down what happens, which takes longer. A failure always comes with
  ///   a trace: the run is repeated for it.
  public func run(traced: Bool = false) -> SimulationOutcome { run(schedule, traced: traced) }

  /// Runs a list of events, and lets all come to rest behind it.
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

/// What tests break on purpose. Without state, so that a run that is repeated does the same.
struct Sabotage: Sendable {
  /// What arrives instead of a frame.
  var frames: @Sendable (_ frame: [UInt8], _ toServer: Bool, _ client: Int) -> [[UInt8]] = {
    frame, _, _ in [frame]
  }
  /// Called after each event with the client that it was about.
  var afterEvent: @Sendable (SimulationEvent, Scope) -> Void = { _, _ in }
  /// Whether a crash of the server takes records with it that were reported as safe.
  var losesSafeRecords = false
}

/// What a run has come to.
public struct SimulationOutcome: Sendable {
  /// What is wrong; nil if nothing is.
  public let failure: SimulationFailure?
  /// What has happened, in words, if it was traced.
  public let trace: [String]
  /// A number that all frames that have arrived come to, if it was traced: another one means that
  /// something else has happened.
  public let digest: UInt64
  /// How much time has passed in the run.
  public let virtualTime: Duration
  /// The number of events that have happened and were checked, with the rest at the end.
  public let events: Int
}

/// What is wrong in a run, with what leads there.
public struct SimulationFailure: Error, Sendable, CustomStringConvertible {
  /// What a problem is about.
  public enum Kind: String, Sendable {
    /// A replica is not equal to the server's.
    case divergence
    /// It does not come to rest: somebody waits for ever.
    case unrest
    /// An engine finds itself wrong.
    case invariant
    /// What the server has told is not what it has.
    case stream
    /// What was accepted is not there.
    case intent
    /// A change set was decided twice.
    case decidedTwice
    /// A handle does not say what the server has said.
    case handle
    /// A client does not know exactly what does not count of what was changed there.
    case conflict
    /// A client does not say how it stands to the server.
    case state
    /// A message that has no place in the protocol.
    case messages
    /// A client has not noticed that the server has lost its history, or has taken it for lost when it was
    /// not.
    case history
    /// A client sends or takes in what its mode, or its app, does not let it.
    case mode
    /// A client relies on something that a crash may take from its disk.
    case durability
    /// What an app shows is not what is in its scope.
    case app
    /// An observer was told of a change that nobody can see, or not told of one.
    case notification
    /// What is kept for what is over is still there, or more is kept than the limits allow.
    case tables
  }

  struct Problem {
    let kind: Kind
    let text: String
  }

  /// The seed of the run.
  public let seed: UInt64
  /// The name of the world that it was run in.
  public let world: String
  /// What it was run with. After shrinking there may be fewer clients.
  public let configuration: SimulationConfiguration
  /// The place in ``events`` of the event after which it was noticed; their number stands for the rest at
  /// the end.
  public let step: Int
  /// What the first problem is about.
  public let kind: Kind
  /// What is wrong, in words.
  public let problems: [String]
  /// The events of the run.
  public let events: [SimulationEvent]
  /// What has happened, in words; empty if it was not traced.
  public let trace: [String]

  /// A report with the last lines of the trace.
  public var description: String { report(lines: 40) }

  /// A report with the last `lines` of the trace.
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
