/// Rules for the values of a property.
///
/// They are data: they are in the schema, too, and a server that has only that judges by them as one that has the classes.
/// The server rejects a client's change that breaks one, with an error of the type `field-rule`, and the change comes
/// into the client's ``ConflictLedger``. Writes of the client are neither stopped nor held back: a form asks for the
/// ``ObservableModel/problem(with:)`` of what it shows. The changes that a server's own app makes to its scope are not
/// judged.
///
/// A nil meets every rule. A property that an addition leaves out has its default, which is judged as well.
extension PropertyOptions {
  /// Limits a number, both bounds included: `.range(0...100)`, `.range(0...)` or `.range(...0.5)`.
  ///
  /// Of a ``counter``, the number after an increment is judged.
  public static func range<Bound: PropertyValue & Comparable & Numeric>(
    _ range: some RangeExpression<Bound>
  ) -> PropertyOptions {
    let bounds: FieldRange? =
      switch range {
      case let range as ClosedRange<Bound>:
        FieldRange(from: range.lowerBound._jsonValue, to: range.upperBound._jsonValue)
      case let range as PartialRangeFrom<Bound>:
        FieldRange(from: range.lowerBound._jsonValue, to: nil)
      case let range as PartialRangeThrough<Bound>:
        FieldRange(from: nil, to: range.upperBound._jsonValue)
      default: nil
      }
    guard let bounds else {
      preconditionFailure(
        "The range of a property needs finite bounds that belong to it, such as 0...100, and not "
          + "\(range).")
    }
    var options = PropertyOptions()
    options.rules.range = bounds
    return options
  }

  /// Limits the length of a text, or the number of elements of an array, a set or a dictionary of values:
  /// `.length(1...500)` or `.length(1...)`.
  ///
  /// The length of a text is the number of its Unicode scalars, which all systems count alike.
  public static func length(_ range: some RangeExpression<Int>) -> PropertyOptions {
    let limits: ClosedRange<Int>? =
      switch range {
      case let range as ClosedRange<Int>: range
      case let range as PartialRangeFrom<Int>: range.lowerBound...Int.max
      case let range as PartialRangeThrough<Int> where range.upperBound >= 0: 0...range.upperBound
      default: nil
      }
    guard let limits, limits.lowerBound >= 0 else {
      preconditionFailure(
        "The length of a property needs bounds that belong to it and are not negative, such as "
          + "1...500, and not \(range).")
    }
    var options = PropertyOptions()
    options.rules.length = limits
    return options
  }

  /// Demands that a text matches a regular expression as a whole: `.pattern("[a-z0-9-]+")`.
  ///
  /// The expression has at most 256 bytes, and no more than is matched in linear time: characters, `.`, classes such as
  /// `[a-z]` and `[^ ]`, `\d`, `\w`, `\s` and their opposites, groups, `|`, and the quantifiers `?`, `*`, `+`, `{2}`, `{2,}`
  /// and `{2,5}`, with at most 128 characters and classes, each repetition counted. `\d`, `\w` and `\s` are those of ASCII.
  public static func pattern(_ text: String) -> PropertyOptions {
    var options = PropertyOptions()
    do throws(FieldPattern.Problem) {
      options.rules.pattern = try FieldPattern(text)
    } catch {
      preconditionFailure("The pattern \(text) of a property \(error.text)")
    }
    return options
  }

  /// Allows to set the property only in the change set that adds its model. Later changes are rejected.
  ///
  /// The root, which no client adds, has it set once: while it has its default value. Not possible for a property that
  /// holds models.
  public static var immutable: PropertyOptions {
    var options = PropertyOptions()
    options.rules.isImmutable = true
    return options
  }

  /// Demands that no two models of a collection or dictionary have the same value. A model in several has to be the only
  /// one in each. Collections and dictionaries that other replicas do not have, of local properties or of models that only
  /// these hold, do not count.
  ///
  /// The server judges the state after a change set, so that one may swap two values. Cost: O(n) in the models of the
  /// collection, for each change set that inserts one or changes the property. Not possible for a property that holds
  /// models, or for a ``counter``.
  public static var unique: PropertyOptions {
    var options = PropertyOptions()
    options.rules.isUnique = true
    return options
  }
}
