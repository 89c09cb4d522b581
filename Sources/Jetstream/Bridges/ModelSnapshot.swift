import Foundation

extension ObservableModel {
  /// Copies the model's values, and those of everything that it holds, for another isolation domain.
  ///
  /// ```swift
  /// let frozen = shape.snapshot()
  /// Task.detached { render(frozen.x, frozen.y, frozen.parts.map(\.color)) }
  /// ```
  ///
  /// Cost: O(n) for n models below, each of which is copied once, also where they form cycles.
  public func snapshot() -> ModelSnapshot<Self> {
    ModelSnapshot(graph: SnapshotGraph(CollectionOfOne<ModelObject>(self)), place: 0)
  }
}

/// A model and all that it held, as they were at one moment. A value: it never changes, and it is Sendable.
///
/// Properties are read by their names, with the same types; in place of a model there is its snapshot,
/// in place of a collection an array of snapshots, in place of a dictionary a Swift dictionary of them.
/// Values are exactly those of the model, `.local` ones included. Stored properties of the class that
/// are not a `@Property` are not copied. Reading a stored value costs O(1), except for the first time in the process.
///
/// A computed property gives what the class's getter makes of the copied values. It runs on models made for the
/// purpose, in no scope and with no parents but those that are made with them: the model with all below it and, when
/// the getter reads weak references, their targets with all below those. That costs O(n) each time. To read many of
/// them, use a copy from ``makeModel(keepingUUIDs:)``. The models that the getter returns are those of the snapshot;
/// those that it makes are in a snapshot of their own.
///
/// Two snapshots are equal if they are of the same models, by UUID, with the same values, all the way down. What newer
/// peers have sent, and the class does not know, counts among the values. Cost: O(n), O(1) for copies of one snapshot.
@dynamicMemberLookup
public struct ModelSnapshot<Model: ModelObject>: Sendable, Hashable {
  private let content: SnapshotContent

  init(graph: SnapshotGraph, place: Int) {
    content = SnapshotContent(graph: graph, place: place)
  }

  var graph: SnapshotGraph { content.graph }
  var place: Int { content.place }

  private var node: SnapshotGraph.Node { graph.nodes[place] }

  /// The UUID of the model at the time of the snapshot, by which `Scope.model(_:)` finds the model again. A root that has
  /// taken the server's UUID since is found only by that one: ask `Scope.root` for it.
  public var uuid: UUID { node.uuid }

  /// The name of the model's class on the wire.
  package var className: String { node.className }

  /// The properties of this model as a JSON object by name, `.local` ones included. Child models
  /// are written as their UUIDs.
  var json: JSONValue {
    var properties = JSONObject()
    for property in node.plan.schema.properties {
      properties.append(newKey: property.name, graph.json(of: property, at: place))
    }
    return .object(properties)
  }

  /// The model and all models below it as add fragments, as a scope would send them: depth first,
  /// each model once, without `.local` properties. Cost: O(n).
  package var fragments: [SyncFragment] { graph.fragments(from: place) }

  /// Returns the same as a snapshot of a subclass; nil if the model is of another class.
  public func cast<Subclass: ModelObject>(
    to subclass: Subclass.Type = Subclass.self
  ) -> ModelSnapshot<Subclass>? {
    guard node.plan.schema.modelClass is Subclass.Type else { return nil }
    return ModelSnapshot<Subclass>(graph: graph, place: place)
  }

  /// Makes a copy of the model and of all models below it, in no scope, for the caller's isolation
  /// domain. Cost: O(n).
  ///
  /// With the original UUIDs, the copies can replace the originals in another scope, but cannot
  /// join the scope that holds the originals. With new UUIDs they are duplicates. Of the properties that newer peers have
  /// sent, and the class does not know, a duplicate lacks those whose value is the UUID of a model in the scope of the
  /// original, or an array with one: on those peers, the models would be in the original and in the duplicate at once.
  /// If the original was in no scope when the snapshot was taken, every UUID counts.
  public func makeModel(keepingUUIDs: Bool = true) -> Model {
    graph.makeModel(place, keepingUUIDs: keepingUUIDs)
  }

  // MARK: Members

  /// The value of a stored or computed property.
  public subscript<Value: Sendable>(dynamicMember keyPath: KeyPath<Model, Value>) -> Value {
    let access = access(at: keyPath)
    if case .stored(let index) = access {
      switch node.values[index] {
      case .value(let shared): if let value = shared.value as? Value { return value }
      case .json(let json):
        if let type = Value.self as? any PropertyValue.Type,
          let value = type._decode(json) as? Value
        {
          return value
        }
      case .model, .models, .entries: break
      }
    }
    if case .alone = access {
      return graph.evaluate(place, isAlone: true) { (model: Model, _) in model[keyPath: keyPath] }
    }
    return evaluate(keyPath) { value, _ in value }
  }

  /// The snapshot of the model that a property refers to; nil if it refers to none, or weakly to a model that is not in the
  /// snapshot.
  public subscript<Child: ModelObject>(
    dynamicMember keyPath: KeyPath<Model, Child?>
  ) -> ModelSnapshot<Child>? {
    if case .stored(let index) = access(at: keyPath) {
      switch node.values[index] {
      case .model(let child):
        return child.map { ModelSnapshot<Child>(graph: graph, place: $0) }
      case .json(let target):
        let place = graph.place(ofTarget: target)
        return place.flatMap { ModelSnapshot<ModelObject>(graph: graph, place: $0).cast() }
      case .value, .models, .entries: break
      }
    }
    return evaluate(keyPath) { child, copies in
      child.flatMap { copies.snapshots(of: CollectionOfOne($0))[$0] }
    }
  }

  /// The snapshots of the models that a collection holds. Cost: O(n) for n models, so read it once for a loop.
  public subscript<Element: ModelObject>(
    dynamicMember keyPath: KeyPath<Model, ModelArray<Element>>
  ) -> [ModelSnapshot<Element>] {
    if case .stored(let index) = access(at: keyPath), case .models(let places) = node.values[index]
    {
      return places.map { ModelSnapshot<Element>(graph: graph, place: $0) }
    }
    return evaluate(keyPath) { models, copies in
      let snapshots = copies.snapshots(of: models)
      return models.map { snapshots[$0]! }
    }
  }

  /// The snapshots of the models that a dictionary holds, by key. Cost: O(n) for n models, so read it once for a loop.
  public subscript<Key, Element: ModelObject>(
    dynamicMember keyPath: KeyPath<Model, ModelDictionary<Key, Element>>
  ) -> [Key: ModelSnapshot<Element>] {
    var result: [Key: ModelSnapshot<Element>] = [:]
    if case .stored(let index) = access(at: keyPath),
      case .entries(let entries) = node.values[index]
    {
      for entry in entries {
        guard let key = ModelDictionary<Key, Element>.key(entry.key) else { continue }
        result[key] = ModelSnapshot<Element>(graph: graph, place: entry.place)
      }
      return result
    }
    return evaluate(keyPath) { models, copies in
      let snapshots = copies.snapshots(of: models.values)
      for (key, model) in models { result[key] = snapshots[model] }
      return result
    }
  }

  private func access(at keyPath: PartialKeyPath<Model>) -> SnapshotPlan.Access {
    node.plan.access(at: keyPath, of: place, in: graph)
  }

  /// Runs a getter on copies of the models, and returns what `body` makes of its result.
  private func evaluate<Value, Result>(
    _ keyPath: KeyPath<Model, Value>, _ body: (Value, SnapshotCopies) -> Result
  ) -> Result {
    graph.evaluate(place) { (model: Model, copies) in body(model[keyPath: keyPath], copies) }
  }
}

/// A model in a frozen graph. Two are equal if they are of the same models with the same values.
private struct SnapshotContent: Sendable, Hashable {
  let graph: SnapshotGraph
  let place: Int

  static func == (a: SnapshotContent, b: SnapshotContent) -> Bool {
    SnapshotGraph.isSame(a.graph, a.place, b.graph, b.place)
  }

  /// Hashes the UUID, the class name and the plain values of the model at the top. Of unknown properties, it hashes the
  /// names, which are in order: values are equal if they are written the same, and may be of different types then.
  func hash(into hasher: inout Hasher) {
    let node = graph.nodes[place]
    hasher.combine(node.uuid)
    hasher.combine(node.className)
    hasher.combine(node.unknown?.values.properties.map(\.key))
    for property in node.plan.schema.properties where property.kind == .plain {
      hasher.combine(graph.json(of: property, at: place))
    }
  }
}

extension ModelSnapshot: CustomStringConvertible {
  /// The wire name, UUID and values of the model.
  public var description: String { "\(className) \(uuid.wireText) \(json)" }
}
