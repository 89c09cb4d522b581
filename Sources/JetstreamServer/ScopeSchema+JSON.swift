import Jetstream

/// The form of a schema in a file.
extension ScopeSchema {
  /// The schema as JSON.
  ///
  /// ```json
  /// {"version":1,"root":"Board","classes":[
  ///   {"name":"Board","properties":[{"name":"notes","type":"collection of Note"}]},
  ///   {"name":"Note","properties":[{"name":"votes","type":"Int","default":0,"counter":true}]}]}
  /// ```
  ///
  /// A class names the classes above it as `superclasses`, the nearest first. A property names its rule as `merge`. Models
  /// by key are a `dictionary of reference to Note`: like other properties that hold models, it has no default.
  public var json: JSONValue { schema.json }

  /// Reads a schema.
  ///
  /// - Parameters:
  ///   - json: What ``json`` has returned, or the same written by hand.
  ///   - rules: The rules of the app that properties name; see `MergeRule.rule(_:_:)`. The rules that
  ///     Jetstream brings along need not be named.
  /// - Throws: ``SchemaError`` for the first thing that is missing or does not fit.
  public init(_ json: JSONValue, rules: [MergeRule] = []) throws(SchemaError) {
    let file = SchemaNode(json, at: "schema")
    let version = try file.required("version")
    guard version.json == .integer(Schema.version) else {
      throw version.error("is \(version.json.text), and this server reads version \(Schema.version).")
    }
    var classes: [String: ClassSchema] = [:]
    for node in try file.required("classes").elements() {
      let read = try Self.classSchema(node, rules)
      guard classes.updateValue(read, forKey: read.wireName) == nil else {
        throw node.error("is the second class called \(read.wireName).")
      }
    }
    for node in try file.required("classes").elements() { try Self.check(node, classes) }
    let root = try file.required("root")
    guard let rootClass = classes[try root.string()] else {
      throw root.error("is \(root.json.text), which is none of the classes.")
    }
    self.init(Schema(root: rootClass, classes: Array(classes.values)))
  }

  // MARK: Reading

  private static func classSchema(
    _ node: SchemaNode, _ rules: [MergeRule]
  ) throws(SchemaError) -> ClassSchema {
    var properties: [PropertySchema] = []
    var names: Set<String> = []
    for node in try node.required("properties").elements() {
      let read = try property(node, index: properties.count, rules)
      guard names.insert(read.wireName).inserted else {
        throw node.error("is the second property called \(read.wireName).")
      }
      properties.append(read)
    }
    var superclasses: [String] = []
    for above in try node.optional("superclasses")?.elements() ?? [] {
      superclasses.append(try above.string())
    }
    let schema = ClassSchema(
      try node.required("name").string(), superclasses: superclasses, properties: properties)
    if let (name, dictionary) = schema.nameLikeEntry {
      let at = properties.firstIndex { $0.wireName == name }!
      throw try node.required("properties").elements()[at].error(
        "is called \(name), which is the name of an entry of \(dictionary).")
    }
    return schema
  }

  private static func property(
    _ node: SchemaNode, index: Int, _ rules: [MergeRule]
  ) throws(SchemaError) -> PropertySchema {
    let typeNode = try node.required("type")
    guard let type = _PropertyType(signature: try typeNode.string()) else {
      throw typeNode.error("is \(typeNode.json.text), which is no type.")
    }
    if let misuse = type.misuse { throw typeNode.error(misuse) }
    let codec = TypeCodec(describing: type)
    let isCounter = try node.optional("counter")?.bool() ?? false
    if isCounter, codec.counterRange == nil {
      throw typeNode.error("is that of a counter, and no whole number.")
    }
    var rule: MergeRule?
    if let merge = try node.optional("merge") {
      let name = try merge.string()
      rule = rules.first { $0.name == name } ?? MergeRule.builtIn(name)
      if rule == nil {
        throw merge.error("is \(merge.json.text), a rule that the server was not given.")
      }
    }
    let schema = PropertySchema(
      wireName: try node.required("name").string(), type: type, index: index, isSynced: true,
      isCounter: isCounter, mergeRule: rule, counterRange: codec.counterRange,
      defaultValue: try defaultValue(node, type, codec), codec: codec)
    if schema.kind != .plain, rule != nil {
      throw node.error("holds models, which need no merge rule.")
    }
    return schema
  }

  private static func defaultValue(
    _ node: SchemaNode, _ type: _PropertyType, _ codec: TypeCodec
  ) throws(SchemaError) -> JSONValue {
    switch type {
    case .reference: return .null
    case .collection: return []
    case .dictionary(.reference): return [:]
    default: break
    }
    let given = try node.optional("default")
    guard let value = codec.normalized(given?.json ?? .null) else {
      throw given?.error("is no \(type.signature).")
        ?? node.error("has no default, and null is no \(type.signature).")
    }
    return value
  }

  /// Throws if a property of a class can only hold models of a class that the schema does not have.
  private static func check(
    _ node: SchemaNode, _ classes: [String: ClassSchema]
  ) throws(SchemaError) {
    for property in try node.required("properties").elements() {
      let type = try property.required("type")
      switch _PropertyType(signature: try type.string()) {
      case .reference(let name), .collection(let name), .dictionary(.reference(let name)):
        let isKnown = name == ClassSchema.root || classes.values.contains { $0.isKind(of: name) }
        if !isKnown { throw type.error("names the class \(name), which the schema does not have.") }
      default: break
      }
    }
  }
}

/// A value in a schema, with its place.
private struct SchemaNode {
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

  func elements() throws(SchemaError) -> [SchemaNode] {
    guard case .array(let values) = json else { throw error("is no array.") }
    var result: [SchemaNode] = []
    for (at, value) in values.enumerated() {
      result.append(SchemaNode(value, at: "\(place)[\(at)]"))
    }
    return result
  }

  func string() throws(SchemaError) -> String {
    guard case .string(let text) = json, !text.isEmpty else { throw error("is no text.") }
    return text
  }

  func bool() throws(SchemaError) -> Bool {
    guard case .bool(let value) = json else { throw error("is neither true nor false.") }
    return value
  }
}
