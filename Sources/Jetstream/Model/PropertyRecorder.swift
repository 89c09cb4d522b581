/// Records the type and options of each `@Property` that is initialized while a prototype is made.
///
/// Swift initializes the stored properties of a subclass before those of its superclass, and calls
/// `ModelObject.init` last. A default value that is itself a model is complete before the property
/// that holds it is recorded. The last records, as many as an object has properties, are therefore
/// its own, and those of each class are adjacent. Within one class they are in the order of
/// initialization, in which assignments in `init()` before `super.init` come late; the place of
/// declaration, which the compiler adds to each record, restores the order of declaration.
@usableFromInline
final class PropertyRecorder {
  private struct Record {
    let type: any PropertyValue.Type
    let options: PropertyOptions
    let line: UInt
    let column: UInt
    /// The function that initializes the wrapper: an initializer only if it makes the wrapper
    /// itself.
    let function: String
  }

  private let modelClass: ModelObject.Type
  private var records: [Record] = []
  private var isPrototypeDone = false

  init(for modelClass: ModelObject.Type) { self.modelClass = modelClass }

  /// Makes the prototype, with this recorder as the tracker of the thread.
  func makePrototype() -> ModelObject {
    ThreadTracker.run(.recorder(self)) { modelClass.init() }
  }

  /// Returns the options of the prototype's properties, in the order of ``ModelSchema/properties``;
  /// `types` are their types in that order. There, a superclass's properties come before those of
  /// its subclasses, but they are initialized after them.
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
      // The order of recording distinguishes properties that a macro has put into one place.
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

  /// Returns true if `model`, which has just been initialized as a `ModelObject`, is the prototype.
  /// Recording ends then: objects made in the rest of the class's `init()` are ignored.
  func isPrototype(_ model: ModelObject) -> Bool {
    guard !isPrototypeDone, type(of: model) == modelClass else { return false }
    isPrototypeDone = true
    return true
  }

  /// Returns true while the schema of a class is being made.
  func makesSchema(of other: ModelObject.Type) -> Bool { other == modelClass }

  /// Removes the records of a complete object that is not the prototype.
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
