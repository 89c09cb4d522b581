/// The rules that the values of a model break, for forms.
extension ObservableModel {
  /// Describes which rule of its declaration the value of a property breaks, as a sentence for users; nil if it breaks
  /// none.
  ///
  /// ```swift
  /// Text(product.problem(with: \.quantity) ?? "")  // quantity has to be from 0 to 100, not 120
  /// ```
  ///
  /// The value stays in the model, and is sent with the next change set like any other: the server decides. A value that
  /// was written within one `Scope.modify` call, or since the last tick, can still be set right before it is sent.
  ///
  /// The sentence is the server's, with the Swift names of the properties. Whether a value is ``PropertyOptions/unique``
  /// is judged by the models that this replica has, in O(n) for a collection of n models. Local collections, which other
  /// replicas do not have, do not count. That a property is ``PropertyOptions/immutable`` is only told until the change
  /// set is made. Read in a tracking, as in the body of a SwiftUI view, the values that the answer depends on are tracked,
  /// and the collections that hold the model. The making of the change set, which ends the problem with an immutable
  /// property, is not, and neither is that a model with such a collection becomes shared, or no longer is.
  ///
  /// Traps for a key path to anything but a property that is declared with ``Property``.
  public func problem(with keyPath: PartialKeyPath<Self>) -> String? {
    guard case .property(let index) = resolve(keyPath) else {
      preconditionFailure("\(keyPath) is not a @Property of \(schema.wireName), and has no rules.")
    }
    return problem(with: schema.properties[index])
  }
}

extension ModelObject {
  /// The problems with all properties of the model, in the order of their declarations; see
  /// ``ObservableModel/problem(with:)``. Empty if the values break no rule.
  public final var problems: [String] { schema.properties.compactMap { problem(with: $0) } }

  fileprivate final func problem(with property: ModelSchema.Property) -> String? {
    guard let rules = property.data.rules else { return nil }
    let json = readJSON(of: property)
    if let problem = rules.problem(with: json, called: property.name) { return problem }
    if rules.isImmutable, isLate(json, in: property) {
      return FieldRules.immutableProblem(called: property.name, of: schema.wireName)
    }
    guard rules.isUnique, json != .null, let collection = collectionWithSame(json, as: property)
    else { return nil }
    return FieldRules.uniqueProblem(with: json, called: property.name, in: collection)
  }

  /// Returns the value of a property, and notes the read.
  private func readJSON(of property: ModelSchema.Property) -> JSONValue {
    noteRead(of: property)
    return json(of: property)
  }

  private func noteRead(of property: ModelSchema.Property) {
    if readsAreNoted { propertyIsRead(at: property.offset) }
  }

  /// Returns true if an immutable property was changed since the last change set, of a model that was in one.
  private func isLate(_ json: JSONValue, in property: ModelSchema.Property) -> Bool {
    guard let record, let tree = record.tree, !isNewToOthers,
      let known = record.knownJSON(of: property.index), !property.areSame(known, json)
    else { return false }
    // No client adds the root, so that it is set once with a change.
    return !tree.isRoot(record) || !property.areSame(known, property.defaultValue)
  }

  /// Returns the name of a collection or dictionary in which another model has the same value.
  private func collectionWithSame(
    _ json: JSONValue, as property: ModelSchema.Property
  ) -> String? {
    parentsAreRead()
    for link in record?.parents.all ?? [] {
      guard let parent = link.parent.model else { continue }
      let collection = parent.schema.properties[link.index]
      // Other replicas do not have such a collection, so the server does not judge by it.
      if !collection.isSynced || link.parent.tree !== record?.tree || link.parent.isUnshared {
        continue
      }
      parent.noteRead(of: collection)
      var hasSame = false
      func compare(_ other: ModelObject) {
        guard !hasSame, other !== self, let data = other.schema.data[wireName: property.wireName],
          data.rules?.isUnique == true
        else { return }
        hasSame = other.readJSON(of: other.schema[data]) == json
      }
      switch collection.kind {
      case .collection: parent.list(of: collection).models.forEach(compare)
      case .dictionary: parent.table(of: collection).forEach { compare($1) }
      case .plain, .model, .reference: continue
      }
      if hasSame { return collection.name }
    }
    return nil
  }
}
