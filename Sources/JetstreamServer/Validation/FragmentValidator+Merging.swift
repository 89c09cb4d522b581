import Jetstream

/// Validation of changes to properties with a merge rule.
extension FragmentValidator {
  /// Returns the reason why a change of a property cannot be merged; nil if it can, or if there is nothing to merge.
  /// The merge rule is only called with values that the property accepts, and its result must be one, too.
  func mergeProblem(
    of value: JSONValue, inFragment at: Int, for property: PropertySchema
  ) -> String? {
    guard let rule = property.mergeRule, let base = fragments[at].bases[property.wireName] else {
      return nil
    }
    guard property.accepts(base) else { return "Invalid base at '\(property.wireName)'" }
    guard let model = content.model(fragments[at].uuid) else { return nil }
    let merged = property.merged(value, onto: model.currentJSON(of: property), base: base)
    if property.accepts(merged) { return nil }
    return "The merge rule '\(rule.name)' gives no value for '\(property.wireName)'"
  }
}
