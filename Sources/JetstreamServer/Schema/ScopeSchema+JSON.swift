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
  ///
  /// The rules for the values of a property are `range` and `length`, each with two bounds of which one may be null,
  /// `pattern`, `immutable` and `unique`: `"range":[0,100]`.
  public var json: JSONValue { schema.json }

  /// Reads a schema, of which nothing has to be trusted: it has at most 256 KiB of text, 1,000 classes and 5,000
  /// properties, and a name has at most 256 bytes.
  ///
  /// - Parameters:
  ///   - json: What ``json`` has returned, or the same written by hand.
  ///   - rules: The rules of the app that properties name; see `MergeRule.rule(_:_:)`. The rules that
  ///     Jetstream brings along need not be named.
  /// - Throws: ``SchemaError`` for the first thing that is missing or does not fit.
  public init(_ json: JSONValue, rules: [MergeRule] = []) throws(SchemaError) {
    try self.init(json, rules, typeDepth: SchemaLimits.typeDepth)
  }

  /// Reads the schema of a client, whose types are nested at most three deep.
  init(ofClient json: JSONValue) throws(SchemaError) {
    try self.init(json, [], typeDepth: SchemaLimits.clientTypeDepth)
  }

  private init(_ json: JSONValue, _ rules: [MergeRule], typeDepth: Int) throws(SchemaError) {
    let file = SchemaNode(json, at: "schema")
    try file.checkSize()
    let version = try file.required("version")
    guard version.json == .integer(Schema.version) else {
      throw version.error("is \(version.excerpt), and this server reads version \(Schema.version).")
    }
    var classes: [String: ClassSchema] = [:]
    var read: [(node: SchemaNode, schema: ClassSchema)] = []
    var room = SchemaLimits.properties
    for node in try file.required("classes").elements(atMost: SchemaLimits.classes) {
      let schema = try Self.classSchema(node, rules, room: room, typeDepth: typeDepth)
      guard classes.updateValue(schema, forKey: schema.wireName) == nil else {
        throw node.error("is the second class called \(schema.wireName).")
      }
      read.append((node, schema))
      room -= schema.properties.count
    }
    try Self.checkHeldClasses(read)
    try Self.checkSuperclasses(read, classes)
    let root = try file.required("root")
    guard let rootClass = classes[try root.string()] else {
      throw root.error("is \(root.json.text), which is none of the classes.")
    }
    self.init(Schema(root: rootClass, classes: Array(classes.values)))
    // Written, it names the defaults that were left out, and must still be short enough to be read.
    try SchemaNode(self.json, at: "schema with its defaults").checkSize()
  }

  // MARK: Classes

  private static func classSchema(
    _ node: SchemaNode, _ rules: [MergeRule], room: Int, typeDepth: Int
  ) throws(SchemaError) -> ClassSchema {
    let nodes = try node.required("properties").elements()
    if nodes.count > room {
      throw nodes[room].error("is one more than the \(SchemaLimits.properties) that are read.")
    }
    var properties: [PropertySchema] = []
    var names: Set<String> = []
    var dictionaries = 0
    for node in nodes {
      let read = try property(node, index: properties.count, rules, typeDepth: typeDepth)
      guard names.insert(read.wireName).inserted else {
        throw node.error("is the second property called \(read.wireName).")
      }
      if read.kind == .dictionary { dictionaries += 1 }
      guard dictionaries <= SchemaLimits.dictionaries else {
        throw node.error(
          "is one more dictionary than the \(SchemaLimits.dictionaries) that are read of a class.")
      }
      properties.append(read)
    }
    let schema = ClassSchema(
      try node.required("name").string(), superclasses: try superclasses(node),
      properties: properties)
    if let (name, dictionary) = schema.nameLikeEntry {
      let at = properties.firstIndex { $0.wireName == name }!
      throw nodes[at].error("is called \(name), which is the name of an entry of \(dictionary).")
    }
    return schema
  }

  private static func superclasses(_ node: SchemaNode) throws(SchemaError) -> [String] {
    guard let list = try node.optional("superclasses") else { return [] }
    var result: [String] = []
    for above in try list.elements(atMost: SchemaLimits.superclasses) {
      let name = try above.string()
      if result.contains(name) { throw above.error("names the class \(name) once more.") }
      result.append(name)
    }
    return result
  }

  /// Throws if a property of a class can only hold models of a class that the schema does not have.
  private static func checkHeldClasses(
    _ read: [(node: SchemaNode, schema: ClassSchema)]
  ) throws(SchemaError) {
    var known: Set<String> = [ClassSchema.root]
    for (_, schema) in read { known.formUnion([schema.wireName] + schema.superclasses) }
    for (node, schema) in read {
      let nodes = try node.required("properties").elements()
      for (node, property) in zip(nodes, schema.properties) {
        guard let name = property.heldClass, !known.contains(name) else { continue }
        throw try node.required("type").error(
          "names the class \(name), which the schema does not have.")
      }
    }
  }

  /// Throws if two classes do not agree about the classes above them, so that one could be above itself.
  ///
  /// It is enough to compare each class with the nearest one above it that the schema has: that one's list is shorter, and
  /// is compared with the next in turn.
  private static func checkSuperclasses(
    _ read: [(node: SchemaNode, schema: ClassSchema)], _ classes: [String: ClassSchema]
  ) throws(SchemaError) {
    for (node, schema) in read {
      let names = schema.superclasses
      guard let at = names.firstIndex(where: { classes[$0] != nil }),
        let above = classes[names[at]], !above.superclasses.elementsEqual(names[(at + 1)...])
      else { continue }
      throw try node.required("superclasses").elements()[at].error(
        "names the class \(names[at]), above which there are others than those that follow.")
    }
  }

  // MARK: Properties

  private static func property(
    _ node: SchemaNode, index: Int, _ rules: [MergeRule], typeDepth: Int
  ) throws(SchemaError) -> PropertySchema {
    let typeNode = try node.required("type")
    let type = try propertyType(typeNode, depth: typeDepth)
    let codec = TypeCodec(describing: type)
    let isCounter = try node.optional("counter")?.bool() ?? false
    if isCounter, codec.counterRange == nil {
      throw typeNode.error("is that of a counter, and no whole number.")
    }
    let rule = try mergeRule(node, rules)
    let fieldRules = try FieldRules(node)
    if let misuse = fieldRules.misuse(of: type, isCounter: isCounter) { throw node.error(misuse) }
    let schema = PropertySchema(
      wireName: try node.required("name").string(), type: type, index: index, isSynced: true,
      isCounter: isCounter, mergeRule: rule, rules: fieldRules.isEmpty ? nil : fieldRules,
      counterRange: codec.counterRange, defaultValue: try defaultValue(node, type, codec),
      codec: codec)
    if schema.kind != .plain, rule != nil {
      throw node.error("holds models, which need no merge rule.")
    }
    if isCounter, rule != nil { throw node.error("is a counter, and needs no merge rule.") }
    return schema
  }

  private static func propertyType(
    _ node: SchemaNode, depth: Int
  ) throws(SchemaError) -> _PropertyType {
    guard let type = _PropertyType(signature: try node.string(atMost: SchemaLimits.typeBytes))
    else { throw node.error("is \(node.json.text), which is no type.") }
    guard type.depth <= depth else {
      let isClients = depth == SchemaLimits.clientTypeDepth
      let reason = isClients ? ", which the schema of a client must not be" : ""
      throw node.error("is nested more than \(depth) levels deep\(reason).")
    }
    if let misuse = type.misuse { throw node.error(misuse) }
    return type
  }

  private static func mergeRule(
    _ node: SchemaNode, _ rules: [MergeRule]
  ) throws(SchemaError) -> MergeRule? {
    guard let merge = try node.optional("merge") else { return nil }
    let name = try merge.string()
    guard let rule = rules.first(where: { $0.name == name }) ?? MergeRule.builtIn(name) else {
      throw merge.error("is \(merge.json.text), a rule that the server was not given.")
    }
    return rule
  }

  private static func defaultValue(
    _ node: SchemaNode, _ type: _PropertyType, _ codec: TypeCodec
  ) throws(SchemaError) -> JSONValue {
    let given = try node.optional("default")
    let empty: JSONValue? =
      switch type {
      case .reference: .null
      case .collection: []
      case .dictionary(.reference): [:]
      default: nil
      }
    if let empty {
      guard let given, given.json != empty, given.json != .null else { return empty }
      throw given.error("is that of a property that holds models, which has none.")
    }
    try given?.checkDepth(atMost: SchemaLimits.defaultDepth)
    guard let value = codec.normalized(given?.json ?? .null) else {
      throw given?.error("is no \(type.signature).")
        ?? node.error("has no default, and null is no \(type.signature).")
    }
    return value
  }
}

extension _PropertyType {
  /// The number of types around the innermost one.
  fileprivate var depth: Int {
    switch self {
    case .enumeration(let inner), .optional(let inner), .array(let inner), .set(let inner),
      .dictionary(let inner):
      inner.depth + 1
    default: 0
    }
  }
}
