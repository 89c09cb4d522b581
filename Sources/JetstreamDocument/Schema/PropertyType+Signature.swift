extension _PropertyType {
  /// A text that distinguishes the type from every other. It is part of fingerprints, so that
  /// changing it changes all of them.
  package var signature: String {
    switch self {
    case .boolean: "boolean"
    case .integer(let name), .number(let name): name
    case .string: "string"
    case .date: "date"
    case .uuid: "uuid"
    case .url: "url"
    case .data: "data"
    case .decimal: "decimal"
    case .json: "json"
    case .color: "color"
    case .enumeration(let raw): "enumeration of \(raw.signature)"
    case .optional(let wrapped): "optional \(wrapped.signature)"
    case .array(let element): "array of \(element.signature)"
    case .set(let element): "set of \(element.signature)"
    case .dictionary(let value): "dictionary of \(value.signature)"
    case .value(let name): "value \(name)"
    case .weakReference(let name): "weak reference to \(name)"
    case .reference(let name): "reference to \(name)"
    case .collection(let name): "collection of \(name)"
    }
  }

  /// Reads a ``signature``; nil for any other text.
  package init?(signature text: String) {
    func nested(_ prefix: String) -> _PropertyType? {
      text.hasPrefix(prefix)
        ? _PropertyType(signature: String(text.dropFirst(prefix.count))) : nil
    }
    /// A name may contain spaces, as that of a generic type with several parameters does.
    func named(_ prefix: String) -> String? {
      let name = text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : ""
      return name.isEmpty || name.hasPrefix(" ") ? nil : name
    }
    if let simple = Self.simple[text] {
      self = simple
    } else if let raw = nested("enumeration of ") {
      self = .enumeration(raw)
    } else if let wrapped = nested("optional ") {
      self = .optional(wrapped)
    } else if let element = nested("array of ") {
      self = .array(element)
    } else if let element = nested("set of ") {
      self = .set(element)
    } else if let value = nested("dictionary of ") {
      self = .dictionary(value)
    } else if let name = named("value ") {
      self = .value(name)
    } else if let name = named("weak reference to ") {
      self = .weakReference(name)
    } else if let name = named("reference to ") {
      self = .reference(name)
    } else if let name = named("collection of ") {
      self = .collection(name)
    } else {
      return nil
    }
  }

  /// The types that contain no other, by their signatures.
  private static let simple: [String: _PropertyType] = {
    let integers = [
      "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32", "UInt64",
    ]
    let types: [_PropertyType] =
      [.boolean, .string, .date, .uuid, .url, .data, .decimal, .json, .color]
      + integers.map { .integer($0) } + ["Float", "Double"].map { .number($0) }
    return Dictionary(uniqueKeysWithValues: types.map { ($0.signature, $0) })
  }()
}
