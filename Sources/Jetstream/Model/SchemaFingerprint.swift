extension ModelSchema {
  /// The fingerprint of the class: its wire name, and the wire names and types of its synced
  /// properties.
  package var fingerprint: SchemaFingerprint { data.fingerprint }
}
