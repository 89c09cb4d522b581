/// A number that tells whether two programs mean the same by a class, or by all classes of a scope:
/// equal for equal names and types on the wire, different, as far as 64 bits go, for others.
///
/// It depends on nothing else: not on the order of declarations, on local properties, on names in the
/// source that have another one on the wire, on defaults, on the process or the platform.
public struct SchemaFingerprint: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The number.
  public let rawValue: UInt64

  /// Makes a fingerprint of a number.
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Reads what ``description`` gives; nil for anything but 16 hexadecimal digits.
  public init?(_ text: String) {
    guard let value = UInt64(hexText: text) else { return nil }
    rawValue = value
  }

  /// The number as 16 hexadecimal digits.
  public var description: String { rawValue.hexText }

  /// The fingerprint of some texts in their order: FNV-1a over their UTF-8, each followed by a byte
  /// that no UTF-8 contains.
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
  /// The fingerprint of what the class is on the wire: its name, and the names and types of its synced
  /// properties. Cost: O(n log n).
  public var fingerprint: SchemaFingerprint {
    let synced = properties.filter(\.isSynced)
      .sorted { $0.wireName.utf8.lexicographicallyPrecedes($1.wireName.utf8) }
    return SchemaFingerprint(
      of: [wireName] + synced.flatMap { [$0.wireName, $0.type.signature] })
  }
}

extension Scope {
  /// The schemas of all classes that the scope knows, in the order of their wire names.
  public var schemas: [ModelSchema] {
    knownSchemas.sorted { $0.wireName.utf8.lexicographicallyPrecedes($1.wireName.utf8) }
  }

  /// The fingerprint of all classes that the scope knows: those that property types lead to from the
  /// root and those that it was given. A class that only a model brings along counts from then on.
  public var schemaFingerprint: SchemaFingerprint {
    SchemaFingerprint(of: schemas.flatMap { [$0.wireName, $0.fingerprint.description] })
  }
}

extension PropertyType {
  /// The type in a form that tells it from every other. It is part of fingerprints: to change it
  /// changes all of them.
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
