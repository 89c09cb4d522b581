import Foundation

/// The codec of a Swift type, for a schema that is data.
package struct TypeCodec: ValueCodec {
  private let property: any StoredProperty.Type
  private let form: Form

  /// A form of JSON of which no value of the type has to be made.
  private enum Form: Sendable {
    /// Numbers, texts and truth values that are written as they are read.
    case integer, string, boolean
    /// The objects of a dictionary.
    case members(any MemberwiseValue.Type)
    /// Any other.
    case other
  }

  /// Makes the codec of a property.
  init(_ property: any StoredProperty.Type) {
    self.property = property
    form =
      switch property.valueType {
      case is Int64.Type: .integer
      case is Int.Type where Int.bitWidth == Int64.bitWidth: .integer
      case is String.Type: .string
      case is Bool.Type: .boolean
      case let type as any MemberwiseValue.Type: .members(type)
      default: .other
      }
  }

  /// Makes the codec of a type that is known by its description. Of an enumeration, any raw value counts; of a value type
  /// of an app, any JSON.
  package init(describing type: _PropertyType) {
    func stored<Value: PropertyValue>(_: Value.Type) -> any StoredProperty.Type {
      Property<Value>.self
    }
    self.init(stored(Self.valueType(of: type)))
  }

  /// The numbers that the type can hold; nil if it is not an integer.
  package var counterRange: CounterRange? { CounterRange(property.valueType) }

  package func normalized(_ json: JSONValue) -> JSONValue? {
    switch (form, json) {
    case (.integer, .integer), (.string, .string), (.boolean, .bool): json
    case (.members(let type), _): type.normalized(json)
    default: property.normalized(json)
    }
  }

  package func accepts(_ json: JSONValue) -> Bool {
    switch (form, json) {
    case (.integer, .integer), (.string, .string), (.boolean, .bool): true
    case (.members(let type), _): type.accepts(json)
    default: property.accepts(json)
    }
  }

  package func problem(with json: JSONValue) -> String? { property._problem(with: json) }

  package func areSame(_ a: JSONValue, _ b: JSONValue) -> Bool {
    switch (form, a, b) {
    case (.integer, .integer(let a), .integer(let b)): a == b
    case (.string, .string(let a), .string(let b)): a.hasBytes(of: b)
    case (.boolean, .bool(let a), .bool(let b)): a == b
    case (.members(let type), .object(let a), .object(let b)):
      type.areSame(a, b) ?? property.areSame(.object(a), .object(b))
    default: property.areSame(a, b)
    }
  }

  // MARK: Types by their descriptions

  private static func valueType(of type: _PropertyType) -> any PropertyValue.Type {
    func optional<Value: PropertyValue>(_: Value.Type) -> any PropertyValue.Type { Value?.self }
    func array<Value: PropertyValue>(_: Value.Type) -> any PropertyValue.Type { [Value].self }
    func set<Value: PropertyValue & Hashable>(_: Value.Type) -> any PropertyValue.Type {
      Set<Value>.self
    }
    func dictionary<Value: PropertyValue>(_: Value.Type) -> any PropertyValue.Type {
      [String: Value].self
    }
    switch type {
    case .boolean: return Bool.self
    case .integer(let name), .number(let name):
      let numbers: [any PropertyValue.Type] = [
        Int.self, Int8.self, Int16.self, Int32.self, Int64.self, UInt.self, UInt8.self,
        UInt16.self, UInt32.self, UInt64.self, Float.self, Double.self,
      ]
      return numbers.first { "\($0)" == name } ?? JSONValue.self
    case .string: return String.self
    case .date: return Date.self
    case .uuid: return UUID.self
    case .url: return URL.self
    case .data: return Data.self
    case .decimal: return Decimal.self
    case .json, .value: return JSONValue.self
    case .color: return RGBAColor.self
    case .enumeration(let raw): return valueType(of: raw)
    case .optional(let wrapped): return optional(valueType(of: wrapped))
    case .array(let element): return array(valueType(of: element))
    case .set(let element):
      if let element = valueType(of: element) as? any (PropertyValue & Hashable).Type {
        return set(element)
      }
      return set(JSONValue.self)
    case .dictionary(let value): return dictionary(valueType(of: value))
    case .weakReference, .reference: return UUID?.self
    case .collection: return [UUID].self
    }
  }
}
