import Foundation

@testable import Jetstream

/// Some models in two scopes, and others in none, with a reference of what they should be.
final class Forest {
  struct Sight {
    weak var plant: Plant?
    weak var record: ModelRecord?
    let id: Int

    init(plant: Plant?, id: Int) {
      self.plant = plant
      record = plant?.record
      self.id = id
    }
  }

  /// Scopes of models' own are held by these.
  struct Place {
    weak var scope: Scope?
  }

  var generator: SeededGenerator
  let ticker = Ticker.manual()
  var reference = ForestReference()
  /// The reference as it was at the last check.
  var previous = ForestReference()
  /// The nodes that the test holds, and all that these hold.
  var plants: [Int: Plant] = [:]
  /// Their numbers in the order in which they came.
  var order: [Int] = []
  var watchers: [ForestWatcher] = []
  var places: [Int: Place] = [:]
  var errors: [Int: Int] = [:]
  var problems: [String] = []
  var history: [String] = []
  /// Who has maybe changed since the last tick: a value that has returned may be told, and need not.
  var maybe: Set<Int> = []
  /// Who has come into a scope or left one since the last tick.
  var came: Set<Int> = []
  /// What observers may have to be told of changes that were not foretold step by step.
  var isForetold = true
  var muted: [ForestWatcher] = []
  // Observers that write; see Forest+Writers.
  var isArmed = false
  var writesLeft = 0
  /// Whether an observer has written since the last check.
  var isNested = false
  var wrote = false
  var replica: Scope?
  var replicaRoot: Int?
  /// Until when each model's heat is held back, by scope.
  var heated: [Int: [UUID: Duration]] = [:]
  var keeper = ReplicaKeeper()
  var saved: (root: Int, fragments: [SyncFragment], canonical: String)?
  /// Counts what was checked, so that a run that checks nothing is noticed.
  var told = 0
  var fixed: [Scope] = []
  let visitors = Visitors()
  var feeds: [Feed] = []
  /// Whether changes are put together with `modify`; without, a seed does what it always did.
  let modifies: Bool
  /// How many calls of `modify` were taken back.
  var takenBack = 0
  /// How many change sets have come out.
  var setsHeard = 0
  /// Whether a flush goes on, which holds nothing back.
  var isFlushing = false
  var sights: [ObjectIdentifier: Sight] = [:]
  var planned: [UUID: Int] = [:]
  private var lastNumber = 0

  /// How many steps are told of a failure; `JETSTREAM_FOREST_HISTORY` asks for more.
  static let historyLength =
    ProcessInfo.processInfo.environment["JETSTREAM_FOREST_HISTORY"].flatMap { Int($0) } ?? 10

  static let unknownUUID = UUID(uuidString: "ffffffff-0000-4000-8000-000000000000")!

  init(seed: UInt64, modifies: Bool = false) {
    self.modifies = modifies
    generator = SeededGenerator(seed: seed)
    for _ in 0..<20 { make(newNumber(), anyUUID(), isBush: chance(40)) }
    for number in 0..<2 {
      fixed.append(makeScope(number, root: plants[order[number]]))
      reference.setRoot(number, order[number])
    }
    reference.events = []
    for number in 0..<2 { reference.collect(number) }
    reference.holdsBack = { [unowned self] uuid in
      heated.values.contains { $0[uuid].map { $0 > ticker.now } ?? false }
    }
    previous = reference
  }

  // MARK: Names

  func scope(_ number: Int) -> Scope { places[number]!.scope! }

  func number(of scope: Scope) -> Int {
    for (number, place) in places where place.scope === scope { return number }
    preconditionFailure("A model is in a scope that is not the forest's.")
  }

  func newNumber() -> Int {
    lastNumber += 1
    return lastNumber
  }

  /// The number of a model; one that was never seen gets the next.
  func id(of model: ModelObject) -> Int {
    let key = ObjectIdentifier(model)
    if let sight = sights[key], sight.plant === model { return sight.id }
    let id = planned.removeValue(forKey: model.uuid) ?? newNumber()
    sights[key] = Sight(plant: model as? Plant, id: id)
    return id
  }

  func text(_ value: Any) -> String {
    switch value {
    case let plant as Plant: "#\(id(of: plant))"
    case let list as ModelArray<Plant>: reference.text(list.map(id))
    case let spot as ForestSpot: "\(spot.x),\(spot.y)"
    case let number as Int: "\(number)"
    case let numbers as [Int]: "\(numbers)"
    case let sizes as [String: Double]:
      "\(sizes.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" })"
    case let text as String: text
    default: "nil"
    }
  }

  func watch(_ scope: Scope, _ number: Int) {
    places[number] = Place(scope: scope)
    scope.onChanges.listen { [unowned self] set in hear(set, of: number) }
    scope.onError.listen { [unowned self] _ in errors[number, default: 0] += 1 }
  }

  func make(_ id: Int, _ uuid: UUID, isBush: Bool) {
    let plant = isBush ? Bush(uuid: uuid) : Plant(uuid: uuid)
    plant.ensureRecord()
    sights[ObjectIdentifier(plant)] = Sight(plant: plant, id: id)
    adopt(plant, id)
    reference.nodes[id] = .init(isBush: isBush, uuid: uuid)
  }

  /// Models in no scope get the ticker as if somebody observed them on its actor: otherwise nothing
  /// would say when their observers are told.
  func adopt(_ plant: Plant, _ id: Int) {
    plants[id] = plant
    order.append(id)
    plant.ensureRecord().ownTicker = ticker
  }

  /// Takes the models that came otherwise among the nodes.
  func adoptNew() {
    var open = order.map { plants[$0]! }
    for number in places.keys.sorted() {
      if let root = places[number]!.scope?.root as? Plant { open.append(root) }
    }
    var visited = Set(open.map(ObjectIdentifier.init))
    var next = 0
    while next < open.count {
      let plant = open[next]
      next += 1
      let id = id(of: plant)
      if plants[id] == nil { adopt(plant, id) }
      for child in plant.held where visited.insert(ObjectIdentifier(child)).inserted {
        open.append(child)
      }
    }
  }

  // MARK: Performing

  /// Does something, to the models and to the reference, and checks what has come of it.
  func run(_ operation: ForestOperation) {
    history.append(operation.description)
    if operation.isElementary { performArmed(operation) } else { perform(operation) }
    checkStep()
    endWriting()
    followRoot()
  }

  // MARK: Problems

  /// What the reference knows, in words.
  var map: String {
    let nodes = order.compactMap { id in
      reference.nodes[id].map { node in
        "#\(id) \(node.uuid.uuidString.prefix(4)) in \(reference.scope(of: id).map { "\($0)" } ?? "none"): "
          + node.children.map { "\($0.key) #\($0.child)" }.joined(separator: ", ")
      }
    }
    return nodes.joined(separator: "\n")
  }

  /// Models that were seen and are still there.
  var living: [Int] { sights.values.filter { $0.plant != nil }.map(\.id).sorted() }

  func expect(_ condition: Bool, _ problem: @autoclosure () -> String) {
    if !condition { fail(problem()) }
  }

  func fail(_ problem: String) { problems.append(problem) }
}
