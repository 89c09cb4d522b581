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
  /// What each fragment replaces, in the order of the fragments; nothing for an addition.
  let replaced: [Replaced]
  /// Who made the changes, if anybody has said so.
  public let author: String?
  /// What the changes were made for, in words, if anybody has said so.
  public let message: String?

  /// Values and operations that take the properties of one model from one state to another.
  struct Replaced: Sendable, Hashable {
    var values = JSONObject()
    var operations = PropertyOperations()

    var isEmpty: Bool { values.isEmpty && operations.isEmpty }
  }

  /// Makes a change set; it gets an id of its own unless one is given.
  ///
  /// - Parameter bases: the values before the set, of every property that a change fragment names.
  public init(
    id: UUID? = nil, fragments: [SyncFragment], bases: [UUID: JSONObject], author: String? = nil,
    message: String? = nil
  ) {
    self.init(
      id: id, fragments: fragments,
      replaced: fragments.map {
        $0.kind == .change ? Replaced(values: bases[$0.uuid] ?? [:]) : Replaced()
      }, author: author, message: message)
  }

  init(
    id: UUID? = nil, fragments: [SyncFragment], replaced: [Replaced], author: String? = nil,
    message: String? = nil
  ) {
    self.id = id ?? .pooled()
    self.fragments = fragments
    self.replaced = replaced
    self.author = author
    self.message = message
  }

  /// The values before the set, of every property whose value a change fragment names. Cost: O(n) in
  /// the fragments.
  public var bases: [UUID: JSONObject] {
    var bases: [UUID: JSONObject] = [:]
    for (fragment, before) in zip(fragments, replaced) where fragment.kind == .change {
      bases[fragment.uuid] = before.values
    }
    return bases
  }

  /// The set with a model called `new` instead of `old`.
  func renaming(_ old: UUID, to new: UUID) -> ChangeSet {
    let fragments = fragments.map { fragment in
      var fragment = fragment
      if fragment.uuid == old { fragment.uuid = new }
      fragment.operations = fragment.operations.renaming(old, to: new)
      return fragment
    }
    return ChangeSet(
      id: id, fragments: fragments, replaced: replaced, author: author, message: message)
  }
}
