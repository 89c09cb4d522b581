import Foundation

/// Models made of the nodes of a snapshot, for the app or for one run of a getter.
///
/// A copy is made without its children, which ``fill()`` gives to all copies. So each model is made once, also in
/// cycles, and a long chain is made without recursion.
final class SnapshotCopies {
  private let graph: SnapshotGraph
  private let keepsUUIDs: Bool
  /// The copies by the places of their nodes.
  private var models: [Int: ModelObject] = [:]
  /// The places of the copies, in the order in which they were made.
  private var order: ContiguousArray<Int> = []
  /// The number of copies that have their children, the first ones in `order`.
  private var filledCount = 0
  /// The values that ``fill()`` has replaced. They are retained until ``release()``, since it may run within a read, of
  /// which the compiler is told that it releases nothing; see ``ModelObject/propertyIsRead(at:)``.
  private var replaced: [Any] = []
  /// The places by copy of the first ones in `order`, as many as have been looked up.
  private var places: [ObjectIdentifier: Int] = [:]

  init(of graph: SnapshotGraph, keepingUUIDs: Bool) {
    self.graph = graph
    keepsUUIDs = keepingUUIDs
  }

  /// Returns the copy of a node. Makes it with the plain values if there is none; its children are then those that
  /// `init()` makes, until it is filled.
  func model(at place: Int) -> ModelObject {
    if let model = models[place] { return model }
    let node = graph.nodes[place]
    let model = node.plan.schema.modelClass.init()
    if keepsUUIDs { model.ensureRecord().uuidIfMade = node.uuid }
    if let unknown = node.unknown {
      let values = keepsUUIDs ? unknown.values : unknown.plainValues
      if !values.isEmpty { model.ensureRecord().unknown = values }
    }
    for (step, value) in zip(node.plan.steps, node.values) where step.property.kind == .plain {
      step.source.put(value, at: model.storage(of: step.property))
    }
    models[place] = model
    order.append(place)
    return model
  }

  /// Returns the copy of a node as a model of the class that a snapshot of the node says it is.
  func model<Model: ModelObject>(at place: Int, as type: Model.Type) -> Model {
    guard let model = model(at: place) as? Model else {
      preconditionFailure(
        "A snapshot of \(type) has a model of class \(graph.nodes[place].plan.schema.wireName).")
    }
    return model
  }

  /// Gives all copies their children, which are made, too. Cost: O(n) for n copies that are made.
  func fill() {
    while filledCount < order.count {
      let place = order[filledCount]
      filledCount += 1
      let (owner, node) = (model(at: place), graph.nodes[place])
      for (step, value) in zip(node.plan.steps, node.values) {
        let property = step.property
        switch value {
        case .model(let child):
          if let old = owner.child(of: property) { replaced.append(old) }
          _ = property.access.assign(child.map(model), to: owner, at: property.offset)
        case .models(let children):
          let (old, list) = (owner.list(of: property), ModelList(children.map(model)))
          if old.count > 0 { replaced.append(old) }
          _ = property.access.assign(list, to: owner, at: property.offset)
        case .entries(let entries):
          let old = owner.table(of: property)
          if old.count > 0 { replaced.append(old) }
          var table = ModelTable()
          for entry in entries { table[entry.key] = model(at: entry.place) }
          _ = property.access.assign(table, to: owner, at: property.offset)
        case .value, .json: continue
        }
      }
    }
  }

  /// Empties the copies, which hold each other in cycles and would never be deallocated, and releases what they were made
  /// with.
  func release() {
    for model in models.values { if let record = model.record { model.releaseChildren(record) } }
    (models, places, order, filledCount, replaced) = ([:], [:], [], 0, [])
  }

  // MARK: Reads

  /// Points weak references at the copies of their targets. Returns true if the snapshot has targets of which there are
  /// no copies.
  @discardableResult
  func link() -> Bool {
    var lacksTargets = false
    for place in order {
      for step in graph.nodes[place].plan.weakSteps {
        step.source.relink(at: model(at: place).storage(of: step.property)) { uuid in
          guard let target = graph.place(of: uuid) else { return nil }
          if models[target] == nil { lacksTargets = true }
          return models[target]
        }
      }
    }
    return lacksTargets
  }

  /// Runs `body`. Before it reads a weak reference of a copy, a copy of the target is made with all models below it.
  /// Before it reads any other property that leads to models, all copies get their children.
  func preparingReads<Result>(_ body: () -> Result) -> Result {
    ReadTracker.track(body, before: prepareRead).result
  }

  private func prepareRead(of model: ModelObject, index: Int) {
    guard let place = place(of: model) else { return }
    let step = graph.nodes[place].plan.steps[index]
    if step.property.kind == .plain, !step.isWeak { return }
    // Reads of the initializers of models are not reads of the body.
    _ = ReadTracker.track {
      if step.isWeak {
        step.source.relink(at: model.storage(of: step.property)) { uuid in
          graph.place(of: uuid).map { self.model(at: $0) }
        }
      }
      fill()
    }
  }

  // MARK: Places

  /// Returns the place of the node of which `model` is the copy; nil if it is none.
  private func place(of model: ModelObject) -> Int? {
    while places.count < order.count {
      let place = order[places.count]
      places[ObjectIdentifier(models[place]!)] = place
    }
    return places[ObjectIdentifier(model)]
  }

  /// Returns the snapshots of models that a getter has returned: of copies, those in this snapshot; of models that the
  /// getter has made, those in a snapshot of their own.
  func snapshots<Model: ModelObject>(
    of models: some Sequence<Model>
  ) -> [Model: ModelSnapshot<Model>] {
    var result: [Model: ModelSnapshot<Model>] = [:]
    var made: [Model] = []
    for model in Set(models) {
      if let place = place(of: model) {
        result[model] = ModelSnapshot(graph: graph, place: place)
      } else {
        made.append(model)
      }
    }
    if made.isEmpty { return result }
    let graph = SnapshotGraph(made)
    for (place, model) in made.enumerated() {
      result[model] = ModelSnapshot(graph: graph, place: place)
    }
    return result
  }
}
