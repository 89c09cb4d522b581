import Foundation

/// The client identity under which a replica numbers its change sets.
///
/// A replica with a log has its own identity. The others have that of the client, until the server says that a number of
/// theirs stands for another change set, because this client, or another one with the same identity, was restored from a
/// copy. Then that replica takes a new identity, and sends under it what the server has not decided. The server says so
///
/// - in its reply to a change set;
/// - in a resume point that decides one which was never sent, or has a higher number than any that the replica has
///   given, also if it is forgotten how. So a copy mostly takes another identity before it sends anything. A replica
///   whose log has lost its last change sets, although they were reported as durable, does the same: it gets them like
///   those of other clients;
/// - in a resume point that decides one whose checksum differs. If two copies are connected at the same time, both may
///   give a number before either hears of the other, and the session may be lost together with the reply.
///   That is not found out once the other copy has said that it knows the decisions of dozens more: the server keeps
///   the checksums of the last ones only.
///
/// A server recognizes a change set by identity and number, so one that is on its way, or whose decision the replica
/// does not know, must not be sent under another identity: it would be applied twice. So the replicas of other scopes
/// keep theirs, and all decisions that came before the server's refusal are handled first, also while the scope holds back
/// what comes in.
extension Replica {
  /// Takes over the client identity under which change sets are numbered from now on, and the root's UUID, if there
  /// is no state yet.
  func take(_ client: UUID, root: UUID) {
    request.clientID = client
    if !progress.hasBase, scope.root?.uuid != root { scope.renameRoot(to: root) }
  }

  /// Takes another client identity under which change sets are numbered from now on, and records it.
  func takeNewIdentity(_ client: UUID) {
    request.clientID = client
    // Whatever it has decided of these, it has done so under the other identity.
    for at in pending.indices where !pending[at].isDecided { pending[at].isUnknownToServer = true }
    guard let root = scope.root else { return }
    keep(.named(client: client, root: root.uuid))
    sendBehindRecords()
  }

  /// Notes that the server does not know the change set in a message, since it has refused its number: also if the session
  /// ends before the replica takes another identity.
  func noteRefusal(of messageIndex: Int) {
    if let at = pending.place(sentIn: messageIndex) { pending[at].isUnknownToServer = true }
  }

  /// Notes if the server has decided numbers of change sets that it does not know, or numbers that were never given:
  /// they stand for others.
  func noteReusedNumbers(in standing: ScopeStanding) {
    let last = standing.lastNumber
    let decided = pending[..<pending.place(after: last)]
    if last > pending.lastNumber || decided.contains(where: \.isUnknownToServer) {
      session.needsNewIdentity = true
    }
  }

  /// Notes which change sets the server does not know, although it has decided something under their numbers: from the
  /// first one on whose decision is about another change set. The server decides none behind one that it refuses
  /// because of its number.
  func noteForeignDecisions(in standing: ScopeStanding) {
    let first = standing.decisions.lazy.compactMap { [self] decision in
      pending.place(of: decision.number).flatMap { isForeign(decision, to: pending[$0]) ? $0 : nil }
    }.first
    guard let first else { return }
    for at in first..<pending.count where !pending[at].isDecided {
      pending[at].isUnknownToServer = true
    }
  }

  /// Returns true if a decision under the number of a pending change set is about another change set.
  private func isForeign(_ decision: ScopeStanding.Decision, to entry: PendingEntry) -> Bool {
    // Initial content may have been sent without the parts for which a state had content that is not in the log.
    guard let told = decision.checksum, !entry.isDecided, !entry.set.isInitialContent,
      let own = checksum(of: entry.set)
    else { return false }
    return own != told
  }

  /// Returns the checksum by which the server tells a change set from others with the same number; nil if it could not
  /// read the change set. It calculates the checksum of what it has read, in which numbers may have another text.
  private func checksum(of set: ChangeSet) -> UInt32? {
    var sync = ScopeSync(
      scopeIndex: 0, fragments: dialect.dateForm.applied(to: set.fragments, in: scope))
    sync.arguments = set.arguments
    let frame = Message.encodeFrame([.scopeSync(sync)], asArray: false)
    let messages = try? Message.decodeFrame(frame, limits: .trusted)
    guard case .success(.scopeSync(let read))? = messages?.first else { return nil }
    return FragmentsText(checksumming: read.fragments).checksum(with: read.arguments)
  }

  /// Returns true for a reply of the server which says that the number of a change set stands for another one.
  func refusesNumber(_ replies: [FragmentReply], _ outcome: CallOutcome?) -> Bool {
    if dialect.isOfValues { return false }
    let type = WireError.setNumberReused(0).type
    return outcome?.error?.type == type || replies.contains { $0.error?.type == type }
  }
}

extension ClientEngine {
  /// Gives new client identities to the replicas whose numbers stand for other change sets, and begins another session.
  /// Scopes that are fetched from now on have the new identity, too.
  ///
  /// While a frame is handled, this waits for its end: the frame may have refusals and decisions of other scopes, which
  /// would be lost with the session.
  func takeNewIdentities() {
    if isReceiving { return }
    let affected = replicas.filter(\.session.needsNewIdentity)
    if affected.isEmpty { return }
    // First everything waits again. Then it waits for the record, too: another process must know the new identity.
    loseSession()
    for replica in affected {
      let (old, new) = (replica.request.clientID, configuration.makeClientID())
      if configuration.clientID == old { configuration.clientID = new }
      replica.takeNewIdentity(new)
    }
    retry(reason: "the server knows other change sets of this client")
  }
}
