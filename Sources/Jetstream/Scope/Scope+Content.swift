/// Making a change set of content that did not change.
extension Scope {
  /// Makes the next change set contain everything in the scope, as if it had been written into an empty scope just
  /// now: the models under the root as new, and the values of the root that differ from the defaults of its class.
  /// Observers are not called, since no value changes. Cost: O(models).
  ///
  /// - Precondition: this is not called within ``modify(_:author:_:)``.
  package func collectContent() {
    requireNoModification("asked for a change set of all its content")
    guard let root = tree.rootRecord, let model = root.model else { return }
    root.dropBases()
    for property in root.schema.properties where property.isSynced {
      if property.areSame(model.currentJSON(of: property), property.defaultValue) { continue }
      let empty: ModelRecord.Base.Value =
        switch property.kind {
        case .collection: .list(ModelList())
        case .dictionary: .table(ModelTable())
        case .plain, .model, .reference: .json(property.defaultValue)
        }
      root.keepBase(property.index, empty)
    }
    // Depth first, each model once.
    var seen: Set<ObjectIdentifier> = [ObjectIdentifier(root)]
    var open: ContiguousArray<ModelRecord> = [root]
    while let record = open.popLast() {
      if record !== root { becomeNew(record) }
      var below: ContiguousArray<ModelRecord> = []
      record.forEachChild { child, _ in
        guard let child = child.record, child.tree === tree,
          seen.insert(ObjectIdentifier(child)).inserted
        else { return }
        below.append(child)
      }
      open += below.reversed()
    }
    startCollecting()
  }

  private func becomeNew(_ record: ModelRecord) {
    if record.isNew { return }
    record.dropBases()
    record.isNew = true
    interval.entered.append(record)
  }
}
