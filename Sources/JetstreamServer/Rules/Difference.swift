import Jetstream

/// A difference that a change set would make to one model.
struct Difference {
  enum Kind {
    /// The model comes in: a new one, or one that was gone.
    case created
    /// Nothing leads from the root to the model any more.
    case deleted
    /// A value, a reference or a counter changes.
    case updated(PropertySchema)
    /// A collection or a dictionary of the model holds another one.
    case inserted(TentativeModel, PropertySchema)
    /// A collection or a dictionary of the model holds another one no longer.
    case removed(TentativeModel, PropertySchema)
    /// A model gets another place in a collection of the model.
    case moved(TentativeModel, PropertySchema)
  }

  let kind: Kind
  let model: TentativeModel
  /// The fragments that make the difference.
  let fragments: FragmentIndices
}

extension Difference {
  /// Makes the difference of a value that a write at a place of a model changes.
  init(updating model: TentativeModel, at place: Int) {
    self.init(
      kind: .updated(model.property(at: place)), model: model,
      fragments: model.fragments(at: place))
  }
}
