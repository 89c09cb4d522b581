/// An ordered collection of child models, each at most once.
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
/// A model array is a value: a copy keeps its content. Changing the property in place costs at most
/// O(sqrt n) per step, even while the app holds a copy, and collection observers are notified of
/// each step once the change has ended. Replacing the whole array costs O(n log n): the difference
/// is computed and reported. Inserting a model that is already in the array does nothing and
/// returns false.
///
/// While the property is changed in place, it must not be read, not even in the closure that is
/// passed to ``removeAll(where:)``: Swift traps. Take a copy before, which costs nothing.
///
/// ```swift
/// let all = canvas.shapes
/// canvas.shapes.removeAll { shape in all.contains { $0.hides(shape) } }
/// ```
///
/// An array belongs to the isolation domain of its models.
public struct ModelArray<Element: ModelObject>: RandomAccessCollection {
  var list = ModelList()

  /// Makes an empty array.
  package init() {}

  /// Makes an array of the given models, without repetitions. Cost: O(n).
  public init(_ models: some Sequence<Element>) {
    for model in models { list.append(model) }
  }

  init(list: ModelList) { self.list = list }

  /// Always 0.
  public var startIndex: Int { 0 }
  /// The number of models.
  public var endIndex: Int { list.count }
  /// The model at `position`. Cost: O(log n).
  public subscript(position: Int) -> Element { Self.element(list[position]) }

  /// Safe because only elements are ever put in: code that makes an array of a list has checked its models.
  fileprivate static func element(_ model: ModelObject) -> Element {
    unsafeDowncast(model, to: Element.self)
  }

  /// Returns an iterator over the current models. Later changes of the property do not affect it.
  public func makeIterator() -> some IteratorProtocol<Element> {
    ModelArrayIterator<Element>(base: ModelList.Iterator(list))
  }

  /// Answers `firstIndex(of:)` before that looks at each element. Cost: O(sqrt n).
  public func _customIndexOfEquatableElement(_ element: Element) -> Int?? {
    .some(list.index(of: element))
  }

  /// Answers `contains(_:)` before that looks at each element. Cost: O(sqrt n).
  public func _customContainsEquatableElement(_ element: Element) -> Bool? {
    list.contains(element)
  }

  /// Appends `element`. Returns false and does nothing if it is already in the array. Cost: O(sqrt
  /// n).
  @discardableResult
  public mutating func append(_ element: Element) -> Bool { list.append(element) }

  /// Appends the elements that are not in the array yet.
  public mutating func append(contentsOf elements: some Sequence<Element>) {
    for element in elements { list.append(element) }
  }

  /// Inserts `element` at `position`. Returns false and does nothing if it is already in the array.
  /// Cost: O(sqrt n).
  @discardableResult
  public mutating func insert(_ element: Element, at position: Int) -> Bool {
    list.insert(element, at: position)
  }

  /// Removes and returns the model at `position`. Cost: O(sqrt n).
  @discardableResult
  public mutating func remove(at position: Int) -> Element {
    Self.element(list.remove(at: position))
  }

  /// Removes `element`. Returns false if it was not in the array. Cost: O(sqrt n).
  @discardableResult
  public mutating func remove(_ element: Element) -> Bool {
    guard let position = list.index(of: element) else { return false }
    list.remove(at: position)
    return true
  }

  /// Removes every model for which `condition` returns true. Cost: O(n), plus O(sqrt n) per
  /// removal.
  public mutating func removeAll(where condition: (Element) throws -> Bool) rethrows {
    for position in indices.reversed() where try condition(self[position]) {
      list.remove(at: position)
    }
  }

  /// Removes all models.
  public mutating func removeAll() { list.removeAll() }

  /// Moves the model at `position` to the index `target`, counted after the move. Cost: O(sqrt n).
  public mutating func move(from position: Int, to target: Int) {
    list.move(from: position, to: target)
  }

  /// Replaces the models in `range` by `elements`. Elements that are already in the array outside of
  /// the range stay where they are. Elements that are already in the range stay or are moved; they
  /// are not removed and inserted again.
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

  /// Sorts in place. Moves only the models whose relative order changes. Cost: O(n log n).
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
}

/// Iterates over the models of a ``ModelArray``.
private struct ModelArrayIterator<Element: ModelObject>: IteratorProtocol {
  var base: ModelList.Iterator

  mutating func next() -> Element? { base.next().map(ModelArray<Element>.element) }
}

extension ModelArray: ExpressibleByArrayLiteral {
  /// Makes an array of the given models, without repetitions.
  public init(arrayLiteral elements: Element...) { self.init(elements) }
}

/// Two arrays are equal if they hold the same models in the same order. Cost: O(n), or O(1) for unchanged copies.
extension ModelArray: Equatable {}

extension ModelArray: CustomStringConvertible {
  /// The descriptions of the models in brackets.
  public var description: String { "[" + map { "\($0)" }.joined(separator: ", ") + "]" }
}

extension ModelArray: PropertyValue {
  /// A collection of the element's class.
  public static var _propertyType: _PropertyType { .collection(Element.wireName) }
  /// The UUIDs of the models, in order.
  public var _jsonValue: JSONValue {
    var uuids: [JSONValue] = []
    uuids.reserveCapacity(list.count)
    list.forEach { uuids.append(.string($0.uuid.wireText)) }
    return .array(uuids)
  }
  /// Returns nil: a collection cannot be decoded without a scope in which to find the models.
  public static func _decode(_ json: JSONValue) -> ModelArray? { nil }
  /// Always `collection`.
  public static var _storageKind: _StorageKind { .collection }
  /// The access to the elements.
  public static var _holder: _ModelHolding? { _ModelHolding(type: Self.self) }
}
