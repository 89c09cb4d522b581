import Foundation

/// Change sets that are sent in several messages. The server's decision about each part counts at the place of its
/// reply, as for a change set of its own: other clients may change the same properties before the next part. The app
/// learns the outcome when the last part is answered.
extension Replica {
  /// Sends a change set through `send`, in as many messages as it takes. The index of the last one becomes that of
  /// the change set.
  func sendParts(
    _ at: Int, _ fragments: [SyncFragment], _ send: (PendingEntry, [SyncFragment]) -> Int
  ) {
    let entry = pending[at]
    guard pending.splits[entry.number] != nil || dialect.splits(entry.set, fragments) else {
      let index = send(entry, fragments)
      pending.noteMessage(index, of: entry.number)
      return
    }
    let parts = pending.splits[entry.number, default: SplitSet()].begin(
      fragments, limit: dialect.fragmentLimit, isStructural: { mayHoldModels($1, of: $0) },
      before: {
        overlay.value(before: entry.number, of: PropertyKey(uuid: $0.uuid, name: $1))?.json
      })
    for (part, fragments) in parts.enumerated() {
      let index = send(entry, fragments)
      // A listener that is told that a frame cannot be sent may end the syncing of the scope.
      guard pending.noteMessage(index, of: entry.number) else { return }
      session.partMessages[index] = (entry.number, part)
    }
  }

  private func mayHoldModels(_ key: String, of fragment: SyncFragment) -> Bool {
    guard let property = scope.schema(of: fragment)?[wireName: key] else { return true }
    return property.isCollection || property.isReference
  }

  /// Handles the reply to a message that has carried a part of a change set.
  ///
  /// - Returns: false, having done nothing, if the message has carried no part.
  func receivePart(_ messageIndex: Int, _ replies: [FragmentReply]) -> Bool {
    guard !session.partMessages.isEmpty,
      let (number, part) = session.partMessages.removeValue(forKey: messageIndex),
      let found = pending.place(of: number)
    else { return false }
    rejectUnanswered(found)
    let entry = pending[0]
    let pieces = pending.splits[number]?.take(part, replies) ?? []
    for piece in pieces { decide(piece, of: entry) }
    if messageIndex == entry.messageIndex {
      conclude(0, pending.splits[number]?.replies() ?? replies, effective: nil)
    }
    return true
  }

  private func decide(_ piece: SetSplitter.Piece, of entry: PendingEntry) {
    guard let split = pending.splits[entry.number] else { return }
    let fragment = entry.set.fragments[piece.origin]
    let reply = split.reply(to: piece.origin)
    var values: JSONObject?
    if piece.fragment.kind == .add {
      decide(addition: fragment, of: entry.number, isAccepted: reply.error == nil)
      values = split.correction(of: piece.origin)
    } else if fragment.kind == .add {
      // The pending values of the addition count already. Other clients may have changed them since.
      guard let have = split.values(of: piece.origin) else { return }
      var complete = JSONObject()
      for (key, value) in piece.fragment.properties
      where piece.isLast || have[key] == value && value == fragment.properties[key] {
        complete[key] = have[key]
      }
      values = complete
    } else if piece.isLast {
      for key in fragment.properties.map(\.key) + fragment.operations.map(\.key) {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        decide(name, className: fragment.className, by: entry.number, reply.error == nil)
      }
      values = reply.modifications
    }
    if let values, !values.isEmpty, reply.error == nil {
      note(
        SyncFragment(
          .change, uuid: fragment.uuid, className: fragment.className, properties: values))
    }
    if piece.isLast { noteSentDates(of: [fragment], [reply]) }
  }
}
