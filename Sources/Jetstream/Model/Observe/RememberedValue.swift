import Foundation

/// A value as last reported to an observer, kept to be compared with a later one and passed as the
/// old value.
///
/// Unless `keepsModels` is set, it holds models weakly, also those of an array, a set or a dictionary: a getter may
/// return an ancestor, which holds the observation, and a weak reference may lead to one.
struct RememberedValue<Value> {
  private enum Content {
    case value(Value)
    case model(WeakModel)
    case sequence([WeakModel])
    case entries([AnyHashable: WeakModel])
    /// The state of a weak reference that leads to a model.
    case target(UUID, WeakModel)
  }

  private let content: Content

  init(_ value: Value, keepsModels: Bool) {
    if keepsModels {
      content = .value(value)
    } else if let model = value as? ModelObject {
      content = .model(WeakModel(model: model))
    } else if let type = Value.self as? any ModelSequence.Type,
      let models = type.models(in: value)
    {
      content = .sequence(models.map { WeakModel(model: $0) })
    } else if let type = Value.self as? any ModelsByKey.Type, let models = type.models(in: value) {
      content = .entries(models.mapValues { WeakModel(model: $0) })
    } else if let target = (value as? any TargetState)?.target {
      content = .target(target.uuid, WeakModel(model: target))
    } else {
      content = .value(value)
    }
  }

  /// The value. A model that has been released is nil, missing as the target of a weak reference, or left out of an
  /// array, a set or a dictionary. Nil altogether if the type cannot express that.
  var value: Value? {
    switch content {
    case .value(let value): value
    case .model(let model):
      if let model = model.model {
        model as? Value
      } else {
        (Value.self as? any ExpressibleByNilLiteral.Type).flatMap {
          $0.init(nilLiteral: ()) as? Value
        }
      }
    case .sequence(let models):
      (Value.self as? any ModelSequence.Type)?.make(of: models.map(\.model)) as? Value
    case .entries(let models):
      (Value.self as? any ModelsByKey.Type)?.make(of: models.mapValues(\.model)) as? Value
    case .target(let uuid, let target):
      (Value.self as? any TargetState.Type)?.make(of: target.model, uuid) as? Value
    }
  }

  /// Returns true if `new` is the same value. Models are compared by identity; values that cannot
  /// be compared count as different.
  func isSame(as new: Value) -> Bool {
    switch content {
    case .value(let old):
      if let type = Value.self as? any PropertyValue.Type {
        Self.isSame(old, new, type)
      } else if let old = old as? any Equatable {
        Self.isEqual(old, new)
      } else {
        false
      }
    case .model(let old): old.isSame(as: new as? ModelObject)
    case .sequence(let old):
      (Value.self as? any ModelSequence.Type).map { type in
        type.models(in: new).map { old.isSame(as: $0, isOrdered: type.isOrdered) } ?? false
      } ?? false
    case .entries(let old):
      (Value.self as? any ModelsByKey.Type).map { type in
        guard let now = type.models(in: new), now.count == old.count else { return false }
        return now.allSatisfy { old[$0.key]?.isSame(as: $0.value) ?? false }
      } ?? false
    case .target: false
    }
  }

  private static func isSame<Known: PropertyValue>(_ a: Any, _ b: Any, _: Known.Type) -> Bool {
    guard let a = a as? Known, let b = b as? Known else { return false }
    return Known._isSame(a, b)
  }

  private static func isEqual<Known: Equatable>(_ a: Known, _ b: Any) -> Bool { a == b as? Known }
}

/// An array or a set of models, or none, whose type is not known statically.
protocol ModelSequence {
  /// True if the order of the models counts.
  static var isOrdered: Bool { get }
  /// Returns the models of a value; nil if there is no array and no set.
  static func models(in value: Any) -> [ModelObject?]?
  static func make(of models: [ModelObject?]) -> Self
}

/// A dictionary of models with keys of any type, or none, whose types are not known statically.
protocol ModelsByKey {
  /// Returns the models of a value; nil if there is no dictionary.
  static func models(in value: Any) -> [AnyHashable: ModelObject?]?
  static func make(of models: [AnyHashable: ModelObject?]) -> Self
}

extension ModelDictionary: ModelsByKey {
  static func models(in value: Any) -> [AnyHashable: ModelObject?]? {
    guard let table = (value as? Self)?.table else { return nil }
    var models = [AnyHashable: ModelObject?](minimumCapacity: table.count)
    table.forEach { models[$0] = $1 }
    return models
  }

  static func make(of models: [AnyHashable: ModelObject?]) -> Self {
    var table = ModelTable()
    for (key, model) in models { if let key = key.base as? String { table[key] = model } }
    return Self(table: table)
  }
}

extension Dictionary: ModelsByKey where Value: ModelOrNone {
  static func models(in value: Any) -> [AnyHashable: ModelObject?]? {
    guard let entries = value as? Self else { return nil }
    var models = [AnyHashable: ModelObject?](minimumCapacity: entries.count)
    for (key, value) in entries { models.updateValue(value.modelOrNone, forKey: key) }
    return models
  }

  static func make(of models: [AnyHashable: ModelObject?]) -> Self {
    var result: Self = [:]
    for (key, model) in models {
      guard let key = key.base as? Key, let value = Value.make(of: model) else { continue }
      result.updateValue(value, forKey: key)
    }
    return result
  }
}

extension Optional: ModelsByKey where Wrapped: ModelsByKey {
  static func models(in value: Any) -> [AnyHashable: ModelObject?]? { Wrapped.models(in: value) }
  static func make(of models: [AnyHashable: ModelObject?]) -> Self { Wrapped.make(of: models) }
}

extension ModelArray: ModelSequence {
  static var isOrdered: Bool { true }
  static func models(in value: Any) -> [ModelObject?]? {
    (value as? Self)?.list.models.map(Optional.some)
  }
  static func make(of models: [ModelObject?]) -> Self { Self(models.compactMap { $0 as? Element }) }
}

extension Array: ModelSequence where Element: ModelOrNone {
  static var isOrdered: Bool { true }
  static func models(in value: Any) -> [ModelObject?]? { (value as? Self)?.map(\.modelOrNone) }
  static func make(of models: [ModelObject?]) -> Self { models.compactMap(Element.make) }
}

extension Set: ModelSequence where Element: ModelOrNone {
  static var isOrdered: Bool { false }
  static func models(in value: Any) -> [ModelObject?]? { (value as? Self)?.map(\.modelOrNone) }
  static func make(of models: [ModelObject?]) -> Self { Set(models.compactMap(Element.make)) }
}

extension Optional: ModelSequence where Wrapped: ModelSequence {
  static var isOrdered: Bool { Wrapped.isOrdered }
  static func models(in value: Any) -> [ModelObject?]? { Wrapped.models(in: value) }
  static func make(of models: [ModelObject?]) -> Self { Wrapped.make(of: models) }
}

/// The state of a weak reference whose class of targets is not known statically.
private protocol TargetState {
  /// The model that the reference leads to; nil if there is none.
  var target: ModelObject? { get }
  /// Returns the state of a reference to `target`, which is missing if it is nil.
  static func make(of target: ModelObject?, _ uuid: UUID) -> Self
}

extension WeakReference.State: TargetState {
  fileprivate var target: ModelObject? {
    if case .loaded(let target) = self { target } else { nil }
  }

  fileprivate static func make(of target: ModelObject?, _ uuid: UUID) -> Self {
    (target as? Target).map { .loaded($0) } ?? .missing(uuid)
  }
}
