import Foundation

/// Something that was changed here and does not count, with what counts instead.
///
/// Each property that a change set writes and the server does not take is a conflict of its own, and so is
/// each model that it adds in vain. What was rejected only because of another one of them is not: it is among
/// the ``consequences`` of that one. See ``ConflictLedger``.
public struct Conflict: Sendable, Hashable, Identifiable {
  /// What was to be done.
  public enum Change: Sendable, Hashable {
    /// The property was to have this value.
    case value(JSONValue)
    /// This was to be done to a collection or a counter.
    case operations([PropertyOperation])
    /// The model was to be added, with these values.
    case addition(JSONObject)
  }

  /// Why it does not count.
  public enum Reason: Sendable, Hashable {
    /// The server has rejected it, and says why.
    case rejected(WireError)
    /// The server has taken it and then given the property another value: ``Conflict/theirs``.
    case modified
    /// The server has taken it, and somebody who had not seen it has written the property anew. Where the whole
    /// state of the scope had to be fetched, it is not known what they had seen.
    case overwritten
    /// Somebody else has moved a model of the collection first, or the model would have been lost with the
    /// move. Each other operation of the set on the property counts.
    case moveLost
  }

  /// Tells conflicts apart.
  public let id: UUID
  /// The model that was changed or added.
  public let model: UUID
  /// What its class is called on the wire.
  public let className: String
  /// What the property is called on the wire; nil if the model was added.
  public let property: String?
  /// The value that the property had when it was changed here. Nil for an addition, and where operations
  /// were done to a collection or a counter, which can be done again whatever the value is.
  public let base: JSONValue?
  /// What was to be done.
  public let mine: Change
  /// The value that counts, as of when the server's decision was taken in. Nil if the model is gone, or was
  /// never there.
  public let theirs: JSONValue?
  /// Why it does not count.
  public let reason: Reason
  /// Who has written ``theirs``, if it was written while the set was pending, or over it, and if anybody has
  /// said so: the author of their change set.
  public let theirAuthor: String?
  /// The change set that it was a part of; see ``ChangeSet/id``.
  public let changeSet: UUID
  /// Who has made that set, if anybody has said so.
  public let author: String?
  /// What it was made for, if anybody has said so.
  public let message: String?
  /// The other parts of the change set that were rejected only because this was: the insertion of a
  /// model that was added in vain, or the rest of an atomic set. They have no consequences themselves.
  public internal(set) var consequences: [Conflict] = []

  /// The conflict itself, and its consequences.
  package var parts: [Conflict] { consequences.isEmpty ? [self] : [self] + consequences }

  /// The conflict with the root's new name, in its consequences too.
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
      message: message)
    result.consequences = consequences.map { $0.renaming(renaming) }
    return result
  }

  /// What would do it again.
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
