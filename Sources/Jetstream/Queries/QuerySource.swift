import Foundation

/// The source of a query's rows, with its changes since the last evaluation.
enum QuerySource {
  case scope(ScopeSource)
  case collection(CollectionSource)

  /// Ends the recording of changes.
  func stop() {
    switch self {
    case .scope(let scope): scope.stop()
    case .collection(let collection): collection.stop()
    }
  }
}

/// Every model of a class in a scope. Rows with equal keys are in the order of their UUIDs.
final class ScopeSource: MembershipObserver {
  private(set) weak var scope: Scope?
  weak var evaluation: (any TickEvaluation)?
  private let dependencies: DependencyTable
  /// Models that have entered, left or got another UUID, each any number of times.
  private var touched: ContiguousArray<ModelObject> = []
  private var order: ContiguousArray<UUIDOrder> = []

  /// Returns true for models of the class of the query.
  private let includes: (ModelObject) -> Bool

  init(
    _ scope: Scope, includes: @escaping (ModelObject) -> Bool, _ dependencies: DependencyTable
  ) {
    self.scope = scope
    self.includes = includes
    self.dependencies = dependencies
  }

  func start() { scope?.addMembershipObserver(self) }

  func stop() {
    scope?.removeMembershipObserver(self)
    touched = []
  }

  func modelEntered(_ model: ModelObject) { touch(model) }
  func modelLeft(_ model: ModelObject) { touch(model) }
  func modelRenamed(_ model: ModelObject, from old: UUID) { touch(model) }

  private func touch(_ model: ModelObject) {
    guard includes(model), let evaluation, let scope else { return }
    touched.append(model)
    if dependencies.isTriggered { return }
    dependencies.isTriggered = true
    scope.ticker.enqueue(evaluation)
  }

  /// The models of the scope that are of the class of the query.
  var models: [ModelObject] { scope?.models.filter(includes) ?? [] }

  func takeTouched() -> ContiguousArray<ModelObject> {
    defer { touched = [] }
    return touched
  }

  /// Keeps the order of the row among rows with equal keys; returns true if it has changed.
  @discardableResult
  func place(_ slot: Int, _ model: ModelObject) -> Bool {
    while order.count <= slot { order.append(UUIDOrder()) }
    let new = UUIDOrder(model.uuid)
    defer { order[slot] = new }
    return order[slot] != new
  }

  func isBefore(_ a: Int, _ b: Int) -> Bool { order[a] < order[b] }
}

/// The bytes of a UUID in a form that is fast to compare.
private struct UUIDOrder: Comparable {
  var high: UInt64 = 0
  var low: UInt64 = 0

  init() {}

  init(_ uuid: UUID) {
    withUnsafeBytes(of: uuid.uuid) { bytes in
      high = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
      low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
  }

  static func < (a: UUIDOrder, b: UUIDOrder) -> Bool {
    a.high != b.high ? a.high < b.high : a.low < b.low
  }
}

/// The models of one collection property, in its order.
final class CollectionSource {
  let owner: ModelRecord
  let property: Int
  /// The slots of all models in the collection. Those that are shown have the weight 1, the others 0.
  var order = OrderTree()
  /// Records the changes of the collection; nil once the query has stopped.
  private var journal: StepJournal?

  init(_ owner: ModelRecord, _ property: Int) {
    self.owner = owner
    self.property = property
    journal = StepJournal(index: property)
  }

  /// Begins to record the changes of the collection. The dependencies request the evaluation.
  func start(_ dependencies: DependencyTable) {
    guard let model = owner.model, let journal else { return }
    dependencies.follow(
      [.init(model: model, index: property)], for: DependencyTable.sourceRow)
    owner.ensureObservers().ensureExtras().add(journal)
  }

  /// Ends the recording, and forgets the steps, which retain models.
  func stop() { journal = nil }

  /// The current models; nil if the owner is gone.
  var list: ModelList? {
    owner.model.map { $0.list(of: owner.schema.properties[property]) }
  }

  /// Returns the steps since the last call. None if the owner is gone: the rows stay as they are.
  func takeSteps() -> [ListOperation] {
    guard let list, let journal else { return [] }
    return journal.takeSteps(now: list)
  }
}
