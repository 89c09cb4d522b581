import Foundation

/// Moving a model within the tree, and from one tree to another.
extension ModelObject {
  /// Removes the model from every property and collection that holds it.
  public final func detach() {
    guard let record else { return }
    Holder.remove(self, from: record.parents.all.compactMap(Holder.init))
  }
}

/// A property that holds a model. It retains the parent, which observers might otherwise release
/// while the model is removed from one property after the other.
struct Holder {
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
      } else if property.kind == .dictionary {
        var table = parent.table(of: property)
        for key in table.keys(of: model) { table[key] = nil }
        _ = property.access.assign(table, to: parent, at: property.offset)
      } else if parent.child(of: property) === model {
        _ = property.access.assign(nil as ModelObject?, to: parent, at: property.offset)
      }
    }
  }
}

extension Structure {
  /// Returns the properties outside of the tree below `top` that hold `top`, and the reason why the
  /// tree cannot move to `other`, if there is one. Changes nothing. Cost: O(n).
  static func prepareMove(
    of top: ModelRecord, to other: ModelTree
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
      guard let home = record.tree else { continue }
      var stays = home.isRoot(record)
      if record !== top {
        record.parents.forEach { link in
          if link.parent.tree != nil, !tree.contains(ObjectIdentifier(link.parent)) {
            stays = true
          }
        }
      }
      if stays {
        return (
          outside,
          .modelInTwoScopes(
            className: record.schema.wireName, model: record.uuid, scope: home.name,
            other: other.name)
        )
      }
    }
    return (outside, nil)
  }
}
