import Foundation

/// What the app is told of changes of ours that do not count.
extension Replica {
  /// A part of a decided set that does not count.
  struct Lost {
    let set: ChangeSet
    let fragment: SyncFragment
    /// Nil for an addition as a whole.
    let property: String?
    let reason: Conflict.Reason
    /// Who has written what counts instead, as far as anybody has said so.
    var theirAuthor: String?

    var name: PropertyKey? {
      property.map { PropertyKey(uuid: fragment.uuid, name: $0) }
    }
  }

  /// The server has decided about a fragment.
  func noteLost(of fragment: SyncFragment, in set: ChangeSet, by reply: FragmentReply) {
    func note(_ property: String?, _ reason: Conflict.Reason) {
      var lost = Lost(set: set, fragment: fragment, property: property, reason: reason)
      lost.theirAuthor = lost.name.flatMap(overlay.author)
      batch.lost.append(lost)
    }
    if let error = reply.error {
      if fragment.kind == .add { return note(nil, .rejected(error)) }
      for (key, _) in fragment.properties { note(key, .rejected(error)) }
      for entry in fragment.operations { note(entry.key, .rejected(error)) }
      return
    }
    for (key, _) in fragment.properties where reply.modifications?[key] != nil {
      note(key, .modified)
    }
    for entry in fragment.operations {
      if reply.modifications?[entry.key] != nil {
        note(entry.key, .modified)
      } else if reply.lost.contains(entry.key) {
        note(entry.key, .moveLost)
      }
    }
  }

  /// The conflicts, with what counts after the batch.
  func conflicts(_ lost: [Lost]) -> [Conflict] {
    // What leads back of the set that was looked at last.
    var undo: (set: UUID, changes: [UUID: SyncFragment])?
    return lost.map { lost in
      if undo?.set != lost.set.id {
        let changes = lost.set.undo.lazy.filter { $0.kind == .change }.map { ($0.uuid, $0) }
        undo = (lost.set.id, Dictionary(changes, uniquingKeysWith: { first, _ in first }))
      }
      return conflict(lost, before: undo?.changes[lost.fragment.uuid])
    }
  }

  private func conflict(_ lost: Lost, before: SyncFragment?) -> Conflict {
    let fragment = lost.fragment
    let name = lost.name
    let value = name.flatMap { fragment.properties[$0.name] }
    return Conflict(
      id: .pooled(), model: fragment.uuid, className: fragment.className, property: lost.property,
      base: name.flatMap { before?.properties[$0.name] },
      mine: name.map { name in
        value.map { .value($0) } ?? .operations(fragment.operations[name.name])
      } ?? .addition(fragment.properties),
      theirs: name.flatMap(confirmedValue), reason: lost.reason, theirAuthor: lost.theirAuthor,
      changeSet: lost.set.id, author: lost.set.author, message: lost.set.message)
  }

  /// What a property is without anything that is pending, or about to be. Nil if its model is gone.
  private func confirmedValue(of name: PropertyKey) -> JSONValue? {
    guard let model = scope.model(name.uuid), let property = model.schema[wireName: name.name]
    else { return scope.unknownValue(name) }
    if let confirmed = overlay.confirmed(name) { return confirmed.json }
    let record = model.ensureRecord()
    guard property.isCollection else {
      return record.knownJSON(of: property.index) ?? model.json(of: property)
    }
    let now = model.list(of: property)
    return (record.knownLists(of: property.index, now: now).first ?? now).json
  }
}
