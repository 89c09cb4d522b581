/// An ordered collection of child models, each in it at most once.
///
/// ```swift
/// final class Canvas: ModelObject {
///   @Property var shapes: ModelArray<Shape> = []
/// }
/// canvas.shapes.append(circle)
/// canvas.shapes.move(from: 0, to: 2)
/// for shape in canvas.shapes { print(shape.x) }
/// ```
///
/// It is a value: a copy keeps what it holds. Changing the property in place costs at most O(sqrt n)
/// a step, also while somebody holds a copy, and is reported to collection observers step by step
/// once the change has ended. Replacing the whole array costs O(n log n): the difference is found and
/// reported. Inserting a model that is there already does nothing and says so in the result.
///
/// Isolation: that of its models.
public struct ModelArray<Element: ModelObject>: RandomAccessCollection {
  var list = ModelList()

  /// Makes an empty array.
  public init() {}

  /// Makes an array of the given models; one that occurs again is left out. Cost: O(n).
  public init(_ models: some Sequence<Element>) {
    for model in models { list.append(model) }
  }

  init(list: ModelList) { self.list = list }

  /// Always 0.
  public var startIndex: Int { 0 }
  /// The number of models.
  public var endIndex: Int { list.count }
  /// The number of models.
  public var count: Int { list.count }

  /// The model at `position`. Cost: O(log n).
  public subscript(position: Int) -> Element { Self.element(list[position]) }

  /// Sound because only elements are ever inserted, and `_value(of:)` checks a foreign list.
  fileprivate static func element(_ model: ModelObject) -> Element {
    unsafeDowncast(model, to: Element.self)
  }

  /// Iterates over the models that are there now, whatever happens to the property meanwhile.
  public func makeIterator() -> Iterator { Iterator(base: ModelList.Iterator(list)) }

  /// Where `element` stands. Cost: O(sqrt n).
  public func index(of element: Element) -> Int? { list.index(of: element) }

  /// Where `element` stands. Cost: O(sqrt n).
  public func firstIndex(of element: Element) -> Int? { list.index(of: element) }

  /// Whether `element` is in the array. Cost: O(sqrt n).
  public func contains(_ element: Element) -> Bool { list.contains(element) }

  /// Adds `element` at the end; false, and nothing happens, if it is in the array already.
  @discardableResult
  public mutating func append(_ element: Element) -> Bool { list.append(element) }

  /// Adds the elements at the end, leaving out those that are there already.
  public mutating func append(contentsOf elements: some Sequence<Element>) {
    for element in elements { list.append(element) }
  }

  /// Adds `element` at `position`; false, and nothing happens, if it is in the array already.
  @discardableResult
  public mutating func insert(_ element: Element, at position: Int) -> Bool {
    list.insert(element, at: position)
  }

  /// Takes out the model at `position`.
  @discardableResult
  public mutating func remove(at position: Int) -> Element {
    Self.element(list.remove(at: position))
  }

  /// Takes out `element`; false if it was not in the array.
  @discardableResult
  public mutating func remove(_ element: Element) -> Bool {
    guard let position = list.index(of: element) else { return false }
    list.remove(at: position)
    return true
  }

  /// Takes out every model for which `condition` is true. Cost: O(n), and O(sqrt n) each removal.
  public mutating func removeAll(where condition: (Element) throws -> Bool) rethrows {
    for position in indices.reversed() where try condition(self[position]) {
      list.remove(at: position)
    }
  }

  /// Takes out everything.
  public mutating func removeAll() { list.removeAll() }

  /// Moves the model at `position` so that it stands at `target` afterwards.
  public mutating func move(from position: Int, to target: Int) {
    list.move(from: position, to: target)
  }

  /// Replaces the models in `range`. Elements that stand elsewhere in the array already are left
  /// where they are; those that stay within the range keep their identity and may be moved.
  public mutating func replaceSubrange(
    _ range: Range<Int>, with elements: some Collection<Element>
  ) {
    precondition(
      range.lowerBound >= 0 && range.upperBound <= count,
      "The range \(range) is out of range of a ModelArray of \(count) models.")
    var target = list
    for _ in range { target.remove(at: range.lowerBound) }
    var place = range.lowerBound
    for element in elements where target.insert(element, at: place) { place += 1 }
    replace(with: target)
  }

  /// Sorts in place; only models that change their order are moved. Cost: O(n log n).
  public mutating func sort(by areInIncreasingOrder: (Element, Element) throws -> Bool) rethrows {
    replace(with: ModelList(try sorted(by: areInIncreasingOrder)))
  }

  private mutating func replace(with target: ModelList) {
    for operation in ListDifference.operations(from: list, to: target) {
      switch operation {
      case .insert(let model, let position): list.insert(model, at: position)
      case .remove(_, let position): list.remove(at: position)
      case .move(_, let from, let to): list.move(from: from, to: to)
      }
    }
  }

  /// Iterates over a ``ModelArray``.
  public struct Iterator: IteratorProtocol {
    var base: ModelList.Iterator

    /// The next model.
    public mutating func next() -> Element? {
      base.next().map(ModelArray.element)
    }
  }
}

extension ModelArray: ExpressibleByArrayLiteral {
  /// Makes an array of the given models; one that occurs again is left out.
  public init(arrayLiteral elements: Element...) { self.init(elements) }
}

extension ModelArray: Equatable {
  /// Whether both hold the same models in the same order. Cost: O(n), O(1) for unchanged copies.
  public static func == (a: ModelArray, b: ModelArray) -> Bool { a.list.isSame(as: b.list) }
}

extension ModelArray: CustomStringConvertible {
  /// The models in brackets.
  public var description: String { "[" + map { "\($0)" }.joined(separator: ", ") + "]" }
}

extension ModelArray: PropertyValue {
  /// A collection of the element's class.
  public static var propertyType: PropertyType { .collection(Element.wireName) }
  /// The UUIDs of the models.
  public var jsonValue: JSONValue {
    var uuids: [JSONValue] = []
    uuids.reserveCapacity(list.count)
    list.forEach { uuids.append(.string($0.uuid.wireText)) }
    return .array(uuids)
  }
  /// A collection cannot be read without a scope to find the models in.
  public static func decode(_ json: JSONValue) -> ModelArray? { nil }
  /// A collection.
  public static var _storageKind: _StorageKind { .collection }
  /// The list inside.
  public static func _list(of value: ModelArray) -> ModelList? { value.list }
  /// An array of `list`; nil if an element is of another class.
  public static func _value(of list: ModelList) -> ModelArray? {
    var fits = true
    list.forEach { if !($0 is Element) { fits = false } }
    return fits ? ModelArray(list: list) : nil
  }
  /// The element's class.
  public static var _modelClass: ModelObject.Type? { Element.self }
  /// Whether `model` is an element.
  public static func _canHold(_ model: ModelObject) -> Bool { model is Element }
  /// Has the changes that follow written down.
  ///
  /// Sound because `Property` passes the address of a value of its own type, during an access to it.
  public static func _openLease(at address: UnsafeMutableRawPointer) -> ListLease? {
    let value = address.assumingMemoryBound(to: ModelArray.self)
    return ListLease(&value.pointee.list)
  }
  /// Changes the list in place. Sound for the same reason.
  public static func _changeList(
    at address: UnsafeMutableRawPointer, _ change: (inout ModelList) -> Void
  ) {
    change(&address.assumingMemoryBound(to: ModelArray.self).pointee.list)
  }
}
