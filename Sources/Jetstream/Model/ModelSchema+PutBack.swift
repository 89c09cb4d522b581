import Foundation

/// Merging of models that a replica removes and puts back in a later change set.
extension ModelSchema.Property {
  /// Merges the value of a property of a model that a replica has put back with changes that other
  /// replicas may have made since that replica last knew it.
  ///
  /// If only one side has changed the property, its value is taken. If both have, changes of a
  /// collection or counter are combined, a ``MergeRule`` is applied if there is one, and otherwise
  /// the value that was put back wins.
  ///
  /// - Parameters:
  ///   - mine: The value that the model was put back with.
  ///   - theirs: The value that the other replicas see.
  ///   - base: The value that the replica knew when it put the model back.
  package func putBack(_ mine: JSONValue, onto theirs: JSONValue, base: JSONValue) -> JSONValue {
    if areSame(mine, base) { return theirs }
    if areSame(theirs, base) { return mine }
    if isCollection {
      guard case .list(let mine) = PropertyContent(mine),
        case .list(let theirs) = PropertyContent(theirs),
        case .list(let base) = PropertyContent(base)
      else { return mine }
      return theirs.merging(from: base, to: mine).json
    }
    if options.isCounter, let step = JSONValue.difference(from: base, to: mine) {
      return PropertyOperation.apply(
        [.add(step)], to: theirs, within: counterRange ?? .unknown)
    }
    let value = merged(mine, onto: theirs, base: base)
    return options.mergeRule == nil || accepts(value) ? value : mine
  }
}
