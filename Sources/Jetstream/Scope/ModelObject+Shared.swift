/// Models as other replicas are to know them.
extension ModelObject {
  /// Returns the value of a property as JSON, as other replicas are to know it. Changes held back
  /// by a minimum sync interval are not included.
  package final func currentJSON(of property: ModelSchema.Property) -> JSONValue {
    record?.heldBackBase(of: property) ?? json(of: property)
  }

  /// Returns add fragments for the model and all models below it, depth first, as other replicas
  /// are to know them.
  package final func subtreeFragments() -> [SyncFragment] {
    ensureRecord().subtreeFragments(withHeldBack: false)
  }

  /// Returns every synced property with its value, as other replicas are to know it.
  package final func currentProperties() -> JSONObject {
    ensureRecord().syncedProperties(withHeldBack: false)
  }
}
