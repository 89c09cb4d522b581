import Foundation

/// The fields of a message that is being read. Its errors name the message and the field.
struct MessageFields {
  let type: String
  let index: Int
  private let object: JSONObject

  /// The field `fragments`, if it was decoded directly from the text. `object` then holds an empty array in its
  /// place.
  private let readFragments: JSONParser.Fragments?

  /// Reads the two fields that every message has.
  init(json: JSONValue) throws(MessageError) {
    guard case .object(let object) = json else { throw .notAnObject }
    try self.init(object, fragments: nil)
  }

  /// Reads the two fields that every message has. `fragments` holds the content of the field `fragments`, if that is
  /// an array.
  init(_ object: JSONObject, fragments: JSONParser.Fragments?) throws(MessageError) {
    let index = object["index"].flatMap(\.wholeNumber)
    guard let type = object["type"] else {
      throw .missing(message: "", index: index, field: "type")
    }
    guard case .string(let type) = type else {
      throw .invalid(message: "", index: index, field: "type", problem: "should be a string")
    }
    guard Message.types.contains(type) else { throw .unknownType(type, index: index) }
    guard let index else {
      throw object["index"] == nil
        ? .missing(message: type, index: nil, field: "index")
        : .invalid(message: type, index: nil, field: "index", problem: Self.wholeNumberProblem)
    }
    self.type = type
    self.index = index
    self.object = object
    readFragments = fragments
  }

  private static let wholeNumberProblem = "should be a whole number from 0 up"

  /// The value of a field that may be absent.
  subscript(field: String) -> JSONValue? { object[field] }

  /// Returns true if the field is present and not null.
  func has(_ field: String) -> Bool {
    guard let value = object[field] else { return false }
    return value != .null
  }

  func required(_ field: String) throws(MessageError) -> JSONValue {
    guard let value = object[field] else {
      throw .missing(message: type, index: index, field: field)
    }
    return value
  }

  func invalid(_ field: String, _ problem: String) -> MessageError {
    .invalid(message: type, index: index, field: field, problem: problem)
  }

  func wholeNumber(_ field: String) throws(MessageError) -> Int {
    guard let number = try required(field).wholeNumber else {
      throw invalid(field, Self.wholeNumberProblem)
    }
    return number
  }

  /// Reads a number that may be absent.
  func optionalNumber(_ field: String) throws(MessageError) -> Int? {
    has(field) ? try wholeNumber(field) : nil
  }

  func object(_ field: String) throws(MessageError) -> JSONObject {
    guard case .object(let object) = try required(field) else {
      throw invalid(field, "should be an object")
    }
    return object
  }

  func string(_ field: String) throws(MessageError) -> String {
    guard case .string(let text) = try required(field) else {
      throw invalid(field, "should be a string")
    }
    return text
  }

  func uuid(_ field: String) throws(MessageError) -> UUID {
    guard let uuid = UUID(wireText: try string(field)) else {
      throw invalid(field, "should be a UUID")
    }
    return uuid
  }

  /// Reads the message's body. If that fails and `field` holds a valid number, wraps the error by `name` with this
  /// number.
  func read<Body>(
    _ body: (MessageFields) throws(MessageError) -> Body, naming field: String,
    _ name: (Int, MessageError) -> MessageError
  ) throws(MessageError) -> Body {
    do throws(MessageError) {
      return try body(self)
    } catch {
      guard let number = object[field]?.wholeNumber else { throw error }
      throw name(number, error)
    }
  }

  func error() throws(MessageError) -> WireError {
    let json = try required("error")
    do throws(FragmentError) {
      return try WireError(json: json)
    } catch {
      throw invalid("error", "is invalid: \(error)")
    }
  }

  /// Reads the outcome of a procedure, which may be absent.
  func outcome() throws(MessageError) -> CallOutcome? {
    guard has("outcome") else { return nil }
    let json = try required("outcome")
    do throws(FragmentError) {
      return try CallOutcome(json: json)
    } catch {
      throw invalid("outcome", "should have an output or an error: \(error)")
    }
  }

  /// Reads the origin of the message's changes.
  func origin() throws(MessageError) -> ChangeOrigin {
    let author = has("author") ? try string("author") : nil
    guard author?.utf8.count ?? 0 <= ChangeOrigin.longestAuthor else {
      throw invalid("author", "should have at most \(ChangeOrigin.longestAuthor) bytes")
    }
    var origin = ChangeOrigin(author: author, seen: try optionalNumber("seen"))
    if has("message") { origin.message = try string("message") }
    guard origin.message?.utf8.count ?? 0 <= ChangeOrigin.longestMessage else {
      throw invalid("message", "should have at most \(ChangeOrigin.longestMessage) bytes")
    }
    if has("date") {
      guard let seconds = Double._decode(try required("date")), seconds.isFinite else {
        throw invalid("date", "should be a number of seconds")
      }
      origin.date = Date(timeIntervalSince1970: seconds)
    }
    if has("madeBy") { origin.client = try uuid("madeBy") }
    return origin
  }

  /// Reads the fragments of the message. One invalid fragment makes the message invalid.
  func fragments() throws(MessageError) -> [SyncFragment] {
    switch readFragments {
    case nil: return try elements("fragments", SyncFragment.init(json:))
    case .success(let fragments): return fragments
    case .failure(let bad):
      throw .invalidElement(
        message: type, index: index, field: "fragments", position: bad.position, error: bad.error)
    }
  }

  /// Reads every element of an array. One invalid element makes the message invalid.
  func elements<Element>(
    _ field: String, _ read: (JSONValue) throws(FragmentError) -> Element
  ) throws(MessageError) -> [Element] {
    guard case .array(let values) = try required(field) else {
      throw invalid(field, "should be an array")
    }
    var elements: [Element] = []
    elements.reserveCapacity(values.count)
    for (position, value) in values.enumerated() {
      do throws(FragmentError) {
        elements.append(try read(value))
      } catch {
        throw .invalidElement(
          message: type, index: index, field: field, position: position, error: error)
      }
    }
    return elements
  }
}
