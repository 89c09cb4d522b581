extension ModelSnapshot: Encodable {
  /// Writes the model and all below it as plain nested objects, to hand them to something that knows nothing of
  /// Jetstream.
  ///
  /// ```swift
  /// let report = try JSONEncoder().encode(order.snapshot())
  /// // {"uuid":"0f8fad5b-...","number":7,"customer":{"uuid":"...","name":"Ada"},"items":[...]}
  /// ```
  ///
  /// An object has the model's properties by their names in Swift, `.local` ones included, and the model's UUID as
  /// `uuid`. Values are written as on the wire: dates as seconds since 1970, data as base64 text. In place of a model
  /// there is its object, or null; in place of a collection an array of objects, in place of a
  /// dictionary an object of them by key. Each model is written once, where it
  /// is met first, with the properties in the order of their declaration and each down to the bottom: a model that is
  /// met again, in a cycle or by another path, is written as its UUID. So is the target of a weak reference.
  ///
  /// - Throws: `EncodingError.invalidValue` if more than 128 models are nested, and what the encoder throws.
  public func encode(to encoder: any Encoder) throws {
    try SnapshotEncoding(graph).encode(place, depth: 1, to: encoder)
  }
}

/// One run of an encoder over a snapshot.
private final class SnapshotEncoding {
  private let graph: SnapshotGraph
  /// The models that have been written, by their places.
  private var written: Set<Int> = []
  /// Encoders are recursive, and so are readers of what they write.
  private static let maxDepth = 128

  init(_ graph: SnapshotGraph) { self.graph = graph }

  /// A model below the one that is being written.
  private struct Child: Encodable {
    let encoding: SnapshotEncoding
    let place: Int
    let depth: Int

    func encode(to encoder: any Encoder) throws {
      try encoding.encode(place, depth: depth, to: encoder)
    }
  }

  func encode(_ place: Int, depth: Int, to encoder: any Encoder) throws {
    let node = graph.nodes[place]
    guard written.insert(place).inserted else {
      var container = encoder.singleValueContainer()
      return try container.encode(node.uuid.wireText)
    }
    guard depth <= Self.maxDepth else {
      throw EncodingError.invalidValue(
        node.uuid,
        .init(
          codingPath: encoder.codingPath,
          debugDescription:
            "The \(node.plan.schema.wireName) with this UUID is nested more than \(Self.maxDepth) models deep."
        ))
    }
    var container = encoder.container(keyedBy: MemberKey.self)
    try container.encode(node.uuid.wireText, forKey: MemberKey("uuid"))
    for property in node.plan.schema.properties {
      let key = MemberKey(property.name)
      func child(_ place: Int) -> Child { Child(encoding: self, place: place, depth: depth + 1) }
      switch node.values[property.index] {
      case .value, .json: try container.encode(graph.json(of: property, at: place), forKey: key)
      case .model(nil): try container.encodeNil(forKey: key)
      case .model(let target?): try container.encode(child(target), forKey: key)
      case .models(let places): try container.encode(places.map(child), forKey: key)
      case .entries(let entries):
        var nested = container.nestedContainer(keyedBy: MemberKey.self, forKey: key)
        for entry in entries { try nested.encode(child(entry.place), forKey: MemberKey(entry.key)) }
      }
    }
  }
}
