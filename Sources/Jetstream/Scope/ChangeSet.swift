import Foundation

/// What happened to a scope in one interval: added models with all their values, changed models with
/// the values that differ. Everything else follows from these.
///
/// Of a collection, and of a counter, the set says what was done to it, as operations; so what a change
/// costs does not depend on how much there is.
///
/// A value that can be stored, sent and applied elsewhere.
public struct ChangeSet: Sendable, Hashable {
  /// Tells change sets apart.
  public let id: UUID
  /// Additions in the order in which the models came, then changes in the order in which they began.
  public let fragments: [SyncFragment]
  /// What takes the set back: models that have left the scope with it as additions, with the values that
  /// the others know, then for each change one that leads to the old values, in the same order.
  public let undo: [SyncFragment]
  /// Who made the changes, if anybody has said so.
  public let author: String?
  /// What the changes were made for, in words, if anybody has said so.
  public let message: String?

  /// Makes a change set; it gets an id of its own unless one is given.
  public init(
    id: UUID? = nil, fragments: [SyncFragment], undo: [SyncFragment], author: String? = nil,
    message: String? = nil
  ) {
    self.id = id ?? .pooled()
    self.fragments = fragments
    self.undo = undo
    self.author = author
    self.message = message
  }

  /// Makes a change set whose changes all name values.
  ///
  /// - Parameter bases: the values before the set, of every property that a change fragment names.
  public init(
    id: UUID? = nil, fragments: [SyncFragment], bases: [UUID: JSONObject], author: String? = nil,
    message: String? = nil
  ) {
    let undo = fragments.compactMap { fragment -> SyncFragment? in
      guard fragment.kind == .change, let values = bases[fragment.uuid] else { return nil }
      return SyncFragment(
        .change, uuid: fragment.uuid, className: fragment.className, properties: values)
    }
    self.init(id: id, fragments: fragments, undo: undo, author: author, message: message)
  }

  /// The set that takes this one back. Its own inverse does the same as this one.
  ///
  /// Like any set it can be applied, stored and sent. What others have done since, it does not know of:
  /// to take changes back that keep what came later, see ``UndoHistory``.
  public var inverse: ChangeSet { ChangeSet(fragments: undo, undo: fragments) }

  /// The values before the set, of every property whose value a change fragment names. Cost: O(n) in
  /// the fragments.
  public var bases: [UUID: JSONObject] {
    var bases: [UUID: JSONObject] = [:]
    for fragment in undo where fragment.kind == .change {
      bases[fragment.uuid] = fragment.properties
    }
    return bases
  }

  /// The set with these words on it.
  func signed(author: String?, message: String?) -> ChangeSet {
    ChangeSet(id: id, fragments: fragments, undo: undo, author: author, message: message)
  }

  /// The set with a model called `new` instead of `old`.
  func renaming(_ old: UUID, to new: UUID) -> ChangeSet {
    func renamed(_ fragment: SyncFragment) -> SyncFragment {
      var fragment = fragment
      if fragment.uuid == old { fragment.uuid = new }
      fragment.operations = fragment.operations.renaming(old, to: new)
      return fragment
    }
    return ChangeSet(
      id: id, fragments: fragments.map(renamed), undo: undo.map(renamed), author: author,
      message: message)
  }
}
