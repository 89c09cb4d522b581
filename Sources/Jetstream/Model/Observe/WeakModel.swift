/// A model or none, as a value or in a container. The model is held weakly.
struct WeakModel {
  /// The model; nil if there was none, or if it has been released.
  private(set) weak var model: ModelObject?
  private let wasNone: Bool

  init(model: ModelObject?) {
    self.model = model
    wasNone = model == nil
  }

  /// True if the model has been released.
  var isReleased: Bool { !wasNone && model == nil }

  /// Returns true for the same model, or for none if there was none. Nothing is the same as a model that has been
  /// released.
  func isSame(as now: ModelObject?) -> Bool { !isReleased && now === model }
}

extension [WeakModel] {
  /// Returns true for the same models.
  ///
  /// - Parameter isOrdered: true if the order counts; false for the models of a set.
  func isSame(as now: [ModelObject?], isOrdered: Bool) -> Bool {
    guard now.count == count else { return false }
    if isOrdered { return zip(self, now).allSatisfy { $0.isSame(as: $1) } }
    let known = Set(map(\.model))
    return !contains(where: \.isReleased) && now.allSatisfy(known.contains)
  }
}

/// A model, or none where a container can have none: an element of an array or a set, or a value of a dictionary.
protocol ModelOrNone {
  /// The model; nil if there is none.
  var modelOrNone: ModelObject? { get }
  /// Returns a model, or none, as a container of this type has it; nil if such a container does not have it.
  static func make(of model: ModelObject?) -> Self?
}

extension ModelObject: ModelOrNone {
  final var modelOrNone: ModelObject? { self }
  static func make(of model: ModelObject?) -> Self? { model as? Self }
}

extension Optional: ModelOrNone where Wrapped: ModelObject {
  var modelOrNone: ModelObject? { self }
  static func make(of model: ModelObject?) -> Self? { .some(model as? Wrapped) }
}
