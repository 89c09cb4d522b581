/// A hash of the wire names and types of a class, or of all classes of a scope. Two programs with
/// equal fingerprints use the same names and types on the wire; others differ, as far as 64 bits
/// can tell.
///
/// It depends on nothing else: not on the order of declarations, local properties, source names
/// that differ from wire names, default values, the process or the platform.
package struct SchemaFingerprint: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The hash.
  package let rawValue: UInt64

  /// Makes a fingerprint from its number.
  package init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Parses a ``description``. Returns nil for anything but 16 hexadecimal digits.
  package init?(_ text: String) {
    guard let value = UInt64(hexText: text) else { return nil }
    rawValue = value
  }

  /// The hash as 16 hexadecimal digits.
  package var description: String { rawValue.hexText }

  /// Hashes strings in order: FNV-1a over their UTF-8, each followed by a byte that UTF-8 does not
  /// contain.
  init(of texts: some Sequence<String>) {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    func feed(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
    for text in texts {
      for byte in text.utf8 { feed(byte) }
      feed(0xFF)
    }
    rawValue = hash
  }
}

extension ModelSchema {
  /// The fingerprint of the class: its wire name, and the wire names and types of its synced
  /// properties. Cost: O(n log n).
  package var fingerprint: SchemaFingerprint {
    let synced = properties.filter(\.isSynced)
      .sorted { $0.wireName.utf8.lexicographicallyPrecedes($1.wireName.utf8) }
    return SchemaFingerprint(
      of: [wireName] + synced.flatMap { [$0.wireName, $0.type.signature] })
  }
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

extension _PropertyType {
  /// A text that distinguishes the type from every other. It is part of fingerprints, so that
  /// changing it changes all of them.
  var signature: String {
    switch self {
    case .boolean: "boolean"
    case .integer(let name), .number(let name): name
    case .string: "string"
    case .date: "date"
    case .uuid: "uuid"
    case .url: "url"
    case .data: "data"
    case .decimal: "decimal"
    case .json: "json"
    case .color: "color"
    case .enumeration(let raw): "enumeration of \(raw.signature)"
    case .optional(let wrapped): "optional \(wrapped.signature)"
    case .array(let element): "array of \(element.signature)"
    case .set(let element): "set of \(element.signature)"
    case .dictionary(let value): "dictionary of \(value.signature)"
    case .value(let name): "value \(name)"
    case .weakReference(let name): "weak reference to \(name)"
    case .reference(let name): "reference to \(name)"
    case .collection(let name): "collection of \(name)"
    }
  }
}
