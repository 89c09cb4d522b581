extension ModelSchema {
  /// Returns the range of a counter; any number for a property that the class does not have.
  package func counterRange(of wireName: String) -> CounterRange {
    self[wireName: wireName]?.counterRange ?? .unknown
  }
}

/// The properties of schemas and models that the server needs to validate fragments.
extension ModelSchema.Property {
  /// True for a ``ModelArray``.
  package var isCollection: Bool { kind == .collection }

  /// True for a reference to one model, which an entry of a dictionary is, too.
  package var isReference: Bool { kind == .reference }

  /// True for a property whose value names models: any but a plain one, and a weak reference.
  package var namesModels: Bool { kind != .plain || isWeakReference }

  /// True for a ``WeakReference``.
  package var isWeakReference: Bool { if case .weakReference = type { true } else { false } }

  /// Returns true if a plain property can hold the JSON.
  package func accepts(_ json: JSONValue) -> Bool { access.accepts(json) }

  /// Returns true if a property that holds models can hold objects of `modelClass`.
  package func canHold(_ modelClass: ModelObject.Type) -> Bool {
    guard let expected = access.valueType.heldClass else { return false }
    var current: AnyClass? = modelClass
    while let next = current {
      if next == expected { return true }
      current = _getSuperclass(next)
    }
    return false
  }

  /// Returns true if two JSON values decode to the same value of this property, even if they are
  /// written differently.
  package func areSame(_ a: JSONValue, _ b: JSONValue) -> Bool { data.areSame(a, b) }

  /// Returns the value that results from setting `mine`, made when the property was `base`, on the
  /// current value `theirs`.
  package func merged(_ mine: JSONValue, onto theirs: JSONValue, base: JSONValue) -> JSONValue {
    data.merged(mine, onto: theirs, base: base)
  }

  /// Merges the value of a property of a model that a replica has put back.
  package func putBack(_ mine: JSONValue, onto theirs: JSONValue, base: JSONValue) -> JSONValue {
    data.putBack(mine, onto: theirs, base: base)
  }
}

extension ObservableModel {
  /// Returns the stored property that a key path of the class leads to. Traps for a computed one. Makes a model the first
  /// time.
  package static func property(at keyPath: PartialKeyPath<Self>) -> ModelSchema.Property {
    let schema = ModelSchema.of(Self.self)
    let index = schema.keyPaths.index(of: keyPath) ?? Self().index(of: keyPath)
    return schema.properties[index]
  }
}
