extension ModelSchema {
  /// Returns the range of a counter: any number for a property that the class does not have.
  package func counterRange(of wireName: String) -> CounterRange {
    self[wireName: wireName]?.counterRange ?? .unknown
  }
}

extension Scope {
  /// Returns the range of a counter of the model that a fragment names; collections are not looked up.
  func counterRange(
    of entry: PropertyOperations.Entry, in fragment: SyncFragment
  ) -> CounterRange {
    guard entry.operations.contains(where: { $0.model == nil }) else { return .unknown }
    return schema(of: fragment)?.counterRange(of: entry.key) ?? .unknown
  }
}

/// What the server needs to know of properties and models to judge fragments.
extension ModelSchema.Property {
  /// Whether the property is a ``ModelArray``.
  package var isCollection: Bool { kind == .collection }

  /// Whether the property is a reference to one model.
  package var isReference: Bool { kind == .reference }

  /// True for a property whose value names models: a reference, a weak reference or a collection.
  package var namesModels: Bool { kind != .plain || isWeakReference }

  /// True for a ``WeakReference``.
  package var isWeakReference: Bool { if case .weakReference = type { true } else { false } }

  /// The class of the models that a reference or a collection is declared to hold.
  package var modelClass: ModelObject.Type? {
    isCollection || isReference ? access.valueType._modelClass : nil
  }

  /// Whether a plain property can take the JSON.
  package func accepts(_ json: JSONValue) -> Bool { access.accepts(json) }

  /// Why a plain property cannot take JSON that it does not accept, in the words of its type; nil if that has
  /// none.
  package func problem(with json: JSONValue) -> String? { access.problem(with: json) }

  /// Whether a reference or a collection can hold objects of `modelClass`.
  package func canHold(_ modelClass: ModelObject.Type) -> Bool {
    guard let expected = access.valueType._modelClass else { return false }
    var current: AnyClass? = modelClass
    while let next = current {
      if next == expected { return true }
      current = _getSuperclass(next)
    }
    return false
  }

  /// Whether two JSON values are the same value of this property, however they are written.
  package func areSame(_ a: JSONValue, _ b: JSONValue) -> Bool {
    a == b || access.areSame(a, b) || (kind != .plain && a.lowercased == b.lowercased)
  }
}

extension JSONValue {
  /// Returns whether two values have the same canonical text.
  package func isWritten(as other: JSONValue) -> Bool {
    switch (self, other) {
    case (.integer(let a), .integer(let b)): a == b
    case (.bool(let a), .bool(let b)): a == b
    case (.string(let a), .string(let b)): String.isSame(a, b)
    case (.null, .null): true
    default: canonicalText == other.canonicalText
    }
  }

  /// UUIDs, alone or in an array, in lower case.
  fileprivate var lowercased: JSONValue {
    switch self {
    case .string(let text): .string(text.lowercased())
    case .array(let elements): .array(elements.map(\.lowercased))
    default: self
    }
  }
}

extension ModelObject {
  /// The value of a property as JSON, as the others are to know it: what is held back for the sake of
  /// a minimal sync interval is not in it.
  package final func currentJSON(of property: ModelSchema.Property) -> JSONValue {
    record?.heldBackBase(of: property) ?? json(of: property)
  }

  /// The model and all that it holds as additions, depth first, as the others are to know it.
  package final func subtreeFragments() -> [SyncFragment] {
    ensureRecord().subtreeFragments(withHeldBack: false)
  }

  /// Every synced property with its value, as the others are to know it.
  package final func currentProperties() -> JSONObject {
    ensureRecord().syncedProperties(withHeldBack: false)
  }
}
