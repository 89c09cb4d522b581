/// A property as data: what replicas have to know of it to check, write and merge its values.
package final class PropertySchema: Sendable {
  /// The way in which the property takes part in the tree.
  package enum Kind: Sendable {
    /// A value without models. A weak reference counts as one.
    case plain
    /// One model, or none.
    case reference
    /// Models in order, each at most once.
    case collection
    /// Models by key. Each entry is a reference with a name of its own; see ``entry(_:)``.
    case dictionary
  }

  /// The name of the property on the wire.
  package let wireName: String
  /// The type of the property on the wire.
  package let type: _PropertyType
  /// The index of the property in ``ClassSchema/properties``.
  package let index: Int
  /// True if the property is part of fragments; false for a local one.
  package let isSynced: Bool
  /// True if changes are sent as what was added.
  package let isCounter: Bool
  /// The rule for values that several replicas have set; nil for none.
  package let mergeRule: MergeRule?
  /// The rules for the property's values; nil for none.
  package let rules: FieldRules?
  /// The numbers that the property can hold; nil if its type is not an integer.
  package let counterRange: CounterRange?
  /// The value in a new model: null or empty for one that holds models.
  package let defaultValue: JSONValue
  /// The way in which the property takes part in the tree.
  package let kind: Kind
  /// The key of the entry that this is; nil for a property that is declared.
  package let entryKey: String?
  private let codec: any ValueCodec

  package init(
    wireName: String, type: _PropertyType, index: Int, isSynced: Bool, isCounter: Bool,
    mergeRule: MergeRule?, rules: FieldRules? = nil, counterRange: CounterRange?,
    defaultValue: JSONValue, codec: any ValueCodec
  ) {
    self.wireName = wireName
    self.type = type
    self.index = index
    self.isSynced = isSynced
    self.isCounter = isCounter
    self.mergeRule = mergeRule
    self.rules = rules
    self.counterRange = counterRange
    self.defaultValue = defaultValue
    self.codec = codec
    entryKey = nil
    kind =
      switch type {
      case .reference: .reference
      case .collection: .collection
      case .dictionary(.reference): .dictionary
      default: .plain
      }
  }

  /// Makes an entry of a dictionary.
  private init(_ key: String, of dictionary: PropertySchema, _ element: _PropertyType) {
    wireName = EntryName.text(of: key, in: dictionary.wireName)
    type = element
    index = dictionary.index
    isSynced = dictionary.isSynced
    (isCounter, mergeRule, counterRange, defaultValue) = (false, nil, nil, .null)
    rules = nil
    kind = .reference
    entryKey = key
    codec = dictionary.codec
  }

  /// Returns the entry of a dictionary with a key, as a reference that has the index of the dictionary; nil for any other
  /// property. The dictionary need not have the entry: then the reference is null.
  package func entry(_ key: String) -> PropertySchema? {
    guard case .dictionary(let element) = type, kind == .dictionary else { return nil }
    return PropertySchema(EntryName.normal(key), of: self, element)
  }

  /// True for a collection of models.
  package var isCollection: Bool { kind == .collection }

  /// True for a reference to one model, which an entry of a dictionary is, too.
  package var isReference: Bool { kind == .reference }

  /// The class of the models that the property holds; nil for a plain one.
  package var heldClass: String? {
    switch type {
    case .reference(let name), .collection(let name), .dictionary(.reference(let name)): name
    default: nil
    }
  }

  /// Returns true if a property that holds models can hold those of a class.
  package func canHold(_ other: ClassSchema) -> Bool {
    heldClass.map { other.isKind(of: $0) } ?? false
  }

  /// Returns true if a plain property can hold the JSON.
  package func accepts(_ json: JSONValue) -> Bool { codec.accepts(json) }

  /// Returns the JSON as the property's type writes it; nil if it does not accept it.
  package func normalized(_ json: JSONValue) -> JSONValue? { codec.normalized(json) }

  /// Describes why a plain property cannot hold JSON that it does not accept, as its type puts it; nil if the type
  /// gives no reason.
  package func problem(with json: JSONValue) -> String? { codec.problem(with: json) }

  /// Returns true if two values of a plain property, as the type writes them, are the same.
  func isSame(_ a: JSONValue, as b: JSONValue) -> Bool { codec.areSame(a, b) }

  /// Returns true if two JSON values decode to the same value of this property, even if they are written differently.
  package func areSame(_ a: JSONValue, _ b: JSONValue) -> Bool {
    a.isWritten(as: b) || codec.areSame(a, b)
      || (kind != .plain && a.lowercased.isWritten(as: b.lowercased))
  }
}

extension JSONValue {
  /// The value with its UUIDs, alone or in an array, in lower case.
  fileprivate var lowercased: JSONValue {
    switch self {
    case .string(let text): .string(text.lowercased())
    case .array(let elements): .array(elements.map(\.lowercased))
    default: self
    }
  }
}
