import Foundation

/// Child models by key.
///
/// ```swift
/// final class Team: ModelObject {
///   @Property var members: ModelDictionary<String, Member> = [:]
/// }
/// team.members["Ada"] = ada
/// team.members["Ada"] = nil
/// for (name, member) in team.members { print(name, member.score) }
/// ```
///
/// Each entry is synced by itself: of two replicas that set different entries at the same time, both keep theirs, and of
/// two that set the same one, the server's order decides, as for a property. A model can have several keys, and belongs to
/// the tree as long as it has one.
///
/// A key is a `String`, an `Int`, or any type that is `CodingKeyRepresentable`, such as an enumeration with raw values of
/// these types that declares it. On the wire it is text. Keys that are canonically equivalent are the same key.
///
/// A model dictionary is a value: a copy keeps its content. Reading an entry costs O(log n); changing one costs O(sqrt n),
/// even while the app holds a copy.
///
/// A dictionary belongs to the isolation domain of its models.
public struct ModelDictionary<Key: CodingKeyRepresentable & Hashable, Element: ModelObject>:
  Sequence
{
  var table = ModelTable()

  init(table: ModelTable) { self.table = table }

  /// The number of entries. Those whose key is none of the type, which only another program can write, count, too.
  public var count: Int { table.count }

  /// True if there is no entry.
  public var isEmpty: Bool { table.count == 0 }

  /// The keys, in the order of their text.
  public var keys: [Key] { map(\.key) }

  /// The models, in the order of their keys.
  public var values: [Element] { map(\.value) }

  /// The model with a key; nil if there is none. Setting nil removes the entry.
  public subscript(key: Key) -> Element? {
    get { table[Self.text(of: key)].map { Self.element($0) } }
    set { table[Self.text(of: key)] = newValue }
  }

  /// Returns an iterator over the current entries, in the order of the text of their keys. Later changes of the property do
  /// not affect it.
  public func makeIterator() -> some IteratorProtocol<(key: Key, value: Element)> {
    ModelDictionaryIterator<Key, Element>(cursor: ModelTable.Cursor(table))
  }

  /// Safe because only elements are ever put in: who makes a dictionary of a table has checked its models.
  fileprivate static func element(_ model: ModelObject) -> Element {
    unsafeDowncast(model, to: Element.self)
  }

  private static func text(of key: Key) -> String {
    EntryName.normal(key as? String ?? key.codingKey.stringValue)
  }

  /// Returns the key with a text; nil if another program has written an entry whose key is none of this type.
  static func key(_ text: String) -> Key? {
    if let key = text as? Key { return key }
    guard let key = Key(codingKey: EntryKey(stringValue: text)), self.text(of: key) == text else {
      return nil
    }
    return key
  }
}

/// The text of a key, from which a key is made.
private struct EntryKey: CodingKey {
  let stringValue: String
  var intValue: Int? { Int(stringValue) }

  init(stringValue: String) { self.stringValue = stringValue }
  init(intValue: Int) { self.init(stringValue: "\(intValue)") }
}

/// Iterates over the entries of a ``ModelDictionary``.
private struct ModelDictionaryIterator<
  Key: CodingKeyRepresentable & Hashable, Element: ModelObject
>: IteratorProtocol {
  var cursor: ModelTable.Cursor

  mutating func next() -> (key: Key, value: Element)? {
    while let (text, model) = cursor.entry {
      cursor.advance()
      if let key = ModelDictionary<Key, Element>.key(text) {
        return (key, ModelDictionary<Key, Element>.element(model))
      }
    }
    return nil
  }
}

extension ModelDictionary: ExpressibleByDictionaryLiteral {
  /// Makes a dictionary of the given entries. Of several with one key, the last counts.
  public init(dictionaryLiteral elements: (Key, Element)...) {
    for (key, element) in elements { self[key] = element }
  }
}

/// Two dictionaries are equal if they hold the same models with the same keys. Cost: O(n), less for copies of which one
/// was changed.
extension ModelDictionary: Equatable {}

extension ModelDictionary: PropertyValue {
  /// References to the element's class by key.
  public static var _propertyType: _PropertyType { .dictionary(.reference(Element.wireName)) }
  /// The UUIDs of the models by the text of their keys.
  public var _jsonValue: JSONValue { table.json }
  /// Returns nil: a dictionary cannot be decoded without a scope in which to find the models.
  public static func _decode(_ json: JSONValue) -> ModelDictionary? { nil }
  /// Always `dictionary`.
  public static var _storageKind: _StorageKind { .dictionary }
  /// The access to the elements.
  public static var _holder: _ModelHolding? { _ModelHolding(type: Self.self) }
}

extension ModelDictionary: ModelHolder {
  static var modelClass: ModelObject.Type? { Element.self }

  static func table(at address: UnsafeRawPointer) -> ModelTable? {
    address.assumingMemoryBound(to: ModelDictionary.self).pointee.table
  }

  /// The caller has checked each model with `canHold`, or has the table from a dictionary of this type: looking at each
  /// would cost O(n) for every entry that is written.
  static func value(of table: ModelTable) -> ModelDictionary? { ModelDictionary(table: table) }

  static func canHold(_ model: ModelObject) -> Bool { model is Element }
}

extension ModelTable {
  /// The UUIDs by key.
  var json: JSONValue {
    var result = JSONObject()
    result.reserveCapacity(count)
    forEach { result.append(newKey: $0, $1._jsonValue) }
    return .object(result)
  }
}
