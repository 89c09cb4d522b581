extension ModelSchema: Equatable {
  /// Returns true if both classes have the same wire name, and properties with the same names,
  /// types, options and defaults, in any order. That is the case if there are no
  /// ``differences(from:)``.
  package static func == (a: ModelSchema, b: ModelSchema) -> Bool {
    a === b || a.differences(from: b).isEmpty
  }

  /// Describes the differences between this schema and `other`, as one line of text each.
  ///
  /// ```swift
  /// for line in ModelSchema.of(Shape.self).differences(from: ModelSchema.of(OldShape.self)) {
  ///   print(line)  // Shape.x is Double, was Float.
  /// }
  /// ```
  ///
  /// Properties are matched by their wire names.
  package func differences(from other: ModelSchema) -> [String] {
    if self === other { return [] }
    var lines: [String] = []
    if wireName != other.wireName { lines.append("\(wireName) was called \(other.wireName).") }
    let (names, otherNames) = (declared, other.declared)
    for property in properties {
      if let old = otherNames[property.wireName] {
        lines += property.differences(from: old).map { "\(wireName).\(property.wireName) \($0)" }
      } else {
        lines.append("\(wireName).\(property.wireName) is new: \(property.type.signature).")
      }
    }
    for property in other.properties where names[property.wireName] == nil {
      lines.append("\(wireName).\(property.wireName) is gone.")
    }
    return lines
  }

  /// The properties that the class declares, by their names on the wire.
  private var declared: [String: Property] {
    Dictionary(uniqueKeysWithValues: properties.map { ($0.wireName, $0) })
  }
}

extension ModelSchema.Property {
  /// Returns predicates for sentences about this property.
  fileprivate func differences(from other: ModelSchema.Property) -> [String] {
    var lines: [String] = []
    func compare(_ new: String, _ old: String) {
      if new != old { lines.append("is \(new), was \(old).") }
    }
    compare(type.signature, other.type.signature)
    if name != other.name {
      lines.append("is called \(name) in the source, was called \(other.name).")
    }
    compare(isSynced ? "synced" : "local", other.isSynced ? "synced" : "local")
    compare(interval, other.interval)
    compare(
      options.isCounter ? "sent as what was added" : "sent as its value",
      other.options.isCounter ? "sent as what was added" : "sent as its value")
    compare(merging, other.merging)
    compare(rules, other.rules)
    if makesModels != other.makesModels {
      lines.append(
        makesModels ? "begins with models, began without." : "begins without models, began with.")
    }
    if !defaultValue.isWritten(as: other.defaultValue) {
      let (new, old) = (defaultValue.canonicalText, other.defaultValue.canonicalText)
      lines.append("begins as \(new), began as \(old).")
    }
    return lines
  }

  private var merging: String {
    options.mergeRule.map { "merged by \($0.name)" } ?? "what was written last"
  }

  private var rules: String {
    options.rules.isEmpty ? "without rules" : options.rules.words
  }

  private var interval: String {
    options.minSyncInterval.map { "sent at most every \($0)" } ?? "sent without an interval"
  }
}
