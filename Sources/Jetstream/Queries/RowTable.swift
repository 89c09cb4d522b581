/// The rows of a query: all models of its source, and the order of those that it shows.
///
/// It is a value, so that ``LiveRows`` can be one: while an earlier value exists, the next tick that changes
/// something copies the table.
struct RowTable {
  /// The rows that are shown, in their order.
  var shown = OrderTree()
  /// The models by slot. The first slot stays empty; see ``DependencyTable/sourceRow``.
  private(set) var models: ContiguousArray<ModelObject?> = [nil]
  private var slots: [ObjectIdentifier: Int] = [:]
  private var free: [Int] = []

  /// Returns the slot of a model that is in the source.
  func slot(of model: ModelObject) -> Int? { slots[ObjectIdentifier(model)] }

  /// Returns the model at a slot that is in use.
  func model(_ slot: Int) -> ModelObject {
    guard let model = models[slot] else { preconditionFailure("A row of a query has no model.") }
    return model
  }

  mutating func add(_ model: ModelObject) -> Int {
    let slot = free.popLast() ?? models.count
    if slot == models.count { models.append(model) } else { models[slot] = model }
    slots[ObjectIdentifier(model)] = slot
    return slot
  }

  mutating func remove(_ slot: Int) {
    slots[ObjectIdentifier(model(slot))] = nil
    models[slot] = nil
    free.append(slot)
  }
}
