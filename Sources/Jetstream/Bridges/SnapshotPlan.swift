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
  /// The indices of stored properties, and ``aloneIndex``, by key path.
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

  /// The way in which a key path is read in a snapshot.
  enum Access {
    /// The key path leads to the stored property with this index.
    case stored(Int)
    /// The getter runs on a copy of its model alone: it has read nothing but one plain property, of the type of the key
    /// path. If it comes to read a property that leads to models, these are copied before that.
    case alone
    /// The getter runs on copies of its model and all models below.
    case computed
  }

  /// Returns the way in which a key path is read.
  ///
  /// To find it, the getter runs on a copy of the model with several different values. A key path leads to a stored
  /// property if it is writable and the getter reads exactly one property each time, the same one, of the key path's
  /// type, and returns the stored value. Where that cannot be found out, the getter is run each time: of some types
  /// there are too few values to try, and the getter of a key path that is not writable may treat any one value
  /// differently.
  func access<Model: ModelObject>(
    at keyPath: PartialKeyPath<Model>, of place: Int, in graph: SnapshotGraph
  ) -> Access {
    let index = paths.index(of: keyPath) {
      graph.evaluate(place) { (object: Model, copies) in
        // Prepared also where all copies are there: so a look at models that reads no property counts as a read.
        switch copies.preparingReads({ resolve(keyPath, on: object) }) {
        case .stored(let index): index
        case .alone: aloneIndex
        case .computed: nil
        }
      }
    }
    guard let index else { return .computed }
    return index == aloneIndex ? .alone : .stored(index)
  }

  /// The index that stands for ``Access/alone`` in the cache: the one behind the properties.
  private var aloneIndex: Int { steps.count }

  private func resolve<Model: ModelObject>(
    _ keyPath: PartialKeyPath<Model>, on object: Model
  ) -> Access {
    let (_, reads) = ReadTracker.track { object[keyPath: keyPath] }
    guard reads.count == 1, reads[0].model === object else { return .computed }
    let step = steps[reads[0].index]
    guard step.property.access.declaredType == type(of: keyPath).valueType else {
      return .computed
    }
    if keyPath is any WritablePath {
      let isStored = object.isIdentity(of: step.property, isThorough: true) {
        object[keyPath: keyPath]
      }
      if let isStored { return isStored ? .stored(step.property.index) : .computed }
    }
    return step.property.kind == .plain && !step.isWeak ? .alone : .computed
  }
}

/// Key paths that can be written through a reference: those of `@Property` members, not of getters.
private protocol WritablePath {}

extension ReferenceWritableKeyPath: WritablePath {}
