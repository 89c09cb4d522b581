/// The classes of a scope.
extension Scope {
  /// Returns the range of a counter of the model that a fragment names. Does not look up
  /// collections.
  func counterRange(
    of entry: PropertyOperations.Entry, in fragment: SyncFragment
  ) -> CounterRange {
    guard entry.operations.contains(where: { $0.model == nil }) else { return .unknown }
    return schema(of: fragment)?.counterRange(of: entry.key) ?? .unknown
  }

  /// The schemas of all classes that the scope knows, in the order of their wire names.
  package var schemas: [ModelSchema] {
    tree.knownSchemas.sorted { $0.wireName.precedesInBytes($1.wireName) }
  }

  /// True if a class that the scope knows has a property whose values are unique in a collection.
  package var hasUnique: Bool { tree.hasUnique }

  /// The class of the root, and all classes that the scope knows, as data; nil for a scope without a root.
  package var wireSchema: Schema? {
    root.map { Schema(root: $0.schema.data, classes: schemas.map(\.data)) }
  }

  /// The fingerprint of all classes that the scope knows: those that property types lead to from
  /// the root, and those that it was given. A class that only becomes known with a model counts
  /// from then on.
  package var schemaFingerprint: SchemaFingerprint {
    SchemaFingerprint(of: schemas.flatMap { [$0.wireName, $0.fingerprint.description] })
  }
}
