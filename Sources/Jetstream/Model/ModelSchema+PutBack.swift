import Foundation

/// Models that a replica removes and puts back in a later change set.
extension ModelSchema.Property {
  /// Returns the value of a property of a model that a replica has put back, where other replicas may have changed
  /// the property since that replica last knew it.
  ///
  /// A change of one side alone counts. If both sides have changed the property, what both have done to a
  /// collection or a counter is done, a ``MergeRule`` is asked, and of any other value the one that was put back
  /// counts.
  ///
  /// - Parameters:
  ///   - mine: the value that the model was put back with.
  ///   - theirs: the value that the other replicas see.
  ///   - base: the value that the replica knew when it put the model back.
  package func putBack(_ mine: JSONValue, onto theirs: JSONValue, base: JSONValue) -> JSONValue {
    if areSame(mine, base) { return theirs }
    if areSame(theirs, base) { return mine }
    if isCollection {
      guard case .list(let mine) = PropertyContent(mine),
        case .list(let theirs) = PropertyContent(theirs),
        case .list(let base) = PropertyContent(base)
      else { return mine }
      let merged = CollectionMerge.merge(base: theirs, before: base, after: mine)
      return PropertyContent.list(merged).json
    }
    if options.isCounter, let step = JSONValue.difference(from: base, to: mine) {
      return PropertyOperation.apply(
        [.add(step)], to: theirs, within: counterRange ?? .unknown)
    }
    let value = merged(mine, onto: theirs, base: base)
    return options.mergeRule == nil || accepts(value) ? value : mine
  }
}
