import Foundation

/// The changes of a scope in one interval, or in one call of ``Scope/modify(_:author:_:)``: added models with all
/// their values, and changed models with the values that differ. Everything else follows from these: a model is
/// removed when no property refers to it any more.
///
/// Changes of collections and counters are operations, so the size of a change set does not depend on the size of
/// the content.
///
/// A value that can be stored, sent and applied elsewhere.
public struct ChangeSet: Sendable, Hashable {
  /// The identity of the change set.
  public let id: UUID
  /// The changes: additions in the order in which the models entered the scope, then changes in the order in which
  /// they began.
  public var fragments: [SyncFragment] { content.fragments }
  /// The changes that undo this change set: models that left the scope with it as additions with their last shared
  /// values, then for each change in ``fragments`` one that restores the old values, in the same order.
  ///
  /// The additions include models that this change set adds although other replicas know them, such as those that
  /// have been in another scope meanwhile, with their earlier values. Models that have left are included only if
  /// ``Scope/keepsRemovedModels`` is true.
  ///
  /// Cost: O(n) in the fragments.
  package var undo: [SyncFragment] { content.undoing }
  let content: Content
  private var box = LabelBox.none
  /// The author of the changes; see ``Scope/modify(_:author:_:)``. Nil if none was named.
  public internal(set) var author: String? {
    get { box.labels.author }
    set { box.labels.author = newValue }
  }
  /// A description of the purpose of the changes. Nil if none was given.
  public internal(set) var message: String? {
    get { box.labels.message }
    set { box.labels.message = newValue }
  }
  /// The time of the changes, in whole milliseconds. Nil unless it was set, as by a ``FragmentLog``.
  public internal(set) var date: Date? {
    didSet { date = date.map(\.inWholeMilliseconds) }
  }
  /// True if the server must accept all fragments or none.
  package internal(set) var isAtomic = false
  /// The name of the server procedure that handles the change set; nil if it is for none.
  package internal(set) var procedure: String? {
    get { box.labels.procedure }
    set { box.labels.procedure = newValue }
  }
  /// The arguments of the procedure, if it is one that is called with some.
  package internal(set) var arguments: JSONValue? {
    get { box.labels.arguments }
    set { box.labels.arguments = newValue }
  }
  /// True for what a procedure has done for a client, on the server.
  package var isForClient: Bool {
    get { box.labels.isForClient }
    set { box.labels.isForClient = newValue }
  }
  /// The part that the change set has in an ``UndoHistory``.
  package internal(set) var purpose: Purpose {
    get { box.labels.purpose }
    set { box.labels.purpose = newValue }
  }

  /// Makes a change set. It gets a new id unless one is given.
  package init(
    id: UUID? = nil, fragments: [SyncFragment], undo: [SyncFragment], author: String? = nil,
    message: String? = nil, date: Date? = nil, isAtomic: Bool = false, procedure: String? = nil,
    arguments: JSONValue? = nil, purpose: Purpose = .edit
  ) {
    self.id = id ?? .pooled()
    content = Content(fragments: fragments, undo: .fragments(undo))
    box.labels = Labels(
      author: author, message: message, procedure: procedure, arguments: arguments,
      purpose: purpose)
    self.date = date.map(\.inWholeMilliseconds)
    self.isAtomic = isAtomic
  }

  /// Makes a change set with the identity and the labels of another one, or with a new identity and no labels.
  init(_ fragments: [SyncFragment], undo: Undo, like other: ChangeSet?) {
    id = other?.id ?? .pooled()
    content = Content(fragments: fragments, undo: undo)
    box = other?.box ?? .none
    date = other?.date
    isAtomic = other?.isAtomic ?? false
  }

  /// Makes a change set of changes that all name values.
  ///
  /// - Parameters:
  ///   - id: the identity of the change set; a new one by default.
  ///   - fragments: the changes.
  ///   - bases: the values before the change set, for every property that a change names.
  ///   - author: the author of the changes.
  ///   - message: the purpose of the changes.
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

  /// The change set that undoes this one. The inverse of the inverse does the same as this one.
  ///
  /// Like any change set it can be applied, stored and sent. It takes no account of later changes; to undo changes
  /// and keep later ones, see ``UndoHistory``.
  public var inverse: ChangeSet { ChangeSet(fragments: undo, undo: fragments) }

  /// The values before the change set, for every property whose value a change names, by model. Cost: O(n) in the
  /// fragments.
  package var bases: [UUID: JSONObject] {
    var bases: [UUID: JSONObject] = [:]
    for fragment in undo where fragment.kind == .change {
      bases[fragment.uuid] = fragment.properties
    }
    return bases
  }

  /// Returns the change set with other content and the same identity and labels.
  func with(_ fragments: [SyncFragment], undo: [SyncFragment]) -> ChangeSet {
    ChangeSet(fragments, undo: .fragments(undo), like: self)
  }
}

extension ChangeSet {
  /// Makes the change set that leads from one full state of a scope to another: models that only the second state
  /// has as additions, and the values that differ. Its ``inverse`` leads back.
  ///
  /// It contains values only: a collection that differs is named as a whole. Cost: O(n) in both states.
  ///
  /// - Parameters:
  ///   - old: a ``Scope/fullState()``.
  ///   - new: another one, with the same root.
  package init(from old: [SyncFragment], to new: [SyncFragment]) {
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
      let now = fragment.properties
      fragment.properties = JSONObject(
        now.lazy.filter { !before.properties[$0.key].isWritten(as: $0.value) }
          .map { ($0.key, $0.value) })
      // A state has the entries of dictionaries that there are.
      for (key, _) in before.properties where now[key] == nil && EntryName.mayBeEntry(key) {
        fragment.properties[key] = .null
      }
      if fragment.properties.isEmpty { continue }
      changes.append(fragment)
    }
    return additions + changes
  }
}

extension Date {
  /// The milliseconds since 1970, limited to what a date keeps exactly.
  var milliseconds: Double {
    let limit = 1e15
    let exact = (timeIntervalSince1970 * 1000).rounded()
    return exact.isNaN ? 0 : min(max(exact, -limit), limit)
  }

  /// The date rounded to milliseconds, so that JSON gives it back unchanged.
  fileprivate var inWholeMilliseconds: Date {
    Date(timeIntervalSince1970: milliseconds / 1000)
  }
}
