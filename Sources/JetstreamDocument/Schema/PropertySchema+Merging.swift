import Foundation

/// Merging of values that several replicas have set.
extension PropertySchema {
  /// Returns the value that results from setting `mine`, made when the property was `base`, on the current value
  /// `theirs`. That is `mine` itself if `theirs` equals `base`, or if there is no rule.
  package func merged(_ mine: JSONValue, onto theirs: JSONValue, base: JSONValue) -> JSONValue {
    guard let rule = mergeRule, !areSame(theirs, base) else { return mine }
    // Values received from a peer and local ones must look the same to the rule.
    func normal(_ json: JSONValue) -> JSONValue { normalized(json) ?? json }
    // A set that a rule has made of two has to be in order as well.
    let conflict = MergeRule.Conflict(
      base: normal(base), theirs: normal(theirs), mine: normal(mine))
    return normal(rule.value(conflict, of: type))
  }

  /// Merges the value of a property of a model that a replica has removed and put back in a later change set with
  /// changes that other replicas may have made since that replica last knew it.
  ///
  /// If only one side has changed the property, its value is taken. If both have, changes of a collection or counter are
  /// combined, a ``MergeRule`` is applied if there is one, and otherwise the value that was put back wins.
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
    if isCounter, let step = JSONValue.difference(from: base, to: mine) {
      return PropertyOperation.apply([.add(step)], to: theirs, within: counterRange ?? .unknown)
    }
    let value = merged(mine, onto: theirs, base: base)
    return mergeRule == nil || accepts(value) ? value : mine
  }
}
