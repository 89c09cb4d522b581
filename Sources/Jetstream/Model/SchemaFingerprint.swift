extension ModelSchema {
  /// The fingerprint of the class: its wire name, and the wire names and types of its synced
  /// properties.
  package var fingerprint: SchemaFingerprint { data.fingerprint }
}

extension Scope {
  /// The schemas of all classes that the scope knows, in the order of their wire names.
  package var schemas: [ModelSchema] {
    knownSchemas.sorted { $0.wireName.utf8.lexicographicallyPrecedes($1.wireName.utf8) }
  }

  /// The fingerprint of all classes that the scope knows: those that property types lead to from
  /// the root, and those that it was given. A class that only becomes known with a model counts
  /// from then on.
  package var schemaFingerprint: SchemaFingerprint {
    SchemaFingerprint(of: schemas.flatMap { [$0.wireName, $0.fingerprint.description] })
  }
}
