import Foundation

extension ChangeSet {
  /// Reads a change set as ``json`` gives it. Unknown keys are ignored; `author`, `message` and
  /// `replaced` may be missing.
  ///
  /// - Throws: ``FragmentError`` naming the first field that is missing or wrong.
  public init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    guard let id = UUID(wireText: try object.fragmentString("id")) else {
      throw .invalid(field: "id", problem: "should be a UUID")
    }
    guard let list = object["fragments"] else { throw .missing(field: "fragments") }
    guard case .array(let elements) = list else {
      throw .invalid(field: "fragments", problem: "should be an array")
    }
    var fragments: [SyncFragment] = []
    fragments.reserveCapacity(elements.count)
    for (place, element) in elements.enumerated() {
      do throws(FragmentError) {
        fragments.append(try SyncFragment(json: element))
      } catch {
        throw .invalid(field: "fragments", problem: "element \(place): \(error)")
      }
    }
    self.init(
      id: id, fragments: fragments,
      replaced: try Self.replaced(object["replaced"], count: fragments.count),
      author: try object.optionalString("author"), message: try object.optionalString("message"))
  }

  private static func replaced(
    _ json: JSONValue?, count: Int
  ) throws(FragmentError) -> [Replaced] {
    guard let json else { return Array(repeating: Replaced(), count: count) }
    guard case .array(let elements) = json, elements.count == count else {
      throw .invalid(field: "replaced", problem: "should be an array of as many as fragments")
    }
    var result: [Replaced] = []
    result.reserveCapacity(count)
    for (place, element) in elements.enumerated() {
      do throws(FragmentError) {
        result.append(try Replaced(json: element))
      } catch {
        throw .invalid(field: "replaced", problem: "element \(place): \(error)")
      }
    }
    return result
  }

  /// The change set as JSON, in the order `id`, `author`, `message`, `fragments`, `replaced`; what it
  /// does not have is left out. `replaced` has an element for each fragment: null, or what the fragment
  /// replaces, as `properties` and `operations`.
  public var json: JSONValue {
    var object: JSONObject = ["id": .string(id.wireText)]
    if let author { object["author"] = .string(author) }
    if let message { object["message"] = .string(message) }
    object["fragments"] = .array(fragments.map(\.json))
    if hasReplaced { object["replaced"] = .array(replaced.map(\.json)) }
    return .object(object)
  }

  private var hasReplaced: Bool { replaced.contains { !$0.isEmpty } }

  /// Appends the UTF-8 of ``json`` to `bytes`, without making the value first.
  public func write(to bytes: inout [UInt8]) {
    bytes.append(written: { output in
      output.append(fixed: #"{"id":""#)
      id.writeWireText(to: &output)
      output.append("\"")
      if let author {
        output.append(fixed: #","author":"#)
        JSONWriter.write(author, to: &output)
      }
      if let message {
        output.append(fixed: #","message":"#)
        JSONWriter.write(message, to: &output)
      }
      output.append(fixed: #","fragments":["#)
      for (place, fragment) in fragments.enumerated() {
        if place > 0 { output.append(",") }
        fragment.write(to: &output)
      }
      output.append("]")
      if hasReplaced {
        output.append(fixed: #","replaced":["#)
        for (place, before) in replaced.enumerated() {
          if place > 0 { output.append(",") }
          before.write(to: &output)
        }
        output.append("]")
      }
      output.append("}")
    })
  }
}

extension ChangeSet.Replaced {
  init(json: JSONValue) throws(FragmentError) {
    if case .null = json { return }
    guard case .object(let object) = json else { throw .notAnObject }
    switch object["properties"] {
    case nil: break
    case .object(let properties)?: values = properties
    default: throw .invalid(field: "properties", problem: "should be an object")
    }
    if let operations = object["operations"] {
      self.operations = try PropertyOperations(json: operations)
    }
  }

  var json: JSONValue {
    if isEmpty { return .null }
    var object = JSONObject()
    if !values.isEmpty { object["properties"] = .object(values) }
    if !operations.isEmpty { object["operations"] = operations.json }
    return .object(object)
  }

  func write(to output: inout JSONOutput) {
    if isEmpty { return output.append(fixed: "null") }
    output.append("{")
    if !values.isEmpty {
      output.append(fixed: #""properties":"#)
      JSONWriter.write(values, sorted: false, to: &output)
      if !operations.isEmpty { output.append(",") }
    }
    if !operations.isEmpty {
      output.append(fixed: #""operations":"#)
      operations.write(to: &output)
    }
    output.append("}")
  }
}

extension JSONObject {
  /// The string at a key that may be missing or null.
  fileprivate func optionalString(_ field: String) throws(FragmentError) -> String? {
    switch self[field] {
    case nil, .null?: return nil
    case .string(let text)?: return text
    default: throw .invalid(field: field, problem: "should be a string")
    }
  }
}
