extension JSONValue: Codable {
  /// Reads any JSON from a decoder.
  ///
  /// Keys of objects come in the order of their UTF-8 bytes, because decoders do not tell the one in the text. Whole
  /// numbers keep up to 64 bits. To read a text, `init(parsing:limits:)` is quicker, and strict.
  ///
  /// - Throws: what the decoder throws for a value that is none of JSON.
  public init(from decoder: any Decoder) throws {
    if let members = try? decoder.container(keyedBy: MemberKey.self) {
      var object = JSONObject()
      let keys = members.allKeys.sorted { $0.stringValue.precedesInBytes($1.stringValue) }
      for key in keys {
        object[key.stringValue] = try members.decode(JSONValue.self, forKey: key)
      }
      self = .object(object)
    } else if var elements = try? decoder.unkeyedContainer() {
      var array: [JSONValue] = []
      while !elements.isAtEnd { array.append(try elements.decode(JSONValue.self)) }
      self = .array(array)
    } else {
      self = try Self.scalar(decoder.singleValueContainer())
    }
  }

  private static func scalar(_ container: any SingleValueDecodingContainer) throws -> JSONValue {
    if container.decodeNil() { return .null }
    if let value = try? container.decode(String.self) { return .string(value) }
    if let value = try? container.decode(Bool.self) { return .bool(value) }
    if let value = try? container.decode(Int64.self) { return .integer(value) }
    if let value = try? container.decode(UInt64.self) { return .unsigned(value) }
    return .double(try container.decode(Double.self))
  }

  /// Writes the value to an encoder. Numbers that are not finite are written as null, as in ``description``.
  public func encode(to encoder: any Encoder) throws {
    switch self {
    case .array(let elements):
      var container = encoder.unkeyedContainer()
      for element in elements { try container.encode(element) }
    case .object(let object):
      var container = encoder.container(keyedBy: MemberKey.self)
      for (key, value) in object { try container.encode(value, forKey: MemberKey(key)) }
    default:
      var container = encoder.singleValueContainer()
      switch self {
      case .bool(let value): try container.encode(value)
      case .integer(let value): try container.encode(value)
      case .unsigned(let value): try container.encode(value)
      case .double(let value) where value.isFinite: try container.encode(value)
      case .float(let value) where value.isFinite: try container.encode(value)
      case .string(let value): try container.encode(value)
      case .null, .double, .float, .array, .object: try container.encodeNil()
      }
    }
  }
}

/// A key of an object, whatever it is.
package struct MemberKey: CodingKey {
  package let stringValue: String
  package var intValue: Int? { nil }

  package init(_ name: String) { stringValue = name }
  package init(stringValue: String) { self.init(stringValue) }
  package init?(intValue: Int) { return nil }
}
