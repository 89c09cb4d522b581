import Foundation

extension ChangeSet {
  /// Reads a change set as ``json`` gives it. Unknown keys are ignored; `author`, `message` and `bases`
  /// may be missing.
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
      id: id, fragments: fragments, bases: try Self.bases(object["bases"]),
      author: try object.optionalString("author"), message: try object.optionalString("message"))
  }

  private static func bases(_ json: JSONValue?) throws(FragmentError) -> [UUID: JSONObject] {
    guard let json else { return [:] }
    guard case .object(let object) = json else {
      throw .invalid(field: "bases", problem: "should be an object")
    }
    var bases: [UUID: JSONObject] = [:]
    bases.reserveCapacity(object.count)
    for (key, value) in object {
      guard let uuid = UUID(wireText: key), case .object(let values) = value else {
        throw .invalid(field: "bases", problem: "should hold objects by UUID")
      }
      bases[uuid] = values
    }
    return bases
  }

  /// The change set as JSON, in the order `id`, `author`, `message`, `fragments`, `bases`; what it does
  /// not have is left out.
  public var json: JSONValue {
    var object: JSONObject = ["id": .string(id.wireText)]
    if let author { object["author"] = .string(author) }
    if let message { object["message"] = .string(message) }
    object["fragments"] = .array(fragments.map(\.json))
    if !bases.isEmpty {
      object["bases"] = .object(
        JSONObject(orderedBases.map { ($0.wireText, .object(bases[$0] ?? JSONObject())) }))
    }
    return .object(object)
  }

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
      writeBases(to: &output)
      output.append("}")
    })
  }

  private func writeBases(to output: inout JSONOutput) {
    guard !bases.isEmpty else { return }
    output.append(fixed: #","bases":{"#)
    var isFirst = true
    for uuid in orderedBases {
      if !isFirst { output.append(",") }
      isFirst = false
      output.append("\"")
      uuid.writeWireText(to: &output)
      output.append(fixed: #"":"#)
      JSONWriter.write(bases[uuid] ?? JSONObject(), sorted: false, to: &output)
    }
    output.append("}")
  }

  /// The models that have bases, in the order of the fragments, so that equal sets give equal bytes.
  private var orderedBases: [UUID] {
    var order: [UUID] = []
    order.reserveCapacity(bases.count)
    for fragment in fragments where fragment.kind == .change && bases[fragment.uuid] != nil {
      order.append(fragment.uuid)
    }
    if order.count == bases.count, Set(order).count == order.count { return order }
    return bases.keys.sorted()
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
