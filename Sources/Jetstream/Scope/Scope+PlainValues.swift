/// Applying what most change sets of other replicas are: new plain values of one model.
extension Scope {
  /// Applies a single fragment that sets plain values of a model of the scope which has no local changes. No model comes, goes
  /// or is kept with it, so that there is nothing to prepare and nothing to clean up.
  ///
  /// - Returns: the same report as ``apply(_:resettingMissing:)``; nil, having done nothing, for all other fragments.
  func applyPlainValues(_ fragments: [SyncFragment]) -> ApplyReport? {
    guard fragments.count == 1, fragments[0].kind == .change, fragments[0].operations.isEmpty,
      !hasUnknownModels, interval.departed.isEmpty, let model = model(fragments[0].uuid),
      let record = model.record, record.tree === tree, !record.hasBases
    else { return nil }
    let schema = model.schema
    let values = fragments[0].properties.members
    let members = values.span
    var last: ModelSchema.Property?
    for at in members.indices {
      guard let property = schema[wireName: members[at].key], property.kind == .plain,
        property.isSynced
      else { return nil }
      last = property
    }
    schedule.beginApplying()
    interval.othersWrote = true
    var writer: FragmentWriter?
    for at in members.indices {
      // Mostly there is a single one.
      guard let property = members.count == 1 ? last : schema[wireName: members[at].key] else {
        continue
      }
      if writer == nil, !record.isChanged(property.index) {
        let fits = tree.writeRemotely {
          property.access.assign(members[at].value, to: model, at: property.offset)
        }
        if fits { continue }
      }
      // An observer of an earlier value has changed this one, or the value does not fit.
      var rest = writer.take() ?? FragmentWriter(scope: self, alsoKnown: { _ in nil })
      rest.write(members[at].value, to: property, of: model, at: 0)
      writer = rest
    }
    finishApplying()
    return conclude(fragments, writer?.report ?? ApplyReport())
  }
}
