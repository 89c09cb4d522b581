import Foundation

/// The difference between two states of a scope: models that only one of them has, and properties with other values.
package struct RowDifference: Sendable {
  /// A model that both states have, with other values.
  package struct Change: Sendable, Hashable {
    /// The model.
    package let uuid: UUID
    /// The name of its class on the wire.
    package let className: String
    /// The properties that differ, in the order in which the later state has them.
    package fileprivate(set) var properties: [Property]
  }

  /// A property with other values in the two states.
  package struct Property: Sendable, Hashable {
    /// The name of the property on the wire.
    package let key: String
    /// The earlier value; nil if there was none.
    package let before: JSONValue?
    /// The later value; nil if there is none.
    package fileprivate(set) var after: JSONValue?
  }

  /// The state that the difference departs from.
  package let old: FragmentRows
  /// The state that it leads to.
  package let new: FragmentRows
  /// The models that only the later state has, as additions.
  package let added: [SyncFragment]
  /// The models that only the earlier state has, as additions with their last values.
  package let removed: [SyncFragment]
  /// The models that both states have, with what differs.
  package let changed: [Change]

  /// True if both states are the same.
  package var isEmpty: Bool { added.isEmpty && removed.isEmpty && changed.isEmpty }

  /// Compares two states. That a client has learned another UUID of the root is no difference. Cost: O(n) in both.
  package init(from old: FragmentRows, to new: FragmentRows) {
    var old = old
    if let root = new.root { old.renameRoot(to: root) }
    (self.old, self.new) = (old, new)
    let set = ChangeSet(from: old.fullState(), to: new.fullState())
    added = set.fragments.filter { $0.kind == .add }
    removed = set.undo.filter { $0.kind == .add }
    var changed: [Change] = []
    var places: [UUID: Int] = [:]
    for fragment in (set.fragments + set.undo) where fragment.kind == .change {
      guard places[fragment.uuid] == nil else { continue }
      places[fragment.uuid] = changed.count
      changed.append(Change(uuid: fragment.uuid, className: fragment.className, properties: []))
    }
    for fragment in set.fragments where fragment.kind == .change {
      guard let place = places[fragment.uuid] else { continue }
      for (key, value) in fragment.properties {
        let before = old[fragment.uuid]?.properties[key]
        changed[place].properties.append(Property(key: key, before: before, after: value))
      }
    }
    for fragment in set.undo where fragment.kind == .change {
      guard let place = places[fragment.uuid] else { continue }
      for (key, value) in fragment.properties where new[fragment.uuid]?.properties[key] == nil {
        changed[place].properties.append(Property(key: key, before: value, after: nil))
      }
    }
    self.changed = changed
  }

  /// The difference as JSON: `added` and `removed` as arrays of fragments, `changed` with the values `before` and `after`
  /// of each property; one of them is left out where there is none.
  package var json: JSONValue {
    [
      "added": .array(added.map(\.json)), "removed": .array(removed.map(\.json)),
      "changed": .array(
        changed.map { change in
          let properties = change.properties.map { property -> (String, JSONValue) in
            var values = JSONObject()
            values["before"] = property.before
            values["after"] = property.after
            return (property.key, .object(values))
          }
          return [
            "uuid": .string(change.uuid.wireText), "clsName": .string(change.className),
            "properties": .object(JSONObject(properties)),
          ]
        }),
    ]
  }
}
