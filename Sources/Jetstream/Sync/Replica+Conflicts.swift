import Foundation

/// The conflicts that result when changes of this replica are rejected, modified or overwritten.
extension Replica {
  /// Returns the server's replies to the pending change sets that it has decided, also by the resume point of a state that
  /// is on its way, by their numbers. What the session alone has brought goes with it.
  func decidedReplies() -> [Int: [FragmentReply]] {
    var replies: [Int: [FragmentReply]] = [:]
    for entry in pending where entry.isDecided { replies[entry.number] = entry.repliesAtPlace }
    guard let standing = session.stateStanding else { return replies }
    noteForeignDecisions(in: standing)
    for decision in decided(by: standing) { replies[decision.number] = decision.fragmentReplies }
    return replies
  }

  /// Returns the conflicts of all pending change sets but calls: of those with `decided` replies what the server has
  /// rejected or modified, of the others everything, as if it had rejected them with `error`. The changes of a call are a
  /// guess, which must not be written again as such. A change set that another client of the scope has, too, may still be
  /// decided.
  func pendingConflicts(_ error: WireError, decided: [Int: [FragmentReply]]) -> [Conflict] {
    var parts: [LostChanges.Part] = []
    for entry in pending where entry.set.arguments == nil {
      let decision = decided[entry.number]
      if decision == nil, entry.shared.claims > 1 { continue }
      let replies = decision ?? entry.replies(error)
      for (position, reply) in zip(entry.set.fragments.indices, replies) {
        let cause = decision == nil ? nil : replies.cause(of: position)
        parts += lost(at: position, of: entry.set, by: reply, cause: cause)
      }
    }
    return conflicts(parts)
  }

  /// Returns the parts that the server's decision rejects or modifies of the fragment at a position of a change set.
  func lost(
    at position: Int, of set: ChangeSet, by reply: FragmentReply, cause: Int?
  ) -> [LostChanges.Part] {
    let fragment = set.fragments[position]
    var result: [LostChanges.Part] = []
    func note(_ property: String?, _ reason: Conflict.Reason) {
      var lost = LostChanges.Part(
        set: set, fragment: fragment, property: property, reason: reason, position: position,
        cause: cause)
      lost.theirAuthor = lost.name.flatMap(overlay.author)
      result.append(lost)
    }
    if let error = reply.error {
      if fragment.kind == .add {
        note(nil, .rejected(error))
      } else {
        for (key, _) in fragment.properties { note(key, .rejected(error)) }
        for entry in fragment.operations { note(entry.key, .rejected(error)) }
      }
      return result
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
    return result
  }

  /// A fragment of a decided change set.
  private struct Place: Hashable {
    let set: UUID
    let position: Int
  }

  /// Returns the conflicts for lost parts, with the values that count after the batch. A part that was rejected
  /// because of another fragment becomes a consequence of that fragment's first conflict, unless that conflict has
  /// been settled since.
  func conflicts(_ lost: [LostChanges.Part]) -> [Conflict] {
    // The inverse of the change set that was looked at last.
    var undo: (set: UUID, changes: [UUID: SyncFragment])?
    // Thousands of parts may be of one collection, whose elements their conflicts share.
    var confirmed: [PropertyKey: JSONValue?] = [:]
    func theirs(_ name: PropertyKey) -> JSONValue? {
      if let known = confirmed[name] { return known }
      let value = confirmedValue(of: name)
      confirmed.updateValue(value, forKey: name)
      return value
    }
    func conflict(_ lost: LostChanges.Part) -> Conflict {
      if undo?.set != lost.set.id {
        let changes = lost.set.undo.lazy.filter { $0.kind == .change }.map { ($0.uuid, $0) }
        undo = (lost.set.id, Dictionary(changes, uniquingKeysWith: { first, _ in first }))
      }
      return self.conflict(
        lost, before: undo?.changes[lost.fragment.uuid], theirs: lost.name.flatMap(theirs))
    }
    guard lost.contains(where: { $0.cause != nil }) else { return lost.map(conflict) }
    func place(_ lost: LostChanges.Part, _ position: Int?) -> Place? {
      position.map { Place(set: lost.set.id, position: $0) }
    }
    let known = Set(lost.lazy.filter { $0.cause == nil }.compactMap { place($0, $0.position) })
    var result: [Conflict] = []
    var causes: [Place: Int] = [:]
    var consequences: [(cause: Place, lost: LostChanges.Part)] = []
    for lost in lost {
      if let cause = place(lost, lost.cause), known.contains(cause) {
        consequences.append((cause, lost))
        continue
      }
      if let own = place(lost, lost.position), causes[own] == nil { causes[own] = result.count }
      result.append(conflict(lost))
    }
    for (cause, lost) in consequences {
      if let at = causes[cause] { result[at].consequences.append(conflict(lost)) }
    }
    return result
  }

  private func conflict(
    _ lost: LostChanges.Part, before: SyncFragment?, theirs: JSONValue?
  ) -> Conflict {
    let fragment = lost.fragment
    let name = lost.name
    let value = name.flatMap { fragment.properties[$0.name] }
    return Conflict(
      id: .pooled(), model: fragment.uuid, className: fragment.className, property: lost.property,
      base: name.flatMap { before?.properties[$0.name] },
      mine: name.map { name in
        value.map { .value($0) } ?? .operations(fragment.operations[name.name])
      } ?? .addition(fragment.properties),
      theirs: theirs, reason: lost.reason, theirAuthor: lost.theirAuthor,
      changeSet: lost.set.id, author: lost.set.author, message: lost.set.message,
      isAtomic: lost.set.isAtomic && !lost.set.isInitialContent)
  }

  /// Returns the value of a property without pending or unsealed changes; nil if its model is gone.
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
