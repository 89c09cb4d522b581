/// A value as last reported to an observer, kept to be compared with a later one and passed as the
/// old value.
///
/// Unless `keepsModels` is set, it holds models weakly: the value of a getter may be an ancestor,
/// which holds the observation.
struct RememberedValue<Value> {
  private struct WeakModel { weak var model: ModelObject? }

  private enum Content {
    case value(Value)
    case model(WeakModel)
    case array([WeakModel])
    case entries([(key: String, model: WeakModel)])
  }

  private let content: Content

  init(_ value: Value, keepsModels: Bool) {
    if keepsModels {
      content = .value(value)
    } else if let model = value as? ModelObject {
      content = .model(WeakModel(model: model))
    } else if let type = Value.self as? any ModelSequence.Type {
      content = .array(type.models(in: value).map { WeakModel(model: $0) })
    } else if let type = Value.self as? any ModelEntries.Type {
      var entries: [(key: String, model: WeakModel)] = []
      type.table(of: value).forEach { entries.append(($0, WeakModel(model: $1))) }
      content = .entries(entries)
    } else {
      content = .value(value)
    }
  }

  /// The value. A model that has been released is nil, or left out of an array or a dictionary. Nil altogether if
  /// the type cannot express that.
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
    case .array(let models):
      (Value.self as? any ModelSequence.Type)?.make(of: models.compactMap(\.model)) as? Value
    case .entries(let entries):
      (Value.self as? any ModelEntries.Type)?.make(of: table(entries)) as? Value
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
    case .model(let old): old.model != nil && old.model === new as? ModelObject
    case .array(let old):
      (Value.self as? any ModelSequence.Type).map { type in
        type.models(in: new).elementsEqual(old) { $0 === $1.model }
      } ?? false
    case .entries(let old):
      (Value.self as? any ModelEntries.Type).map { type in
        let now = type.table(of: new)
        return now.count == old.count && now == table(old)
      } ?? false
    }
  }

  private func table(_ entries: [(key: String, model: WeakModel)]) -> ModelTable {
    var result = ModelTable()
    for entry in entries { result[entry.key] = entry.model.model }
    return result
  }

  private static func isSame<Known: PropertyValue>(_ a: Any, _ b: Any, _: Known.Type) -> Bool {
    guard let a = a as? Known, let b = b as? Known else { return false }
    return Known._isSame(a, b)
  }

  private static func isEqual<Known: Equatable>(_ a: Known, _ b: Any) -> Bool { a == b as? Known }
}

/// A collection of models whose type is not known statically.
private protocol ModelSequence {
  static func models(in value: Any) -> [ModelObject]
  static func make(of models: [ModelObject]) -> Self
}

/// A dictionary of models whose types are not known statically.
protocol ModelEntries {
  static func table(of value: Any) -> ModelTable
  static func make(of table: ModelTable) -> Any?
}

extension ModelDictionary: ModelEntries {
  static func table(of value: Any) -> ModelTable { (value as? Self)?.table ?? ModelTable() }
  static func make(of table: ModelTable) -> Any? { value(of: table) }
}

extension ModelArray: ModelSequence {
  static func models(in value: Any) -> [ModelObject] { (value as? Self).map(Array.init) ?? [] }
  static func make(of models: [ModelObject]) -> Self { Self(models.compactMap { $0 as? Element }) }
}

extension Array: ModelSequence where Element: ModelObject {
  static func models(in value: Any) -> [ModelObject] { value as? Self ?? [] }
  static func make(of models: [ModelObject]) -> Self { models.compactMap { $0 as? Element } }
}
