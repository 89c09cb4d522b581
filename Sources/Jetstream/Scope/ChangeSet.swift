import Foundation

/// What happened to a scope in one interval: added models with all their values, changed models with
/// the values that differ. Everything else follows from these.
///
/// A value that can be stored, sent and applied elsewhere.
public struct ChangeSet: Sendable, Hashable {
  /// Tells change sets apart.
  public let id: UUID
  /// Additions in the order in which the models came, then changes in the order in which they began.
  public let fragments: [SyncFragment]
  /// The values before the set, of every property that a change fragment names.
  public let bases: [UUID: JSONObject]

  /// Makes a change set; it gets an id of its own unless one is given.
  public init(id: UUID? = nil, fragments: [SyncFragment], bases: [UUID: JSONObject]) {
    self.id = id ?? .pooled()
    self.fragments = fragments
    self.bases = bases
  }

  /// The set with a model called `new` instead of `old`.
  func renaming(_ old: UUID, to new: UUID) -> ChangeSet {
    var bases = bases
    if let base = bases.removeValue(forKey: old) { bases[new] = base }
    let fragments = fragments.map { fragment in
      var fragment = fragment
      if fragment.uuid == old { fragment.uuid = new }
      return fragment
    }
    return ChangeSet(id: id, fragments: fragments, bases: bases)
  }

  /// The set with other values for the properties that it changes and for which `value` gives one.
  func replacing(_ value: (PropertyKey) -> JSONValue?) -> ChangeSet {
    let fragments = fragments.map { fragment in
      guard fragment.kind == .change else { return fragment }
      var fragment = fragment
      for (key, _) in fragment.properties {
        guard let value = value(PropertyKey(uuid: fragment.uuid, name: key)) else { continue }
        fragment.properties[key] = value
      }
      return fragment
    }
    return ChangeSet(id: id, fragments: fragments, bases: bases)
  }
}
