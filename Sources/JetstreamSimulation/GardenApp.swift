import Jetstream

/// The memory of a process of ``SimulationWorld/garden``: observers that write, an undo history and a live
/// query.
final class GardenApp {
  let plan: GardenPlan
  let scope: Scope
  let process: SimulationProcess
  /// The undo history, made on first use.
  lazy var history = UndoHistory(of: scope, limit: 20)
  /// The beds that were cut and not pasted yet, the latest last.
  var cut: [GardenBed] = []
  private let thirsty: LiveQuery<GardenBed>
  private var notes: [String] = []
  private var tokens: [ObservationToken] = []

  init(_ plan: GardenPlan, _ scope: Scope, _ process: SimulationProcess) {
    self.plan = plan
    self.scope = scope
    self.process = process
    thirsty = Self.query(scope).live(isolation: scope.ticker.isolation)
    if process.hasRules { addRules() }
  }

  private static func query(_ scope: Scope) -> Query<GardenBed> {
    scope.query(GardenBed.self).filter { $0.water < 40 && !$0.isSunny }.sorted(by: \.name)
      .then(by: \.harvest, order: .reverse)
  }

  /// Adds observers that write what follows from other properties, whatever the origin of the change.
  private func addRules() {
    tokens.append(
      plan.observeChange(plan, \.title, isolation: scope.ticker.isolation) { plan in
        let summary = "about \(plan.title)"
        if plan.summary != summary { plan.summary = summary }
      })
    tokens.append(
      plan.observeCollectionAdd(plan, \.nursery) { _, bed, _ in
        if bed.note == nil { bed.note = "in the nursery" }
      })
  }

  /// The scope's canonical JSON, which stands for what the app shows.
  var visible: String { scope.canonicalJSON }

  /// Notes `problem` if the models have changed since `before`.
  func compare(_ before: String, _ problem: String) {
    let now = visible
    if now == before { return }
    let models = { (text: String) in PlainJSON(text.utf8)?["models"]?.members ?? [:] }
    let (old, new) = (models(before), models(now))
    let changed = Set(old.keys).union(new.keys).filter { old[$0] != new[$0] }.sorted()
    let words = changed.map { "\(old[$0] ?? .null) became \(new[$0] ?? .null)" }
    notes.append(problem + ": " + words.joined(separator: "; "))
  }

  /// Returns the noted problems, and where the live query differs from a query that is made now.
  func problems() -> [String] { notes + wrongQuery() }

  private func wrongQuery() -> [String] {
    let should = Self.query(scope).live(isolation: scope.ticker.isolation)
    let (shown, expected) = (thirsty.rows.map(\.uuid), should.rows.map(\.uuid))
    should.stop()
    if Set(shown) != Set(expected) || shown.count != expected.count {
      return ["a live query has \(shown.count) rows, should have \(expected.count)"]
    }
    // Rows of equal keys stand in the order in which they came.
    let keys = thirsty.rows.map { ($0.name, $0.harvest) }
    let isSorted = zip(keys, keys.dropFirst()).allSatisfy {
      $0.0 < $1.0 || $0.0 == $1.0 && $0.1 >= $1.1
    }
    return isSorted ? [] : ["the rows of a live query are not in order: \(keys)"]
  }
}
