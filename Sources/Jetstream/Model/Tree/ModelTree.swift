import Foundation

/// The models that one root reaches: their index by UUID, their classes, and who is told of those that come and go.
///
/// Each scope has one and is its keeper. Models know their tree and not the scope, so that what is below scopes can be
/// understood without them.
final class ModelTree {
  /// The name of the scope.
  let name: String
  /// The ticker that calls the observers of the models.
  let ticker: Ticker
  /// The scope. Unowned, since it owns the tree: it takes itself off before it is released.
  unowned(unsafe) var keeper: (any TreeKeeper)?
  /// The model at the top.
  var root: ModelObject? { didSet { rootRecord = root?.ensureRecord() } }
  /// Unowned: the root holds it.
  private(set) unowned(unsafe) var rootRecord: ModelRecord?
  private let records = RecordIndex()
  private var classes: [String: ModelSchema] = [:]
  // No access to properties that are marked like this one is open while other code runs. That is not so for the observers,
  // which are called while they are read.
  /// The class of the last model that was admitted, which is known to be in ``classes``.
  @exclusivity(unchecked) private var lastAdmitted: ModelSchema?
  /// True if a class of the tree has a local property that holds models.
  @exclusivity(unchecked) private(set) var hasLocalReferences = false
  /// True if a class of the tree has a dictionary.
  private(set) var hasDictionaries = false
  /// True if a class has a property whose values are unique in a collection.
  private(set) var hasUnique = false
  /// The observers that are called when models enter and leave.
  var observers = MembershipObservers()
  /// True while a value of another replica is being written; observers run with it off. Only
  /// ``writeRemotely(_:)`` and ``suspendRemoteWriting(_:)`` set it.
  @exclusivity(unchecked) var isWritingRemotely = false
  /// Models that fragments have taken out of a property, until all fragments are applied.
  @exclusivity(unchecked) var suspects: ContiguousArray<ModelObject> = []
  /// True while a call of `modify` runs.
  @exclusivity(unchecked) var isInTransaction = false

  init(name: String, ticker: Ticker) {
    self.name = name
    self.ticker = ticker
  }

  /// The number of models.
  var count: Int { records.count }

  /// Returns the record of the model with this UUID. Cost: O(1).
  func record(of uuid: UUID) -> ModelRecord? { records.record(of: uuid) }

  /// The models, in no particular order. Cost: O(n).
  var models: [ModelObject] {
    var result: [ModelObject] = []
    result.reserveCapacity(count)
    records.forEach { if let model = $0.model { result.append(model) } }
    return result
  }

  /// Calls `body` with the record of each model, in no particular order.
  func forEachRecord(_ body: (ModelRecord) -> Void) { records.forEach(body) }

  func isRoot(_ record: ModelRecord) -> Bool { record === rootRecord }

  // MARK: Classes

  /// Returns the schema of the class with this name on the wire, if the tree knows it.
  func schema(named wireName: String) -> ModelSchema? { classes[wireName] }

  /// The schemas of all classes that were registered, in no particular order.
  var knownSchemas: some Collection<ModelSchema> { classes.values }

  /// Makes a class known, and those that property types lead to from it.
  func register(_ schema: ModelSchema) {
    for next in schema.reachable() {
      if let known = classes[next.wireName] {
        precondition(
          known === next,
          "Two classes are called \(next.wireName) on the wire in scope \(name): "
            + "\(known.modelClass) and \(next.modelClass); override wireName in one of them.")
        continue
      }
      classes[next.wireName] = next
      if next.childProperties.contains(where: { !$0.isSynced }) { hasLocalReferences = true }
      if next.data.hasDictionaries { hasDictionaries = true }
      if next.data.hasUnique { hasUnique = true }
    }
  }

  // MARK: Membership

  /// Enters a model into the index. Nothing else happens yet. Returns false if it cannot be there; see
  /// ``refusal(of:)``.
  func admit(_ record: ModelRecord) -> Bool {
    guard record.tree == nil, records.insert(record) else { return false }
    if record.schema !== lastAdmitted {
      if classes[record.schema.wireName] !== record.schema { register(record.schema) }
      lastAdmitted = record.schema
    }
    record.tree = self
    return true
  }

  /// Returns the reason why a model was not admitted.
  func refusal(of record: ModelRecord) -> ScopeError {
    record.tree.map {
      .modelInTwoScopes(
        className: record.schema.wireName, model: record.uuid, scope: $0.name, other: name)
    } ?? .duplicateUUID(className: record.schema.wireName, model: record.uuid)
  }

  /// Undoes ``admit(_:)``.
  func expel(_ record: ModelRecord) {
    records.remove(record.uuid)
    record.tree = nil
  }

  /// Tells of an admitted model.
  func enter(_ record: ModelRecord, below: Bool) {
    tell(of: record) { $0.modelEntered($1) }
    keeper?.entered(record, below: below)
    record.enteredTree(of: ticker)
  }

  /// Takes out a model that the root no longer reaches, and tells of it.
  func leave(_ record: ModelRecord) {
    expel(record)
    record.keepTicker(ticker)
    tell(of: record) { $0.modelLeft($1) }
    record.scopedParents = 0
    keeper?.left(record)
  }

  /// Notes that a model has lost a parent.
  @inline(__always)
  func loosen(_ record: ModelRecord) { if hasLocalReferences { keeper?.loosened(record) } }

  /// Reports a change that has been refused.
  func refuse(_ error: ScopeError) { keeper?.refuse(error) }

  /// Calls the membership observers for a model.
  @inline(__always)
  func tell(
    of record: ModelRecord, _ body: (any MembershipObserver, ModelObject) -> Void
  ) {
    guard !observers.isEmpty, let model = record.model else { return }
    observers.forEach { body($0, model) }
  }

  /// Gives the root another UUID. Returns the former one.
  func renameRoot(to uuid: UUID) -> UUID? {
    guard let record = rootRecord, record.uuid != uuid else { return nil }
    let old = record.uuid
    records.remove(old)
    record.uuidIfMade = uuid
    _ = records.insert(record)
    return old
  }

  /// Lets go of all models without calling observers: `body` gets each of them.
  func dissolve(_ body: (ModelRecord) -> Void) {
    rootRecord = nil
    records.removeAll { record in
      record.tree = nil
      record.keepTicker(ticker)
      record.scopedParents = 0
      body(record)
    }
  }
}
