/// Finding out whether a getter returns a stored property as it is. Safe for the reasons given at ``StoredProperty``; the
/// object that is written to is private to the caller.
extension Property {
  static func isIdentity(
    at address: UnsafeMutableRawPointer, isThorough: Bool, _ read: () -> Any?
  ) -> Bool? {
    let storage = address.assumingMemoryBound(to: Property.self)
    let original = storage.pointee.value
    defer { storage.pointee.value = original }
    let probes = [original] + PropertyProbes.values(of: Value.self, isThorough: isThorough)
    let isSame = probes.allSatisfy { probe in
      storage.pointee.value = probe
      guard let result = read(), let value = result as? Value else { return false }
      return Value._isSame(value, probe)
    }
    return isSame && probes.count <= 2 ? nil : isSame
  }
}

extension WeakReference {
  static func isIdentity(
    at address: UnsafeMutableRawPointer, isThorough: Bool, _ read: () -> Any?
  ) -> Bool? {
    let storage = address.assumingMemoryBound(to: WeakReference.self)
    let original = storage.pointee.link
    defer { storage.pointee.link = original }
    return [nil, Target()].allSatisfy { probe in
      storage.pointee.link = WeakLink(probe)
      guard let result = read(), let value = result as? Target? else { return false }
      return value === probe
    }
  }
}

/// Test values for every property type, which reveal a getter that does more than return a
/// property. Small values come first, so that a getter that calculates is detected before it
/// overflows.
private enum PropertyProbes {
  private static let json: [JSONValue] = [
    1, 2, 3, -1, 113, -128, 0, 0.1, -7.25, 4e30, -4e30, .integer(.max), .integer(.min),
    .unsigned(.max), .null, false, true, "a", "b c", "", " Éa\u{301}\n",
    .string(String(repeating: "x", count: 300)), "NaN", "-Infinity",
    "0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "https://example.org/a?b#c", "AAEC", [], [1, 0],
    ["b", "a", ""], [true, false], [0.5, -1.5], ["0f8fad5b-d9cb-469f-a165-70867728950e"],
    [:], ["b": 1, "a": 2], ["b": "1", "a": ""], ["b": true], ["b": 0.5],
  ]

  /// Values at which no getter is likely to trap.
  private static let mild: [JSONValue] = [
    1, 2, 3, 113, 0, 0.5, false, true, "a", "b c", "", .null, [], [:],
  ]

  /// - Parameter isThorough: false for mild values only.
  static func values<Value: PropertyValue>(of type: Value.Type, isThorough: Bool) -> [Value] {
    switch type._storageKind {
    case .plain:
      let cases = (type as? any CaseIterable.Type).map { Array($0.allCases) as [Any] } ?? []
      let values = isThorough ? json : mild
      return values.compactMap(type._decode) + cases.compactMap { $0 as? Value }
    case .model: return []
    case .reference:
      let model = type.heldClass?.init()
      return [type.holding(nil as ModelObject?), type.holding(model)].compactMap { $0 }
    case .collection:
      let models = type.heldClass.map { modelClass in (0..<3).map { _ in modelClass.init() } }
      return [ModelList(), ModelList(models ?? [])].compactMap { type.holding($0) }
    case .dictionary:
      var table = ModelTable()
      for key in ["1", "a", "b"] { table[key] = type.heldClass?.init() }
      return [ModelTable(), table].compactMap { type.holding($0) }
    }
  }
}

extension ModelObject {
  /// Returns true if `read` reads nothing but a property of this model and returns it as it is, whatever its value; nil if
  /// there are too few values to say. The model has to be private to the caller.
  ///
  /// A getter that depends on the value of the property may read other properties for some values only, so the reads are
  /// tracked for each value.
  ///
  /// - Parameter isThorough: true to try extreme values, too.
  final func isIdentity(
    of property: ModelSchema.Property, isThorough: Bool, _ read: () -> Any
  ) -> Bool? {
    let expected = [ReadTracker.Read(model: self, index: property.index)]
    return withExtendedLifetime(self) {
      property.access.isIdentity(at: storage(of: property), isThorough: isThorough) {
        let (value, reads) = ReadTracker.track(read)
        return reads == expected ? value : nil
      }
    }
  }

  /// Returns the address of a property's storage, valid while the caller retains the object.
  final func storage(of property: ModelSchema.Property) -> UnsafeMutableRawPointer {
    Unmanaged.passUnretained(self).toOpaque() + property.offset
  }
}
