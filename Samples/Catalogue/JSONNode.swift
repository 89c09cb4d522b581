import Jetstream

/// A value of a JSON file that knows where it stands, so that errors can tell.
struct JSONNode {
  /// Nil if the file does not have it.
  let value: JSONValue?
  let file: String
  let place: String

  init(value: JSONValue?, file: String, place: String) {
    self.value = value
    self.file = file
    self.place = place
  }

  /// The members of an object.
  struct Members {
    fileprivate let object: JSONObject
    fileprivate let node: JSONNode

    subscript(key: String) -> JSONNode { node.below(object[key], at: key) }
  }

  func members() throws(ImportError) -> Members { Members(object: try object(), node: self) }

  /// The members of an object that is a table.
  func entries() throws(ImportError) -> [(key: String, node: JSONNode)] {
    try object().map { ($0.key, below($0.value, at: $0.key)) }
  }

  func elements() throws(ImportError) -> [JSONNode] {
    guard case .array(let elements) = value else { throw wrong("an array") }
    return elements.enumerated().map { at, element in
      JSONNode(value: element, file: file, place: "\(place)[\(at)]")
    }
  }

  func integer() throws(ImportError) -> Int {
    guard case .integer(let number) = value, let result = Int(exactly: number) else {
      throw wrong("a whole number")
    }
    return result
  }

  func integers() throws(ImportError) -> [Int] {
    try elements().map { (node) throws(ImportError) in try node.integer() }
  }

  /// The key of a table whose keys are numbers.
  func integer(fromKey key: String) throws(ImportError) -> Int {
    guard let result = Int(key) else {
      throw ImportError(file: file, place: place, problem: "its key should be a whole number")
    }
    return result
  }

  func string() throws(ImportError) -> String {
    guard case .string(let text) = value else { throw wrong("a string") }
    return text
  }

  func optionalString() throws(ImportError) -> String? {
    if case .null = value { return nil }
    guard case .string(let text) = value else { throw wrong("a string or null") }
    return text
  }

  private func object() throws(ImportError) -> JSONObject {
    guard case .object(let object) = value else { throw wrong("an object") }
    return object
  }

  private func below(_ value: JSONValue?, at key: String) -> JSONNode {
    JSONNode(value: value, file: file, place: place.isEmpty ? key : "\(place).\(key)")
  }

  private func wrong(_ expected: String) -> ImportError {
    ImportError(
      file: file, place: place,
      problem: value == nil ? "is missing; it should be \(expected)" : "should be \(expected)")
  }
}
