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
    /// The content that the model's class does not know; nil for nearly every model.
    let unknown: Unknown?

    /// The name of the model's class on the wire.
    var className: String { unknown?.values.className ?? plan.schema.wireName }
  }

  /// The properties and the class of a model as newer peers have sent them. An object, so that other nodes need little
  /// room for it.
  final class Unknown: Sendable {
    let values: UnknownValues
    /// The same without the properties that name models.
    let plainValues: UnknownValues

    init?(_ record: ModelRecord?) {
      guard let record, var values = record.unknown, !values.isEmpty else { return nil }
      values.sort()
      self.values = values
      plainValues = values.withoutModels { record.mayName($0) }
    }
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
      model.relativesAreRead()
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
      nodes.append(
        Node(
          plan: plan, uuid: model.uuid, values: values, unknown: Unknown(model.record)))
    }
    self.init(nodes: nodes)
  }

  /// Returns the place of the model that a weak reference names; nil if the snapshot does not have it. If two models have
  /// the same UUID, which is possible in a tree that is in no scope, the first one is the target. Cost: O(1), the first
  /// time O(n).
  func place(ofTarget target: JSONValue) -> Int? {
    guard case .string(let text) = target, let uuid = UUID(wireText: text) else { return nil }
    return place(of: uuid)
  }

  /// Returns the place of the model with a UUID, under the same conditions.
  func place(of uuid: UUID) -> Int? {
    places.withLock { places in
      let known =
        places
        ?? Dictionary(
          nodes.enumerated().map { ($1.uuid, $0) }, uniquingKeysWith: { first, _ in first })
      places = known
      return known[uuid]
    }
  }

  // MARK: Models again

  /// Makes models of the node at `top` and all nodes below it. Cost: O(n).
  func makeModel<Model: ModelObject>(_ top: Int, keepingUUIDs: Bool) -> Model {
    let copies = SnapshotCopies(of: self, keepingUUIDs: keepingUUIDs)
    let result = copies.model(at: top, as: Model.self)
    copies.fill()
    copies.link()
    return result
  }

  /// Runs `read` on a copy of the node at `place`, which has copies of all nodes below it. Weak references lead to
  /// copies of their targets, wherever those are in the snapshot. The copies are emptied afterwards. Cost: O(n) for n
  /// nodes below, and for those below the targets of weak references that are read.
  ///
  /// - Parameter isAlone: true to make only the copy of the node beforehand, in O(1), and the others if a property that
  ///   holds models is read.
  func evaluate<Model: ModelObject, Result>(
    _ place: Int, isAlone: Bool = false, _ read: (Model, SnapshotCopies) -> Result
  ) -> Result {
    let copies = SnapshotCopies(of: self, keepingUUIDs: true)
    defer { copies.release() }
    let model = copies.model(at: place, as: Model.self)
    if !isAlone {
      copies.fill()
      if !copies.link() { return read(model, copies) }
    }
    return copies.preparingReads { read(model, copies) }
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
      guard x.plan === y.plan, x.uuid == y.uuid, isSame(x.unknown, y.unknown) else { return false }
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

  private static func isSame(_ a: Unknown?, _ b: Unknown?) -> Bool {
    guard let a = a?.values, let b = b?.values else { return a == nil && b == nil }
    return a.className == b.className
      && JSONValue.object(a.properties).isWritten(as: .object(b.properties))
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
      for (key, value) in nodes[place].unknown?.values.properties ?? [:] {
        properties.append(newKey: key, value)
      }
      result.append(
        SyncFragment(
          .add, uuid: nodes[place].uuid, className: nodes[place].className, properties: properties))
    }
    return result
  }
}
