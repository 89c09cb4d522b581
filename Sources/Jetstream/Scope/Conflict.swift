import Foundation

/// A local change that the server did not accept as it was, together with the value that counts instead.
///
/// Each property that a change set writes and that the server rejects or overwrites is a conflict of its own, and
/// so is each model whose addition is rejected. A change that was rejected only because of another one is not: it
/// is among the ``consequences`` of that one. See ``ConflictLedger``.
public struct Conflict: Sendable, Hashable, Identifiable {
  /// The local change that is in conflict.
  public enum Change: Sendable, Hashable {
    /// The property was set to this value.
    case value(JSONValue)
    /// These operations were applied to a collection or a counter.
    case operations([PropertyOperation])
    /// The model was added with these values.
    case addition(JSONObject)
  }

  /// The reason why a local change does not count.
  public enum Reason: Sendable, Hashable {
    /// The server rejected the change with this error, or the syncing of the scope has ended before it decided: with the
    /// server's error for the scope, or with one of the type `session-ended`. The scope then shows the local change.
    case rejected(WireError)
    /// The server accepted the change and then gave the property another value: ``Conflict/theirs``.
    case modified
    /// The server accepted the change, and another replica that had not seen it has overwritten the property. After
    /// the full state of the scope had to be fetched, it is unknown what the other replica had seen.
    case overwritten
    /// Another replica had moved the model out of the collection first, or the move would have made the model
    /// unreachable. The other operations of the change set on the property count.
    case moveLost
  }

  /// The identity of the conflict in this process.
  public let id: UUID
  /// The UUID of the model that was changed or added.
  public let model: UUID
  /// The name of the model's class on the wire.
  public let className: String
  /// The name of the property on the wire; nil if the model was added.
  public let property: String?
  /// The value that the property had before the local change. Nil for an addition, and for operations on a
  /// collection or a counter, which can be applied again to any value.
  public let base: JSONValue?
  /// The local change.
  public let mine: Change
  /// The value that counts, as of the moment when the server's decision was applied here. Nil if the model is gone
  /// or was never there.
  public let theirs: JSONValue?
  /// The reason why the local change does not count.
  public let reason: Reason
  /// The author of the change set that wrote ``theirs``, if that change set names one. Nil if the value is older
  /// than the local change.
  public let theirAuthor: String?
  /// The ``ChangeSet/id`` of the change set that contained the local change.
  public let changeSet: UUID
  /// The author of that change set, if it names one.
  package let author: String?
  /// The message of that change set, if it has one.
  public let message: String?
  /// The other parts of the change set that were rejected only because this change was: the insertion of a model
  /// whose addition was rejected, for instance, or the rest of an atomic change set. They have no consequences
  /// themselves.
  public internal(set) var consequences: [Conflict] = []
  /// True if the server accepts that change set as a whole or not at all; then a retry is atomic.
  var isAtomic = false

  /// The conflict followed by its consequences.
  package var parts: [Conflict] { consequences.isEmpty ? [self] : [self] + consequences }

  /// Returns the conflict, and its consequences, with the root's new UUID.
  func renaming(_ renaming: RootRenaming) -> Conflict {
    let fragment = renaming(fragment)
    let change: Change =
      switch mine {
      case .value: .value(property.flatMap { fragment.properties[$0] } ?? .null)
      case .operations: .operations(property.map { fragment.operations[$0] } ?? [])
      case .addition: .addition(fragment.properties)
      }
    var result = Conflict(
      id: id, model: fragment.uuid, className: className, property: property,
      base: base.map { renaming($0) }, mine: change, theirs: theirs.map { renaming($0) },
      reason: reason, theirAuthor: theirAuthor, changeSet: changeSet, author: author,
      message: message, isAtomic: isAtomic)
    result.consequences = consequences.map { $0.renaming(renaming) }
    return result
  }

  /// The fragment that makes the local change again.
  var fragment: SyncFragment {
    switch mine {
    case .addition(let properties):
      SyncFragment(.add, uuid: model, className: className, properties: properties)
    case .value(let value):
      SyncFragment(
        .change, uuid: model, className: className, properties: property.map { [$0: value] } ?? [:])
    case .operations(let operations):
      SyncFragment(
        .change, uuid: model, className: className, properties: [:],
        operations: property.map { [$0: operations] } ?? [:])
    }
  }
}
