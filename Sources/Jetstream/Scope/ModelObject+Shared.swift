import Foundation

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

  /// Returns the model as other replicas are to know it.
  package final func sharedFragment(_ kind: SyncFragment.Kind) -> SyncFragment {
    ensureRecord().addFragment(kind, withHeldBack: false)
  }

  /// Calls `body` with each model that a synced property holds, in order.
  package final func forEachSharedChild(_ body: (UUID) -> Void) {
    let record = ensureRecord()
    record.forEachChild { child, index in
      if record.schema.properties[index].isSynced { body(child.uuid) }
    }
  }

  /// Calls `body` with the model, with those that its synced properties hold here or at other replicas, and with every UUID
  /// in its unknown properties. Makes no JSON of its values.
  package final func forEachName(_ body: (UUID) -> Void) {
    body(uuid)
    forEachSharedChild(body)
    let record = ensureRecord()
    if record.hasBases { record.forEachKnownChild(body) }
    for value in record.unknown?.values ?? [] { value.forEachUUID(body) }
  }

  /// Returns the models that a collection or a dictionary holds; of any other property, none.
  package final func models(in property: ModelSchema.Property) -> [UUID] {
    switch property.kind {
    case .collection: return list(of: property).models.map(\.uuid)
    case .dictionary:
      var result: [UUID] = []
      table(of: property).forEach { result.append($1.uuid) }
      return result
    case .plain, .model, .reference: return []
    }
  }

  /// Returns the number of models that a collection holds.
  package final func modelCount(in collection: ModelSchema.Property) -> Int {
    list(of: collection).count
  }

  /// Returns those of `models` that a collection contains, from front to back, with their places.
  /// Cost: O(sqrt n) for each in a collection of n models; O(n) if this model is in no scope.
  package final func places(
    of models: [UUID], in collection: ModelSchema.Property
  ) -> [(model: UUID, place: PropertyOperation.Place)] {
    let list = list(of: collection)
    let wanted = Set(models)
    let indices: [Int] =
      if let scope {
        wanted.compactMap { scope.model($0).flatMap(list.index) }.sorted()
      } else {
        list.models.indices.filter { wanted.contains(list[$0].uuid) }
      }
    return indices.map { index in
      let before = (max(0, index - CollectionContent.anchorCount)..<index).reversed()
      let place: PropertyOperation.Place =
        index == 0 ? .start : .after(before.map { list[$0].uuid })
      return (list[index].uuid, place)
    }
  }

  /// Returns every synced property with its value, as other replicas are to know it.
  package final func currentProperties() -> JSONObject {
    ensureRecord().syncedProperties(withHeldBack: false)
  }
}
