import Foundation
import Jetstream
import JetstreamServer

/// A procedure of the app in ``SimulationWorld/workshop``: begins with some cards of the backlog, and adds one.
struct WorkshopDeal: Procedure {
  static let name = "Workshop.deal"
  let count: Int
  /// The UUID of the card that is added; nil for one of each side's own.
  let card: UUID?

  enum Failure: Error, Codable { case closed(visits: Int) }

  func run(on board: WorkshopBoard) throws(Failure) -> Int {
    board.title = "Deal \(count)"
    // The client and the server do not always count the same.
    if board.visits % 5 == 4 { throw .closed(visits: board.visits) }
    board.visits += count
    for card in board.backlog.prefix(count) {
      board.backlog.remove(card)
      board.active.append(card)
      card.votes += 1
    }
    if let uuid = card, !board.backlog.contains(where: { $0.uuid == uuid }) {
      let made = WorkshopCard(uuid: uuid)
      made.text = "dealt"
      board.backlog.insert(made, at: 0)
    }
    return board.visits
  }
}

/// A procedure of the app in ``SimulationWorld/garden``: waters all beds and moves one to the nursery.
struct GardenRound: Procedure {
  static let name = "Garden.round"
  let water: UInt8

  enum Failure: Error, Codable { case noSeeds }

  func run(on plan: GardenPlan) throws(Failure) -> Int {
    plan.level += 1
    for bed in plan.beds where bed.water < 200 { bed.water += water }
    guard plan.seeds > 0 else { throw .noSeeds }
    plan.seeds -= 1
    plan.steps += 2
    if let bed = plan.beds.first, !plan.nursery.contains(bed) {
      plan.beds.remove(bed)
      plan.nursery.append(bed)
      bed.note = nil
    }
    plan.marks["round"] = plan.nursery.first
    return plan.nursery.count
  }
}

/// The procedure of a world, as its clients call it and its server serves it.
struct SimulatedProcedure: Sendable {
  let name: String
  /// Calls it with arguments that are drawn. Returns nil if it has failed on the client.
  let call: @Sendable (Scope, inout SimulationRandom) -> ChangeSetHandle?
  /// Commits a request. Reports the error to the engine if that fails.
  let commit: @Sendable (ProcedureRequest, ServerEngine) -> Void

  init<P: Procedure>(_ draw: @escaping @Sendable (inout SimulationRandom) -> P) {
    name = P.name
    call = { scope, random in try? scope.call(draw(&random)).changeSet }
    commit = { request, engine in
      do {
        try request.commit(try request.arguments(of: P.self))
      } catch {
        engine.ended(request, after: error, P.Failure.self)
      }
    }
  }
}

/// The requests that a simulated server has not decided: the app waits for something, for a time that is drawn.
struct SimulatedRequests {
  private var random: SimulationRandom
  private var waiting: [(request: ProcedureRequest, at: Duration)] = []

  init(random: SimulationRandom) { self.random = random }

  /// Takes a request. Returns true if the app decides at once.
  mutating func takesAtOnce(_ request: ProcedureRequest, now: Duration) -> Bool {
    if random.chance(0.4) { return true }
    // Some take longer than a procedure may.
    let most = random.chance(0.1) ? 2 * Simulation.Times.procedure : 700
    waiting.append((request, now + .milliseconds(random.number(in: 1...most))))
    return false
  }

  /// The time at which the app decides next; nil if nothing waits.
  var deadline: Duration? { waiting.map(\.at).min() }

  /// Removes and returns a request for which it is time.
  mutating func take(now: Duration) -> ProcedureRequest? {
    waiting.firstIndex { $0.at <= now }.map { waiting.remove(at: $0).request }
  }
}

extension SimulationWorld {
  /// Returns the world with a procedure of its server.
  func serving(_ procedure: SimulatedProcedure) -> SimulationWorld {
    var result = self
    result.procedure = procedure
    return result
  }
}

extension SimulationRun {
  /// Has a client call the procedure of the world.
  func call(by client: SimulatedClient, seed: UInt64) {
    // The journal tells what a call has done, and version 1 has no arguments.
    guard let procedure = world.procedure, journal != nil, client.version > 1 else { return }
    var random = SimulationRandom(seed: seed, branch: 2)
    client.app.scope.flush()
    let handle = procedure.call(client.app.scope, &random)
    note(
      "client \(client.number) calls \(procedure.name)"
        + (handle == nil ? ", which fails on the client" : ""))
  }

  /// Applies the durable decision on a call. The client's changes were a guess: what counts are those of the server.
  func acceptCall(
    _ set: SubmittedSet, _ decision: ScopeRecord.Decision, doing fragments: [SyncFragment]
  ) {
    let hasSucceeded = decision.outcome?.error == nil
    set.decide(
      decision.fragmentReplies.map { $0.error == nil }, outcome: decision.outcome,
      hasSucceeded: hasSucceeded)
    note("\(set) is decided: \(decision.outcome?.json.text ?? "no outcome")")
    if decision.outcome == nil, decision.fragmentReplies.allSatisfy({ $0.error == nil }) {
      report(.messages, "The server has decided the call \(set) without an outcome")
    }
    if !hasSucceeded, !fragments.isEmpty {
      report(.intent, "The call \(set) has failed, and has changed something")
    }
    if set.acceptances > 1, configuration.promises.contains(.exactlyOnce) {
      report(.decidedTwice, "The server has run the call \(set) \(set.acceptances) times")
    }
    acceptOwn(
      SubmittedSet(client: nil, place: 0, id: set.id, isAtomic: false, fragments: fragments))
  }
}
