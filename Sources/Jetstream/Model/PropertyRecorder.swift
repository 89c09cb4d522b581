/// Notes the type and options of each `@Property` that is initialized while a prototype is made.
///
/// Swift initializes a subclass's stored properties before its superclass's, and calls
/// `ModelObject.init` last. A default that is itself a model is complete before the property that
/// holds it is noted. So the last records, as many as an object has properties, are its own, and
/// those of each class stand together. Within one class they stand in the order of initialization:
/// what `init()` assigns before `super.init` comes late. The place of its declaration, which a record
/// has from the compiler, puts it where it belongs.
@usableFromInline
final class PropertyRecorder {
  private struct Record {
    let type: any PropertyValue.Type
    let options: PropertyOptions
    let line: UInt
    let column: UInt
    /// The function that makes the wrapper: an initializer only where it does so itself.
    let function: String
  }

  private let modelClass: ModelObject.Type
  private var records: [Record] = []
  private var isPrototypeDone = false

  init(for modelClass: ModelObject.Type) { self.modelClass = modelClass }

  /// Makes the prototype with this recorder in charge of the thread.
  func makePrototype() -> ModelObject {
    ThreadTracker.run(.recorder(self)) { modelClass.init() }
  }

  /// The options of the prototype's properties, of which `types` tells the types in the order of
  /// ``ModelSchema/properties``: a superclass's properties stand before those of its subclasses
  /// there, but are initialized after them.
  func takeOptions(of types: [any PropertyValue.Type]) -> [PropertyOptions] {
    guard records.count == types.count else {
      SchemaReflection.trapForMissingReflection(modelClass)
    }
    var result: [PropertyOptions] = []
    var end = records.count
    for count in SchemaReflection.propertyCounts(of: modelClass) {
      let types = types[result.count..<(result.count + count)]
      let own = records[(end - count)..<end]
      precondition(
        own.allSatisfy { !$0.function.hasPrefix("init(") },
        "\(modelClass).init() makes the storage of a property itself, which hides where it is "
          + "declared: assign the property, not the wrapper.")
      // The number of a record keeps those apart that a macro has put into one place.
      let declared = own.enumerated().sorted {
        ($0.element.line, $0.element.column, $0.offset)
          < ($1.element.line, $1.element.column, $1.offset)
      }.map(\.element)
      precondition(
        zip(declared, types).allSatisfy { $0.type == $1 },
        "The properties of \(modelClass) are not where the compiler says that they are declared; "
          + "give their options by overriding propertyOptions.")
      result += declared.map(\.options)
      end -= count
    }
    return result
  }

  /// Whether `model`, which has just been initialized as a `ModelObject`, is the prototype. What is
  /// initialized after it, in the rest of its class's `init()`, is none of the recorder's business.
  func isPrototype(_ model: ModelObject) -> Bool {
    guard !isPrototypeDone, type(of: model) == modelClass else { return false }
    isPrototypeDone = true
    return true
  }

  /// An object other than the prototype is complete: its records are not the prototype's.
  func objectIsComplete(propertyCount: Int) {
    guard !isPrototypeDone else { return }
    records.removeLast(min(propertyCount, records.count))
  }

  @usableFromInline
  static func record(
    _ type: any PropertyValue.Type, _ line: UInt, _ column: UInt, _ function: StaticString,
    options: () -> PropertyOptions
  ) {
    guard case .recorder(let recorder) = ThreadTracker.current, !recorder.isPrototypeDone else {
      return
    }
    recorder.records.append(
      Record(type: type, options: options(), line: line, column: column, function: "\(function)"))
  }
}
