/// The values that properties had when the innermost call of `modify` began, in their original form: JSON may keep
/// less. Collections are not included, since their steps lead back.
final class OriginalValues {
  /// A property of a model.
  struct Place: Hashable {
    let record: ModelRecord
    let index: Int

    init(_ record: ModelRecord, _ index: Int) {
      self.record = record
      self.index = index
    }

    static func == (a: Place, b: Place) -> Bool { a.record === b.record && a.index == b.index }

    func hash(into hasher: inout Hasher) {
      hasher.combine(ObjectIdentifier(record))
      hasher.combine(index)
    }
  }

  enum Original {
    /// The model that a reference held.
    case model(ModelObject?)
    /// Writes the plain value again.
    case plain((ModelObject) -> Void)
  }

  var values: [Place: Original] = [:]

  /// Keeps the value of a property before the first write.
  func keep(_ original: Original, of index: Int, in record: ModelRecord) {
    values[Place(record, index)] = original
  }
}
