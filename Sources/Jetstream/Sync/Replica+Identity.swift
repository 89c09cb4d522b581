import Foundation

/// The client identity under which a replica numbers its change sets.
///
/// A replica with a log has its own identity. The others have that of the client, until the server says that a number of
/// theirs stands for another change set, because this client, or another one with the same identity, was restored from a
/// copy: in its reply to a change set, or in a resume point that decides one which was never sent. Then that replica takes
/// a new identity, and sends under it what the server has not decided.
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
    guard let root = scope.root else { return }
    keep(.named(client: client, root: root.uuid))
    sendBehindRecords()
  }

  /// Notes if the server has decided numbers of change sets that it does not know: they stand for others.
  func noteReusedNumbers(in standing: ScopeStanding) {
    let decided = pending[..<pending.place(after: standing.decided)]
    if decided.contains(where: \.isUnknownToServer) { session.needsNewIdentity = true }
  }

  /// Returns true for a reply of the server which says that the number of a change set stands for another one.
  func refusesNumber(_ replies: [FragmentReply], _ outcome: CallOutcome?) -> Bool {
    if dialect.isOfValues { return false }
    let type = WireError.setNumberReused(0).type
    return outcome?.error?.type == type || replies.contains { $0.error?.type == type }
  }
}

extension ClientEngine {
  /// Gives a replica a new client identity, because the server knows other change sets under its numbers, and begins
  /// another session. Scopes that are fetched from now on have the new identity, too.
  func takeNewIdentity(of replica: Replica) {
    guard replicas.contains(where: { $0 === replica }) else { return }
    let (old, new) = (replica.request.clientID, configuration.makeClientID())
    if configuration.clientID == old { configuration.clientID = new }
    // First everything waits again. Then it waits for the record, too: another process must know the new identity.
    loseSession()
    replica.takeNewIdentity(new)
    retry(reason: "the server knows other change sets of this client")
  }
}
