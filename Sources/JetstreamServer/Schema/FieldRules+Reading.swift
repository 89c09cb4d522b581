import Jetstream

/// Reading of rules in the JSON of a schema.
extension FieldRules {
  /// Reads the rules of a property.
  init(_ node: SchemaNode) throws(SchemaError) {
    self.init()
    if let range = try node.optional("range") {
      let bounds = try range.bounds()
      guard let read = FieldRange(from: bounds.lower, to: bounds.upper) else {
        throw range.error("has bounds that are no numbers in their order.")
      }
      self.range = read
    }
    if let length = try node.optional("length") {
      let bounds = try length.bounds()
      guard let least = Self.count(bounds.lower, or: 0),
        let most = Self.count(bounds.upper, or: .max), least <= most
      else { throw length.error("has bounds that are no whole numbers from 0 on in their order.") }
      self.length = least...most
    }
    if let pattern = try node.optional("pattern") {
      let text = try pattern.string(atMost: FieldPattern.maximumBytes)
      do throws(FieldPattern.Problem) {
        self.pattern = try FieldPattern(text)
      } catch {
        throw pattern.error(error.text)
      }
    }
    isImmutable = try node.optional("immutable")?.bool() ?? false
    isUnique = try node.optional("unique")?.bool() ?? false
  }

  private static func count(_ json: JSONValue?, or none: Int) -> Int? {
    switch json {
    case nil: none
    case .integer(let count)? where count >= 0: Int(exactly: count)
    default: nil
    }
  }
}

extension SchemaNode {
  /// Returns the elements of an array of two, with nil for null.
  fileprivate func bounds() throws(SchemaError) -> (lower: JSONValue?, upper: JSONValue?) {
    let nodes = try elements(atMost: 2)
    guard nodes.count == 2 else { throw error("has no two bounds.") }
    let bounds = nodes.map { $0.json == .null ? nil : $0.json }
    if bounds[0] == nil && bounds[1] == nil { throw error("has no bound but null.") }
    return (bounds[0], bounds[1])
  }
}
