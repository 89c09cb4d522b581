import Foundation

extension ChangeSet {
  /// Reads a change set from its ``json``. Unknown keys are ignored; only `id` and `fragments` are required.
  ///
  /// - Throws: ``FragmentError`` naming the first field that is missing or wrong.
  public init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    self.init(
      id: try object.uuid("id"), fragments: try object.fragments("fragments"),
      undo: object["undo"] == nil ? [] : try object.fragments("undo"),
      author: try object.optionalString("author"), message: try object.optionalString("message"),
      date: try object.optionalDate("date"), isAtomic: try object.optionalFlag("atomic"),
      procedure: try object.optionalString("procedure"), arguments: object["arguments"],
      purpose: try Purpose(in: object))
  }

  /// The change set as JSON, in the order `id`, `author`, `message`, `date`, `atomic`, `procedure`, `arguments`,
  /// `undoes` or `redoes`, `fragments`, `undo`; fields without a value are left out. The date is in seconds since 1970.
  public var json: JSONValue {
    var object: JSONObject = ["id": .string(id.wireText)]
    if let author { object["author"] = .string(author) }
    if let message { object["message"] = .string(message) }
    if let date { object["date"] = .double(date.milliseconds / 1000) }
    if isAtomic { object["atomic"] = true }
    if let procedure { object["procedure"] = .string(procedure) }
    if let arguments { object["arguments"] = arguments }
    purpose.write(to: &object)
    object["fragments"] = .array(fragments.map(\.json))
    let undo = undo
    if !undo.isEmpty { object["undo"] = .array(undo.map(\.json)) }
    return .object(object)
  }

  /// Appends ``json`` as UTF-8 to `bytes`, without making a JSON value first.
  package func write(to bytes: inout [UInt8]) {
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
      if let date {
        output.append(fixed: #","date":"#)
        JSONWriter.write(date.milliseconds / 1000, to: &output)
      }
      if isAtomic { output.append(fixed: #","atomic":true"#) }
      if let procedure {
        output.append(fixed: #","procedure":"#)
        JSONWriter.write(procedure, to: &output)
      }
      if let arguments {
        output.append(fixed: #","arguments":"#)
        JSONWriter.write(arguments, sorted: false, to: &output)
      }
      switch purpose {
      case .edit: break
      case .undo(let id): Self.write(id, after: #","undoes":""#, to: &output)
      case .redo(let id): Self.write(id, after: #","redoes":""#, to: &output)
      }
      Self.write(fragments, after: #","fragments":["#, to: &output)
      let undo = undo
      if !undo.isEmpty { Self.write(undo, after: #","undo":["#, to: &output) }
      output.append("}")
    })
  }

  private static func write(
    _ id: UUID, after opening: StaticString, to output: inout JSONOutput
  ) {
    output.append(fixed: opening)
    id.writeWireText(to: &output)
    output.append("\"")
  }

  private static func write(
    _ fragments: [SyncFragment], after opening: StaticString, to output: inout JSONOutput
  ) {
    output.append(fixed: opening)
    for (place, fragment) in fragments.enumerated() {
      if place > 0 { output.append(",") }
      fragment.write(to: &output)
    }
    output.append("]")
  }
}

extension ChangeSet.Purpose {
  /// Reads a purpose as ``write(to:)`` writes it.
  ///
  /// - Throws: ``FragmentError`` naming the field that is not valid.
  package init(in object: JSONObject) throws(FragmentError) {
    if object["undoes"] != nil {
      self = .undo(try object.uuid("undoes"))
    } else if object["redoes"] != nil {
      self = .redo(try object.uuid("redoes"))
    } else {
      self = .edit
    }
  }

  /// Writes the purpose, of which an edit has none, into the JSON of its change set.
  package func write(to object: inout JSONObject) {
    switch self {
    case .edit: break
    case .undo(let id): object["undoes"] = .string(id.wireText)
    case .redo(let id): object["redoes"] = .string(id.wireText)
    }
  }
}

extension JSONObject {
  /// Returns the UUID of a key.
  package func uuid(_ field: String) throws(FragmentError) -> UUID {
    guard let uuid = UUID(wireText: try fragmentString(field)) else {
      throw .invalid(field: field, problem: "should be a UUID")
    }
    return uuid
  }

  /// Returns the fragments of a key.
  package func fragments(_ field: String) throws(FragmentError) -> [SyncFragment] {
    guard let json = self[field] else { throw .missing(field: field) }
    guard case .array(let elements) = json else {
      throw .invalid(field: field, problem: "should be an array")
    }
    var fragments: [SyncFragment] = []
    fragments.reserveCapacity(elements.count)
    for (place, element) in elements.enumerated() {
      do throws(FragmentError) {
        fragments.append(try SyncFragment(json: element))
      } catch {
        throw .invalid(field: field, problem: "element \(place): \(error)")
      }
    }
    return fragments
  }

  /// Returns the string of a key; nil if the key is missing or null.
  func optionalString(_ field: String) throws(FragmentError) -> String? {
    switch self[field] {
    case nil, .null?: return nil
    case .string(let text)?: return text
    default: throw .invalid(field: field, problem: "should be a string")
    }
  }

  /// Returns the date of a key; nil if the key is missing or null.
  func optionalDate(_ field: String) throws(FragmentError) -> Date? {
    switch self[field] {
    case nil, .null?: return nil
    case let value?:
      guard let seconds = Double._decode(value), seconds.isFinite else {
        throw .invalid(field: field, problem: "should be a number of seconds")
      }
      return Date(timeIntervalSince1970: seconds)
    }
  }

  /// Returns the Boolean value of a key; false if the key is missing or null.
  func optionalFlag(_ field: String) throws(FragmentError) -> Bool {
    switch self[field] {
    case nil, .null?: return false
    case .bool(let value)?: return value
    default: throw .invalid(field: field, problem: "should be true or false")
    }
  }
}

extension JSONValue {
  /// The number, if it is integral, not negative and below 2^53, the largest range in which all peers count exactly;
  /// `1.0` is as good as `1`.
  var wholeNumber: Int? {
    switch self {
    case .integer(let value): value >= 0 && value < 1 << 53 ? Int(exactly: value) : nil
    case .double(let value): value >= 0 && value < 0x1p53 ? Int(exactly: value) : nil
    default: nil
    }
  }
}
