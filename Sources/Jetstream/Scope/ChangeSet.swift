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
  ///
  /// Among the additions are also models that the set adds although the others know them, as those that
  /// have been in another scope: with the values from before. Models that have left are in it only if
  /// ``Scope/keepsRemovedModels`` says so.
  package let undo: [SyncFragment]
  /// Who made the changes, if anybody has said so.
  public internal(set) var author: String?
  /// What the changes were made for, in words, if anybody has said so.
  public internal(set) var message: String?
  /// When they were made, to the millisecond, if anybody has said so: a ``FragmentLog`` does.
  public internal(set) var date: Date? {
    didSet { date = date.map(\.inWholeMilliseconds) }
  }
  /// Whether a server has to take all of it or nothing.
  public internal(set) var isAtomic = false
  /// The server's procedure that the set is for, if it is for one.
  public internal(set) var procedure: String?

  /// Makes a change set; it gets an id of its own unless one is given.
  package init(
    id: UUID? = nil, fragments: [SyncFragment], undo: [SyncFragment], author: String? = nil,
    message: String? = nil, date: Date? = nil, isAtomic: Bool = false, procedure: String? = nil
  ) {
    self.id = id ?? .pooled()
    self.fragments = fragments
    self.undo = undo
    self.author = author
    self.message = message
    self.date = date.map(\.inWholeMilliseconds)
    self.isAtomic = isAtomic
    self.procedure = procedure
  }

  /// Makes a change set whose changes all name values.
  ///
  /// - Parameters:
  ///   - id: the set's name; a new one unless given.
  ///   - fragments: the changes.
  ///   - bases: the values before the set, of every property that a change fragment names.
  ///   - author: who makes the changes.
  ///   - message: what they are made for.
  package init(
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
  package var bases: [UUID: JSONObject] {
    var bases: [UUID: JSONObject] = [:]
    for fragment in undo where fragment.kind == .change {
      bases[fragment.uuid] = fragment.properties
    }
    return bases
  }

  /// The set with other content, and everything else as it is.
  func with(_ fragments: [SyncFragment], undo: [SyncFragment]) -> ChangeSet {
    ChangeSet(
      id: id, fragments: fragments, undo: undo, author: author, message: message, date: date,
      isAtomic: isAtomic, procedure: procedure)
  }
}

extension ChangeSet {
  /// What leads from one full state of a scope to another one: models that only the second has as
  /// additions, and the values that differ. ``undo`` leads back.
  ///
  /// Values only: a collection that differs is named as a whole. Cost: O(n) in both.
  ///
  /// - Parameters:
  ///   - old: a ``Scope/fullState()``.
  ///   - new: another one, with the same root.
  public init(from old: [SyncFragment], to new: [SyncFragment]) {
    self.init(
      fragments: Self.differences(from: old, to: new),
      undo: Self.differences(from: new, to: old))
  }

  private static func differences(
    from old: [SyncFragment], to new: [SyncFragment]
  ) -> [SyncFragment] {
    let known = Dictionary(old.map { ($0.uuid, $0) }, uniquingKeysWith: { first, _ in first })
    var additions: [SyncFragment] = []
    var changes: [SyncFragment] = []
    for var fragment in new {
      guard let before = known[fragment.uuid], before.className == fragment.className else {
        fragment.kind = .add
        additions.append(fragment)
        continue
      }
      fragment.kind = .change
      let values = fragment.properties.filter { before.properties[$0.key] != $0.value }
      if values.isEmpty { continue }
      fragment.properties = JSONObject(values.map { ($0.key, $0.value) })
      changes.append(fragment)
    }
    return additions + changes
  }
}

extension Date {
  /// Thousandths of a second since 1970, within what a date keeps exactly.
  var milliseconds: Double {
    let limit = 1e15
    let exact = (timeIntervalSince1970 * 1000).rounded()
    return exact.isNaN ? 0 : min(max(exact, -limit), limit)
  }

  /// The date without what is smaller than a millisecond: one that JSON gives back as it is.
  fileprivate var inWholeMilliseconds: Date {
    Date(timeIntervalSince1970: milliseconds / 1000)
  }
}
