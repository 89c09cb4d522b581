import Foundation

/// Moving a model within the tree, and from one tree to another.
extension ModelObject {
  /// Removes the model from every property and collection that holds it.
  public final func detach() {
    guard let record else { return }
    Holder.remove(self, from: record.parents.all.compactMap(Holder.init))
  }

}

extension Scope {
  /// Makes `model` the root, with all that it holds: it is taken out of every property and collection outside of its own
  /// tree that holds it, detached from the scope that it is in, and attached to this one.
  ///
  /// Refused, with nothing changed, if the model is the root of another scope, or if something else in another scope
  /// holds a part of what the model holds. Cost: O(n) for the n models.
  func takeRoot(_ model: ModelObject) {
    let (outside, error) = Structure.prepareMove(of: model.ensureRecord(), to: self)
    if let error { return refuse(error) }
    Holder.remove(model, from: outside)
    // Observers of that may have set a root meanwhile.
    if root == nil { setRoot(model, isInitial: false) }
  }
}

/// A property that holds a model. It retains the parent, which observers might otherwise release
/// while the model is removed from one property after the other.
private struct Holder {
  let parent: ModelObject
  let property: ModelSchema.Property

  init?(_ link: ParentLinks.Link) {
    guard let parent = link.parent.model else { return nil }
    self.parent = parent
    property = link.parent.schema.properties[link.index]
  }

  static func remove(_ model: ModelObject, from holders: [Holder]) {
    for holder in holders {
      let (parent, property) = (holder.parent, holder.property)
      if property.kind == .collection {
        property.access.edit(parent, at: property.offset) { list in
          if let position = list.index(of: model) { list.remove(at: position) }
        }
      } else if parent.child(of: property) === model {
        _ = property.access.assign(nil as ModelObject?, to: parent, at: property.offset)
      }
    }
  }
}

extension Structure {
  /// Returns the properties outside of the tree below `top` that hold `top`, and the reason why the
  /// tree cannot move to `scope`, if there is one. Changes nothing. Cost: O(n).
  fileprivate static func prepareMove(
    of top: ModelRecord, to scope: Scope
  ) -> (outside: [Holder], error: ScopeError?) {
    var tree: Set<ObjectIdentifier> = [ObjectIdentifier(top)]
    var records: ContiguousArray<ModelRecord> = [top]
    var next = 0
    while next < records.count {
      records[next].forEachChild { child, _ in
        let below = child.ensureRecord()
        if tree.insert(ObjectIdentifier(below)).inserted { records.append(below) }
      }
      next += 1
    }
    let outside = top.parents.all.filter { !tree.contains(ObjectIdentifier($0.parent)) }
      .compactMap(Holder.init)
    var uuids: Set<UUID> = []
    for record in records {
      if !uuids.insert(record.uuid).inserted {
        return (outside, .duplicateUUID(className: record.schema.wireName, model: record.uuid))
      }
      guard let other = record.scope else { continue }
      var stays = other.isRoot(record)
      if record !== top {
        record.parents.forEach { link in
          if link.parent.scope != nil, !tree.contains(ObjectIdentifier(link.parent)) {
            stays = true
          }
        }
      }
      if stays {
        return (
          outside,
          .modelInTwoScopes(
            className: record.schema.wireName, model: record.uuid, scope: other.name,
            other: scope.name)
        )
      }
    }
    return (outside, nil)
  }
}
