/// Applying what most change sets of other replicas are: new plain values of one model.
extension Scope {
  /// Applies a single fragment that sets plain values of a model of the scope which has no local changes. No model comes, goes
  /// or is kept with it, so that there is nothing to prepare and nothing to clean up.
  ///
  /// - Returns: the same report as ``apply(_:resettingMissing:)``; nil, having done nothing, for all other fragments.
  package func applyPlainValues(_ fragments: [SyncFragment]) -> ApplyReport? {
    guard fragments.count == 1, fragments[0].kind == .change, fragments[0].operations.isEmpty,
      !hasUnknownModels, interval.departed.isEmpty,
      let record = tree.record(of: fragments[0].uuid), record.tree === tree, !record.hasBases,
      let model = record.model
    else { return nil }
    let schema = record.schema
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
    var report = ApplyReport()
    for at in members.indices {
      // Mostly there is a single one.
      guard let property = members.count == 1 ? last : schema[wireName: members[at].key] else {
        continue
      }
      if !record.isChanged(property.index) {
        let fits = tree.writeRemotely {
          property.access.assign(members[at].value, to: model, at: property.offset)
        }
        if fits { continue }
      }
      // An observer of an earlier value has changed this one, or the value does not fit.
      report = write(values[at...], to: model, schema)
      break
    }
    finishApplying()
    return conclude(fragments, report)
  }

  /// Writes plain values of which not all can be written over what is there.
  @inline(never)
  private func write(
    _ values: ArraySlice<JSONObject.Member>, to model: ModelObject, _ schema: ModelSchema
  ) -> ApplyReport {
    var writer = FragmentWriter(scope: self, alsoKnown: { _ in nil })
    for member in values {
      guard let property = schema[wireName: member.key] else { continue }
      writer.write(member.value, to: property, of: model, at: 0)
    }
    return writer.report
  }
}
