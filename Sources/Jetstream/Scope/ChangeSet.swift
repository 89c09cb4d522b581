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
  /// Who made the changes, if anybody has said so.
  public let author: String?
  /// What the changes were made for, in words, if anybody has said so.
  public let message: String?

  /// Makes a change set; it gets an id of its own unless one is given.
  public init(
    id: UUID? = nil, fragments: [SyncFragment], bases: [UUID: JSONObject], author: String? = nil,
    message: String? = nil
  ) {
    self.id = id ?? .pooled()
    self.fragments = fragments
    self.bases = bases
    self.author = author
    self.message = message
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
    return ChangeSet(
      id: id, fragments: fragments, bases: bases, author: author, message: message)
  }
}
