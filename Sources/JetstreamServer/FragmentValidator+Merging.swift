import Jetstream

/// Changes of properties with a merge rule.
extension FragmentValidator {
  /// Why a change of a property cannot be merged; nil if it can, or if there is nothing to merge. A rule is only
  /// asked about values that the property can have, and has to give one.
  func mergeProblem(
    of value: JSONValue, in fragment: SyncFragment, for property: ModelSchema.Property
  ) -> String? {
    guard let rule = property.options.mergeRule, let base = fragment.bases[property.wireName] else {
      return nil
    }
    guard property.accepts(base) else { return "Invalid base at '\(property.wireName)'" }
    guard let model = scope.model(fragment.uuid) else { return nil }
    let merged = property.merged(value, onto: model.currentJSON(of: property), base: base)
    if property.accepts(merged) { return nil }
    return "The merge rule '\(rule.name)' gives no value for '\(property.wireName)'"
  }
}
