/// Observes the value of a computed property: tracks what the getter reads, anew after each change.
final class CompositeWatch: Follower {
  /// The observation that owns this watch.
  private weak var observation: ChangeObservation?
  private let model: ModelRecord
  private let read: (ModelObject) -> Any
  private var value: Snapshot?

  init(_ model: ModelRecord, observation: ChangeObservation, read: @escaping (ModelObject) -> Any) {
    self.model = model
    self.observation = observation
    self.read = read
  }

  override var isLive: Bool { observation?.isLive ?? false }

  override func readsChanged(_ delivery: inout Delivery) {
    if evaluate(), let observation { delivery.trigger(observation) }
  }

  override func end() {
    stop()
    observation?.drop()
  }

  /// Runs the getter and follows all properties that it reads. Returns true if the value differs
  /// from the last one; values that cannot be compared count as different.
  func evaluate() -> Bool {
    guard isLive, let owner = model.model else { return false }
    let (new, reads) = ReadTracker.track { read(owner) }
    follow(reads, ticker: model.ticker)
    guard let value, value.isSame(as: new) else {
      value = Snapshot(new)
      return true
    }
    return false
  }
}

/// A getter's result, kept for comparison with the next one. Models are held weakly, because a
/// getter that returns an ancestor must not keep the tree alive.
private enum Snapshot {
  case value(any Equatable)
  case models([WeakModel])
  case entries([AnyHashable: WeakModel])
  case members([WeakModel])
  case incomparable

  init(_ value: Any) {
    if let models = Self.models(in: value) {
      self = .models(models.map { WeakModel(model: $0) })
    } else if let entries = Self.entries(in: value) {
      self = .entries(entries.mapValues { WeakModel(model: $0) })
    } else if let members = Self.members(in: value) {
      self = .members(members.map { WeakModel(model: $0) })
    } else if let value = value as? any Equatable {
      self = .value(value)
    } else {
      self = .incomparable
    }
  }

  func isSame(as new: Any) -> Bool {
    switch self {
    case .models(let old):
      Self.models(in: new).map { old.isSame(as: $0, isOrdered: true) } ?? false
    case .entries(let old):
      Self.entries(in: new).map { new in
        old.count == new.count
          && new.allSatisfy { old[$0.key]?.isSame(as: $0.value) ?? false }
      } ?? false
    case .members(let old):
      Self.members(in: new).map { old.isSame(as: $0, isOrdered: false) } ?? false
    case .value(let old): Self.isEqual(old, new)
    case .incomparable: false
    }
  }

  private static func models(in value: Any) -> [ModelObject?]? {
    if let model = value as? ModelObject { return [model] }
    if let type = type(of: value) as? any ModelSequence.Type {
      return type.isOrdered ? type.models(in: value) : nil
    }
    guard let array = value as? [ModelObject], !array.isEmpty else { return nil }
    return array
  }

  private static func entries(in value: Any) -> [AnyHashable: ModelObject?]? {
    if let type = type(of: value) as? any ModelsByKey.Type { return type.models(in: value) }
    guard let entries = value as? [AnyHashable: ModelObject], !entries.isEmpty else { return nil }
    return entries
  }

  private static func members(in value: Any) -> [ModelObject?]? {
    if let type = type(of: value) as? any ModelSequence.Type {
      return type.isOrdered ? nil : type.models(in: value)
    }
    guard let members = value as? Set<ModelObject>, !members.isEmpty else { return nil }
    return Array(members)
  }

  private static func isEqual<Value: Equatable>(_ a: Value, _ b: Any) -> Bool {
    guard let b = b as? Value else { return false }
    if let type = Value.self as? any PropertyValue.Type { return isSame(a, b, type) }
    return a == b
  }

  private static func isSame<Value: PropertyValue>(_ a: Any, _ b: Any, _: Value.Type) -> Bool {
    guard let a = a as? Value, let b = b as? Value else { return false }
    return Value._isSame(a, b)
  }
}
