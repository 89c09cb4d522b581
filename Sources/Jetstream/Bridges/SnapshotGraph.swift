import Foundation
import Synchronization

/// The models of a snapshot, each once. The graph is immutable, and all snapshots of its models
/// share it.
final class SnapshotGraph: Sendable {
  struct Node: Sendable {
    let plan: SnapshotPlan
    let uuid: UUID
    /// The values by property index.
    let values: [SnapshotValue]
  }

  let nodes: [Node]
  /// The places by UUID, made when a weak reference is first followed.
  private let places = Mutex<[UUID: Int]?>(nil)

  private init(nodes: [Node]) { self.nodes = nodes }

  /// Copies the roots and all models below them. The nodes of the roots come first, in the same
  /// order. Cost: O(n), without recursion.
  convenience init(_ roots: some Sequence<ModelObject>) {
    var models: ContiguousArray<ModelObject> = []
    var places: [ObjectIdentifier: Int] = [:]
    func place(of model: ModelObject) -> Int {
      let key = ObjectIdentifier(model)
      if let place = places[key] { return place }
      places[key] = models.count
      models.append(model)
      return models.count - 1
    }
    func entries(_ table: ModelTable) -> [SnapshotValue.Entry] {
      var result: [SnapshotValue.Entry] = []
      table.forEach { result.append(.init(key: $0, place: place(of: $1))) }
      return result
    }
    for root in roots { _ = place(of: root) }
    var nodes: [Node] = []
    var plans: [ObjectIdentifier: SnapshotPlan] = [:]
    while nodes.count < models.count {
      let model = models[nodes.count]
      let schema = model.schema
      let plan = plans[ObjectIdentifier(schema)] ?? SnapshotPlan.of(schema)
      plans[ObjectIdentifier(schema)] = plan
      let values = plan.steps.map { step -> SnapshotValue in
        switch step.property.kind {
        case .collection: .models(model.list(of: step.property).models.map(place))
        case .dictionary: .entries(entries(model.table(of: step.property)))
        case .reference, .model: .model(model.child(of: step.property).map(place))
        case .plain where step.isShareable:
          .value(step.source.shared(at: model.storage(of: step.property)))
        case .plain: .json(model.json(of: step.property))
        }
      }
      nodes.append(Node(plan: plan, uuid: model.uuid, values: values))
    }
    self.init(nodes: nodes)
  }

  /// Returns the place of the model that a weak reference names; nil if the snapshot does not have it. If two models have
  /// the same UUID, which is possible in a tree that is in no scope, the first one is the target. Cost: O(1), the first
  /// time O(n).
  func place(ofTarget target: JSONValue) -> Int? {
    guard case .string(let text) = target, let uuid = UUID(wireText: text) else { return nil }
    return places.withLock { places in
      let known =
        places
        ?? Dictionary(
          nodes.enumerated().map { ($1.uuid, $0) }, uniquingKeysWith: { first, _ in first })
      places = known
      return known[uuid]
    }
  }

  // MARK: Models again

  /// Makes models from the node at `top` and all nodes below it. Cost: O(n).
  func makeModel(_ top: Int, keepingUUIDs: Bool) -> ModelObject {
    var models: [Int: ModelObject] = [:]
    var order: [Int] = []
    func model(_ place: Int) -> ModelObject {
      if let model = models[place] { return model }
      let made = makeAlone(place, keepingUUIDs)
      models[place] = made
      order.append(place)
      return made
    }
    let result = model(top)
    var next = 0
    while next < order.count {
      let owner = model(order[next])
      for (step, value) in zip(nodes[order[next]].plan.steps, nodes[order[next]].values) {
        let property = step.property
        switch value {
        case .model(let child):
          _ = property.access.assign(child.map(model), to: owner, at: property.offset)
        case .models(let children):
          let list = ModelList(children.map(model))
          _ = property.access.assign(list, to: owner, at: property.offset)
        case .entries(let entries):
          var table = ModelTable()
          for entry in entries { table[entry.key] = model(entry.place) }
          _ = property.access.assign(table, to: owner, at: property.offset)
        case .value, .json: continue
        }
      }
      next += 1
    }
    relink(order.map { ($0, models[$0]!) })
    return result
  }

  /// Points weak references at the copies of their targets. If two models have the same UUID, the first one is the target.
  private func relink(_ models: [(place: Int, model: ModelObject)]) {
    var targets: [UUID: ModelObject]?
    for (place, model) in models {
      for step in nodes[place].plan.steps where step.isWeak {
        let known =
          targets
          ?? Dictionary(
            models.map { (nodes[$0].uuid, $1) }, uniquingKeysWith: { first, _ in first })
        targets = known
        step.source.relink(at: model.storage(of: step.property)) { known[$0] }
      }
    }
  }

  /// Makes a model with the plain values of the node. Its children are those that `init()` makes.
  private func makeAlone(_ place: Int, _ keepingUUID: Bool) -> ModelObject {
    let node = nodes[place]
    let model = node.plan.schema.modelClass.init()
    if keepingUUID { model.ensureRecord().uuidIfMade = node.uuid }
    for (step, value) in zip(node.plan.steps, node.values) where step.property.kind == .plain {
      step.source.put(value, at: model.storage(of: step.property))
    }
    return model
  }

  // MARK: Comparing

  /// Returns true if two nodes, and all nodes below them, have the same models and values. Cost:
  /// O(n).
  static func isSame(_ a: SnapshotGraph, _ first: Int, _ b: SnapshotGraph, _ second: Int) -> Bool {
    struct Pair: Hashable { let a, b: Int }
    var seen: Set<Pair> = []
    var open = [Pair(a: first, b: second)]
    while let pair = open.popLast() {
      if a === b, pair.a == pair.b { continue }
      guard seen.insert(pair).inserted else { continue }
      let (x, y) = (a.nodes[pair.a], b.nodes[pair.b])
      guard x.plan === y.plan, x.uuid == y.uuid else { return false }
      for (left, right) in zip(x.values, y.values) {
        switch (left, right) {
        case (.model(nil), .model(nil)): continue
        case (.model(let left?), .model(let right?)): open.append(Pair(a: left, b: right))
        case (.models(let left), .models(let right)):
          guard left.count == right.count else { return false }
          open += zip(left, right).map(Pair.init)
        case (.entries(let left), .entries(let right)):
          guard left.map(\.key) == right.map(\.key) else { return false }
          open += zip(left, right).map { Pair(a: $0.place, b: $1.place) }
        default: if !left.isSamePlain(as: right) { return false }
        }
      }
    }
    return true
  }

  // MARK: JSON

  func json(of property: ModelSchema.Property, at place: Int) -> JSONValue {
    switch nodes[place].values[property.index] {
    case .value(let shared): shared.value._jsonValue
    case .json(let json): json
    case .model(let child): child.map(uuid) ?? .null
    case .models(let children): .array(children.map(uuid))
    case .entries(let entries): .object(JSONObject(entries.map { ($0.key, uuid($0.place)) }))
    }
  }

  private func uuid(_ place: Int) -> JSONValue { .string(nodes[place].uuid.wireText) }

  /// Returns add fragments for the node and all nodes below it, depth first, each once.
  func fragments(from top: Int) -> [SyncFragment] {
    var result: [SyncFragment] = []
    var visited: Set<Int> = []
    var stack: ContiguousArray<Int> = [top]
    while let place = stack.popLast() {
      guard visited.insert(place).inserted else { continue }
      let schema = nodes[place].plan.schema
      var properties = JSONObject()
      let bottom = stack.count
      for property in schema.properties where property.isSynced {
        if case .entries(let entries) = nodes[place].values[property.index] {
          for entry in entries {
            properties.append(
              newKey: EntryName.text(of: entry.key, in: property.wireName), uuid(entry.place))
            stack.append(entry.place)
          }
          continue
        }
        properties.append(newKey: property.wireName, json(of: property, at: place))
        switch nodes[place].values[property.index] {
        case .model(let child?): stack.append(child)
        case .models(let children): stack.append(contentsOf: children)
        default: continue
        }
      }
      stack.reverse(from: bottom)
      result.append(
        SyncFragment(
          .add, uuid: nodes[place].uuid, className: schema.wireName, properties: properties))
    }
    return result
  }
}
