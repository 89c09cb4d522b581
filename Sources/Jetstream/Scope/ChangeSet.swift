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
  /// The values that each fragment replaces, in the order of the fragments; none for an addition.
  let replaced: [JSONObject]

  /// Makes a change set; it gets an id of its own unless one is given.
  ///
  /// - Parameter bases: the values before the set, of every property that a change fragment names.
  public init(id: UUID? = nil, fragments: [SyncFragment], bases: [UUID: JSONObject]) {
    self.init(
      id: id, fragments: fragments,
      replaced: fragments.map { $0.kind == .change ? bases[$0.uuid] ?? [:] : [:] })
  }

  init(id: UUID? = nil, fragments: [SyncFragment], replaced: [JSONObject]) {
    self.id = id ?? .pooled()
    self.fragments = fragments
    self.replaced = replaced
  }

  /// The values before the set, of every property that a change fragment names. Cost: O(n) in the
  /// fragments.
  public var bases: [UUID: JSONObject] {
    var bases: [UUID: JSONObject] = [:]
    for (fragment, before) in zip(fragments, replaced) where fragment.kind == .change {
      bases[fragment.uuid] = before
    }
    return bases
  }

  /// The set with a model called `new` instead of `old`.
  func renaming(_ old: UUID, to new: UUID) -> ChangeSet {
    let fragments = fragments.map { fragment in
      var fragment = fragment
      if fragment.uuid == old { fragment.uuid = new }
      return fragment
    }
    return ChangeSet(id: id, fragments: fragments, replaced: replaced)
  }
}
