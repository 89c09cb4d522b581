import Synchronization

/// The steps by which snapshots of one class are taken and read. Made once for each class.
final class SnapshotPlan: Sendable {
  struct Step: Sendable {
    let property: ModelSchema.Property
    let source: any SnapshotSource.Type
    let isShareable: Bool
    /// True for a weak reference, which does not hold its target.
    let isWeak: Bool
  }

  let schema: ModelSchema
  let steps: [Step]
  /// The steps of weak references.
  let weakSteps: [Step]
  /// The properties by key paths whose getters were tried with extreme values, too.
  private let paths = KeyPathCache()

  private static let plans = Mutex<[ObjectIdentifier: SnapshotPlan]>([:])

  static func of(_ schema: ModelSchema) -> SnapshotPlan {
    let key = ObjectIdentifier(schema)
    if let plan = plans.withLock({ $0[key] }) { return plan }
    let made = SnapshotPlan(schema)
    return plans.withLock { plans in
      let plan = plans[key] ?? made
      plans[key] = plan
      return plan
    }
  }

  private init(_ schema: ModelSchema) {
    self.schema = schema
    let steps = schema.properties.map { property in
      guard let source = property.access as? any SnapshotSource.Type else {
        preconditionFailure("\(schema.wireName).\(property.name) cannot be part of a snapshot.")
      }
      return Step(
        property: property, source: source, isShareable: source.isShareable,
        isWeak: property.kind == .plain && source.isWeak)
    }
    self.steps = steps
    weakSteps = steps.filter(\.isWeak)
  }

  /// Returns the index of the property that a key path leads to; nil for a computed property.
  ///
  /// The check runs the getter on a copy of the model, with several different values: each time the getter
  /// must read exactly one property, the same one, of the key path's type, and return the stored value.
  func property<Model: ModelObject>(
    at keyPath: PartialKeyPath<Model>, of place: Int, in graph: SnapshotGraph
  ) -> Int? {
    paths.index(of: keyPath) {
      guard keyPath is any WritablePath else { return nil }
      return graph.evaluate(place) { (object: Model, _) in resolve(keyPath, on: object) }
    }
  }

  private func resolve<Model: ModelObject>(
    _ keyPath: PartialKeyPath<Model>, on object: Model
  ) -> Int? {
    let (_, reads) = ReadTracker.track { object[keyPath: keyPath] }
    guard reads.count == 1, reads[0].model === object else { return nil }
    let step = steps[reads[0].index]
    guard step.property.access.declaredType == type(of: keyPath).valueType else { return nil }
    let isStored = object.isIdentity(of: step.property, isThorough: true) {
      object[keyPath: keyPath]
    }
    return isStored == true ? reads[0].index : nil
  }
}

/// Key paths that can be written through a reference: those of `@Property` members, not of getters.
private protocol WritablePath {}

extension ReferenceWritableKeyPath: WritablePath {}
