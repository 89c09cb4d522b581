import Jetstream

/// The limits of a schema that is read. A client may have written it, so that nothing in it is to be trusted: neither the
/// memory and the time for reading it nor the depth of the calls may grow with what it says.
enum SchemaLimits {
  /// The highest number of classes.
  static let classes = 1_000
  /// The highest number of properties of all classes together.
  static let properties = 5_000
  /// The highest number of dictionaries of models of one class: the name of an entry is compared with each of them.
  static let dictionaries = 100
  /// The highest number of classes above one class.
  static let superclasses = 64
  /// The highest number of bytes of a name.
  static let nameBytes = 256
  /// The highest number of bytes of a type, which bounds the calls for reading it.
  static let typeBytes = 512
  /// The highest number of types around a type. The Swift runtime keeps each type that it was ever asked for.
  static let typeDepth = 8
  /// The same for the schema of a client. Clients can have the runtime keep as many types as there are of this depth:
  /// some 2,000 with three, and more than a million with eight.
  static let clientTypeDepth = 3
  /// The highest number of arrays and objects around a value of a default.
  static let defaultDepth = 32
}

/// A value in a schema, with its place.
struct SchemaNode {
  let json: JSONValue
  private let place: String

  init(_ json: JSONValue, at place: String) {
    (self.json, self.place) = (json, place)
  }

  func error(_ problem: String) -> SchemaError { SchemaError(place, problem) }

  func optional(_ key: String) throws(SchemaError) -> SchemaNode? {
    guard case .object(let members) = json else { throw error("is no object.") }
    guard let member = members[key] else { return nil }
    return SchemaNode(member, at: place == "schema" ? key : "\(place).\(key)")
  }

  func required(_ key: String) throws(SchemaError) -> SchemaNode {
    guard let member = try optional(key) else { throw error("has no \"\(key)\".") }
    return member
  }

  /// Returns the elements of an array. Throws if there are more than `limit`.
  func elements(atMost limit: Int = .max) throws(SchemaError) -> [SchemaNode] {
    guard case .array(let values) = json else { throw error("is no array.") }
    guard values.count <= limit else {
      throw error("has \(values.count) elements, and at most \(limit) are read.")
    }
    return values.enumerated().map { SchemaNode($1, at: "\(place)[\($0)]") }
  }

  /// Returns a text that is not empty and has at most `limit` bytes.
  func string(atMost limit: Int = SchemaLimits.nameBytes) throws(SchemaError) -> String {
    guard case .string(let text) = json, !text.isEmpty else { throw error("is no text.") }
    guard text.utf8.count <= limit else { throw error("is longer than \(limit) bytes.") }
    return text
  }

  func bool() throws(SchemaError) -> Bool {
    guard case .bool(let value) = json else { throw error("is neither true nor false.") }
    return value
  }

  /// Throws if the text of the value is longer than a schema may be.
  func checkSize() throws(SchemaError) {
    var bytes: [UInt8] = []
    json.write(to: &bytes)
    guard bytes.count <= Schema.maximumBytes else {
      throw error("has \(bytes.count) bytes of text, and at most \(Schema.maximumBytes) are read.")
    }
  }

  /// Throws if there are more than `limit` arrays and objects around a part of the value.
  func checkDepth(atMost limit: Int) throws(SchemaError) {
    guard json.isNested(atMost: limit) else {
      throw error("is nested more than \(limit) levels deep.")
    }
  }

  /// The beginning of the value's text, for errors.
  var excerpt: String {
    let text = json.text
    return text.utf8.count > 100 ? "\(text.prefix(40))..." : text
  }
}

extension JSONValue {
  /// Returns true if no part of the value is in more than `limit` arrays and objects. Goes no deeper than that.
  fileprivate func isNested(atMost limit: Int) -> Bool {
    switch self {
    case .array(let elements): limit > 0 && elements.allSatisfy { $0.isNested(atMost: limit - 1) }
    case .object(let members):
      limit > 0 && members.allSatisfy { $0.value.isNested(atMost: limit - 1) }
    default: true
    }
  }
}
