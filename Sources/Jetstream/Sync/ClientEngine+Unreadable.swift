/// Messages of the server that cannot be read.
///
/// The client counts them as received, since they do not become readable by being sent again. It fails what the app
/// waits for, and fetches anew what a scope has missed.
extension ClientEngine {
  func handle(_ error: MessageError) {
    report(.skipped("\(error)"))
    guard state != .creating, let index = error.index, index > 0, isNext(index) else { return }
    switch error {
    case .unknownType: break
    case .inReply(let messageIndex, _):
      if let (replica, _) = fetches.removeValue(forKey: messageIndex) {
        refuse(replica, because: error)
      } else {
        decide(messageIndex, failing: "The reply cannot be read: \(error)", by: index)
      }
    case .inScope(let scopeIndex, _):
      if let replica = replica(scopeIndex) { missed(error, by: replica) }
    case .notAnObject, .missing, .invalid, .invalidElement:
      // It may have been about any of them.
      for replica in replicas where replica.scopeIndex != nil { missed(error, by: replica) }
    }
  }

  /// A scope was not told what the server has sent of it.
  private func missed(_ error: MessageError, by replica: Replica) {
    // A state that cannot be read is not asked for again at once: it would come as it was.
    if !replica.hasBase || isFetching(replica) || replica.isTakingState {
      refuse(replica, because: error)
    } else if version == 1 {
      // A session of version 1 is told of a scope from its beginning only.
      loseSession()
      retry(reason: "what the server has sent of \(replica.scope.name) cannot be read")
    } else {
      send(fetch: replica, tell: .everything, isWhole: true)
    }
  }

  /// Ends the fetch of a scope whose grant or first state cannot be read. Asks again later for a scope that has a
  /// state, as for one that the server refuses for now.
  private func refuse(_ replica: Replica, because error: MessageError) {
    guard replica.mayReturn else {
      return end(replica, .invalidReply(problem: "\(error)"), "\(error)")
    }
    handle(
      WireError(message: "What the server sends cannot be read: \(error)", type: "invalid-message"),
      refusing: replica)
  }
}
