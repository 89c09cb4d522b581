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
  /// Reads an array in any order all of whose elements can be read, and of which at most 100 different ones have the
  /// same hash. Elements that are equal, or written alike, become one.
  public static func _decode(_ json: JSONValue) -> Set<Element>? {
    guard let elements = [Element]._decode(json) else { return nil }
    return Set(distinct: elements)
  }
  /// The problem with the first element that cannot be read, or with too many elements of one hash.
  public static func _problem(with json: JSONValue) -> String? {
    if let problem = [Element]._problem(with: json) { return problem }
    guard let elements = [Element]._decode(json), Set(distinct: elements) == nil else { return nil }
    return "more than \(mostOfOneHash) elements of the set have the same hash"
  }
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

  /// The number of different elements that may have the same hash.
  private static var mostOfOneHash: Int { 100 }

  /// Makes a set of elements, the first one of those that are equal or written alike; nil if too many have the same
  /// hash.
  ///
  /// A set compares an element with all others of its hash. The author of the elements could make that take time in
  /// proportion to the square of their number: a decimal number hashes what a `Double` has of it, `Data` its first
  /// bytes, and what is not a number equals nothing, itself included.
  private init?(distinct elements: [Element]) {
    self.init(minimumCapacity: elements.count)
    var first: [Int: Element] = [:]
    first.reserveCapacity(elements.count)
    // All elements with a hash that several different ones have.
    var rivals: [Int: [Element]] = [:]
    for element in elements {
      let hash = element.hashValue
      if let one = first[hash] {
        if contains(element) { continue }
        if rivals[hash] == nil { rivals[hash] = [one] }
        if rivals[hash]!.contains(where: { Element._isSame($0, element) }) { continue }
        if rivals[hash]!.count == Self.mostOfOneHash { return nil }
        rivals[hash]!.append(element)
      } else {
        first[hash] = element
      }
      insert(element)
    }
  }
}
