import Foundation

/// Where the rows of a query come from, and what has happened there since its last evaluation.
enum QuerySource<Model: ModelObject> {
  case scope(ScopeSource<Model>)
  case collection(CollectionSource<Model>)
}

/// Every model of a class in a scope. Rows that are equal stand in the order of their UUIDs.
final class ScopeSource<Model: ModelObject>: MembershipObserver {
  private(set) weak var scope: Scope?
  weak var evaluation: (any TickEvaluation)?
  private let dependencies: DependencyTable
  /// Models that have come, left or got another UUID, in any number of steps.
  private var touched: ContiguousArray<Model> = []
  private var order: ContiguousArray<UUIDOrder> = []

  init(_ scope: Scope, _ dependencies: DependencyTable) {
    self.scope = scope
    self.dependencies = dependencies
  }

  func start() { scope?.addMembershipObserver(self) }

  func stop() {
    scope?.removeMembershipObserver(self)
    touched = []
  }

  func modelEntered(_ model: ModelObject) { touch(model) }
  func modelLeft(_ model: ModelObject) { touch(model) }
  func modelRenamed(_ model: ModelObject) { touch(model) }

  private func touch(_ model: ModelObject) {
    guard let model = model as? Model, let evaluation, let scope else { return }
    touched.append(model)
    if dependencies.isTriggered { return }
    dependencies.isTriggered = true
    scope.ticker.enqueue(evaluation)
  }

  func takeTouched() -> ContiguousArray<Model> {
    defer { touched = [] }
    return touched
  }

  /// Keeps where the row stands among its equals; true if that is elsewhere now.
  @discardableResult
  func place(_ slot: Int, _ model: Model) -> Bool {
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
final class CollectionSource<Model: ModelObject> {
  let owner: ModelRecord
  let property: Int
  /// The slots of all models in the collection, those that are shown with a weight of 1.
  var order = OrderTree()
  private let journal: CollectionJournal

  init(_ owner: ModelRecord, _ property: Int) {
    self.owner = owner
    self.property = property
    journal = CollectionJournal(property: property)
  }

  /// Has the changes written down from here on. What the tick is told, the dependencies see to.
  func start(_ dependencies: DependencyTable) {
    guard let model = owner.model else { return }
    dependencies.follow(
      [.init(model: model, index: property)], for: DependencyTable.sourceRow)
    owner.ensureObservers().journals.append(journal)
  }

  func stop() { owner.observers?.journals.removeAll { $0 === journal } }

  /// The models as they are now; nil if the owner has gone.
  var list: ModelList? {
    owner.model.map { $0.list(of: owner.schema.properties[property]) }
  }

  /// The steps since the last time, from the content `old` if they were too many to be kept.
  func takeOperations(from old: (ContiguousArray<Int>) -> ModelList) -> [ListOperation] {
    if let operations = journal.take() { return operations }
    guard let list else { return [] }
    return ListDifference.operations(from: old(order.slots), to: list)
  }
}
