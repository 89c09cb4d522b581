import Foundation

/// The JSON form of operations, as they are sent and stored:
///
/// ```json
/// {"items":[{"insert":"...","after":["...","..."]},{"insert":"..."},{"remove":"..."},
///           {"move":"...","after":[]}],"likes":[{"add":2}]}
/// ```
///
/// Without `after` a model goes to the end, with an empty one to the start.
extension PropertyOperation {
  /// The operation as JSON.
  package var json: JSONValue {
    switch self {
    case .insert(let uuid, let place): Self.json("insert", uuid, place)
    case .remove(let uuid): ["remove": .string(uuid.wireText)]
    case .move(let uuid, let place): Self.json("move", uuid, place)
    case .add(let number): ["add": .integer(number)]
    }
  }

  private static func json(_ word: String, _ uuid: UUID, _ place: Place) -> JSONValue {
    var object = JSONObject()
    object.append(newKey: word, .string(uuid.wireText))
    switch place {
    case .end: break
    case .start: object.append(newKey: "after", [])
    case .after(let others):
      object.append(newKey: "after", .array(others.map { .string($0.wireText) }))
    }
    return .object(object)
  }

  /// Reads an operation of the property `key`.
  ///
  /// - Throws: ``FragmentError`` that names the property and the problem.
  init(json: JSONValue, key: String) throws(FragmentError) {
    func wrong(_ problem: String) -> FragmentError {
      .invalid(field: "operations.\(key)", problem: problem)
    }
    guard case .object(let object) = json else { throw wrong("should hold objects") }
    func uuid(_ value: JSONValue) throws(FragmentError) -> UUID {
      guard case .string(let text) = value, let uuid = UUID(wireText: text) else {
        throw wrong("should name models by their UUIDs")
      }
      return uuid
    }
    func place() throws(FragmentError) -> Place {
      guard let after = object["after"] else { return .end }
      guard case .array(let values) = after else { throw wrong("\"after\" should be an array") }
      guard values.count <= Self.maxAnchors else {
        throw wrong("\"after\" should name at most \(Self.maxAnchors) models")
      }
      if values.isEmpty { return .start }
      var others: [UUID] = []
      for value in values { others.append(try uuid(value)) }
      return .after(others)
    }
    if let value = object["insert"] {
      self = .insert(try uuid(value), try place())
    } else if let value = object["remove"] {
      self = .remove(try uuid(value))
    } else if let value = object["move"] {
      self = .move(try uuid(value), try place())
    } else if let value = object["add"] {
      guard case .integer(let number) = value else { throw wrong("should add a whole number") }
      self = .add(number)
    } else {
      throw wrong("should hold \"insert\", \"remove\", \"move\" or \"add\"")
    }
  }

  /// The maximum number of predecessors that an operation may name.
  static let maxAnchors = 16
}

extension PropertyOperations {
  /// The operations as a JSON object.
  package var json: JSONValue {
    .object(JSONObject(map { ($0.key, .array($0.operations.map(\.json))) }))
  }

  /// Reads the operations of a fragment from their ``json``. A property without operations is an error.
  ///
  /// - Throws: ``FragmentError`` that names the property and the problem.
  package init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else {
      throw .invalid(field: "operations", problem: "should be an object")
    }
    for (key, value) in object {
      guard case .array(let values) = value, !values.isEmpty else {
        throw .invalid(field: "operations.\(key)", problem: "should be an array with operations")
      }
      var operations: [PropertyOperation] = []
      operations.reserveCapacity(values.count)
      for value in values { operations.append(try PropertyOperation(json: value, key: key)) }
      append(newKey: key, operations)
    }
  }

  /// Appends ``json`` as UTF-8.
  package func write(to output: inout JSONOutput) {
    output.append("{")
    for (place, entry) in enumerated() {
      if place > 0 { output.append(",") }
      JSONWriter.write(entry.key, to: &output)
      output.append(fixed: ":[")
      for (place, operation) in entry.operations.enumerated() {
        if place > 0 { output.append(",") }
        JSONWriter.write(operation.json, sorted: false, to: &output)
      }
      output.append("]")
    }
    output.append("}")
  }
}
