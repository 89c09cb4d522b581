import Foundation

/// Where the rows of a query come from, and what has happened there since its last evaluation.
enum QuerySource {
  case scope(ScopeSource)
  case collection(CollectionSource)
}

/// Every model of a class in a scope. Rows that are equal stand in the order of their UUIDs.
final class ScopeSource: MembershipObserver {
  private(set) weak var scope: Scope?
  weak var evaluation: (any TickEvaluation)?
  private let dependencies: DependencyTable
  /// Models that have come, left or got another UUID, in any number of steps.
  private var touched: ContiguousArray<ModelObject> = []
  private var order: ContiguousArray<UUIDOrder> = []

  /// Whether a model is of the class that is wanted.
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

  /// What the scope has of these models.
  var models: [ModelObject] { scope?.models.filter(includes) ?? [] }

  func takeTouched() -> ContiguousArray<ModelObject> {
    defer { touched = [] }
    return touched
  }

  /// Keeps where the row stands among its equals; true if that is elsewhere now.
  @discardableResult
  func place(_ slot: Int, _ model: ModelObject) -> Bool {
    while order.count <= slot { order.append(UUIDOrder()) }
    let new = UUIDOrder(model.uuid)
    defer { order[slot] = new }
    return order[slot] != new
  }

  func isBefore(_ a: Int, _ b: Int) -> Bool { order[a] < order[b] }
}

/// The bytes of a UUID, quick to compare.
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
  /// The slots of all models in the collection, those that are shown with a weight of 1.
  var order = OrderTree()
  private let journal: StepJournal

  init(_ owner: ModelRecord, _ property: Int) {
    self.owner = owner
    self.property = property
    journal = StepJournal(index: property)
  }

  /// Has the changes written down from here on. What the tick is told, the dependencies see to.
  func start(_ dependencies: DependencyTable) {
    guard let model = owner.model else { return }
    dependencies.follow(
      [.init(model: model, index: property)], for: DependencyTable.sourceRow)
    owner.ensureObservers().ensureExtras().add(journal)
  }

  /// The models as they are now; nil if the owner has gone.
  var list: ModelList? {
    owner.model.map { $0.list(of: owner.schema.properties[property]) }
  }

  /// The steps since the last time. None once the owner has gone: the models stay as they were.
  func takeSteps() -> [ListOperation] { list.map { journal.takeSteps(now: $0) } ?? [] }
}
