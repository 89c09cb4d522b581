extension Set: PropertyValue where Element: PropertyValue {
  /// A set of the element's type.
  public static var _propertyType: _PropertyType { .set(Element._propertyType) }
  /// The elements as an array, in the order of the UTF-8 bytes of their canonical text, each once: equal sets have equal
  /// bytes. Cost: O(n log n).
  public var _jsonValue: JSONValue {
    var elements: [(text: [UInt8], json: JSONValue)] = []
    elements.reserveCapacity(count)
    for element in self {
      let json = element._jsonValue
      var text: [UInt8] = []
      json.writeCanonical(to: &text)
      elements.append((text, json))
    }
    elements.sort { $0.text.lexicographicallyPrecedes($1.text) }
    var result: [JSONValue] = []
    result.reserveCapacity(elements.count)
    // Elements that the set tells apart may be written alike: those that are not a number.
    for (index, element) in elements.enumerated()
    where index == 0 || element.text != elements[index - 1].text {
      result.append(element.json)
    }
    return .array(result)
  }
  /// Reads an array in any order all of whose elements can be read. Equal ones become one.
  public static func _decode(_ json: JSONValue) -> Set<Element>? {
    guard let elements = [Element]._decode(json) else { return nil }
    // The first one stays.
    return Set(elements)
  }
  /// The problem with the first element that cannot be read.
  public static func _problem(with json: JSONValue) -> String? { [Element]._problem(with: json) }
  /// Equality of the elements as they are written. Cost: O(n).
  public static func _isSame(_ a: Set<Element>, _ b: Set<Element>) -> Bool {
    let isSame =
      a.count == b.count
      && a.allSatisfy { element in
        b.firstIndex(of: element).map { Element._isSame(element, b[$0]) } ?? false
      }
    if isSame { return true }
    // No set finds a not-a-number again; as it is written, it is one element.
    guard a.contains(where: { $0 != $0 }), b.contains(where: { $0 != $0 }) else { return false }
    return a._jsonValue == b._jsonValue
  }
  /// A buffer.
  @inlinable public static var _isBuffer: Bool { true }
}
