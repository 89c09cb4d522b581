/// Messages of the server that the client cannot read.
///
/// The client counts them as received, because sending them again would not make them readable. It fails what the
/// app waits for, and fetches again what a scope has missed.
extension ClientEngine {
  func handle(_ error: MessageError, in channel: Int) {
    diagnose(.warning, .session, "skipped a message: \(error)")
    guard !connection.isCreating else { return }
    guard let index = error.index, index > 0 else { return missedInStream(error, in: channel) }
    guard isNext(index, in: channel) else { return }
    switch error {
    case .unknownType: break
    case .inReply(let messageIndex, _):
      if let request = session[channel].requests.take(messageIndex) {
        refuse(request.replica, because: error)
      } else {
        let reason = "The reply cannot be read: \(error)"
        decide(messageIndex, in: channel, failing: reason, by: index)
      }
    case .inScope(let scopeIndex, _):
      if let replica = replica(scopeIndex) { missed(error, by: replica) }
    case .notAnObject, .missing, .invalid, .invalidElement, .inChangeSet, .inCall:
      // The message may have concerned any scope.
      for replica in replicas(in: channel) where replica.session.scopeIndex != nil {
        missed(error, by: replica)
      }
    }
  }

  /// Recovers from a message about a scope that could not be read.
  private func missed(_ error: MessageError, by replica: Replica) {
    // A state that cannot be read is not asked for again at once, because it would arrive unchanged.
    if !replica.progress.hasBase || session.isAsking(for: replica)
      || replica.session.isTakingState
    {
      refuse(replica, because: error)
    } else if session.version == 1 {
      // Within a session of version 1 there is no way to get missed changes again.
      loseSession()
      retry(reason: "what the server has sent of \(replica.scope.name) cannot be read")
    } else {
      send(fetch: replica, tell: .everything, isWhole: true)
    }
  }

  /// Recovers from a change set of a stream that could not be read. Change sets of a stream have no index.
  ///
  /// If the message does not say which scope it concerns, it may have been a change set of any. Without a recovery, the
  /// scope would ask for what is behind its place when it finds the gap, be sent the same message, and ask again.
  private func missedInStream(_ error: MessageError, in channel: Int) {
    guard session.version > 1 else { return }
    if case .inScope(let scopeIndex, _) = error {
      if let replica = replica(scopeIndex) { missedInStream(of: replica) }
    } else if error.mayBeChangeSet {
      for replica in replicas(in: channel) { missedInStream(of: replica) }
    }
  }

  /// Recovers from a change set of a scope's stream that could not be read, or that may have been one.
  ///
  /// Behind the place of the replica, the server would send the same change set again. So the client asks for the full
  /// state, once, and ignores the stream until the answer arrives.
  private func missedInStream(of replica: Replica) {
    guard replica.session.isTaking, !replica.session.isTakingState, !session.isAsking(for: replica)
    else { return }
    replica.askForMissed()
    send(fetch: replica, tell: .everything, isWhole: true)
  }

  /// Ends the fetch of a scope whose grant or first state cannot be read. If the scope has a state, asks again
  /// later, as for a scope that the server refuses for now.
  private func refuse(_ replica: Replica, because error: MessageError) {
    guard replica.mayReturn else {
      return lose(replica, because: "\(error)")
    }
    handle(.unreadable("\(error)"), refusing: replica)
  }

  /// Stops syncing a scope because what the server sends of it cannot be used, for this reason.
  func lose(_ replica: Replica, because problem: String) {
    giveBack(replica)
    lose(replica, .unreadable(problem), as: .invalidReply(problem: problem))
  }
}

extension MessageError {
  /// True unless the message is known not to be a change set. Messages of unknown types are none.
  fileprivate var mayBeChangeSet: Bool {
    switch self {
    case .notAnObject, .inScope, .inChangeSet, .inCall: true
    case .unknownType, .inReply: false
    case .missing(let type, _, _), .invalid(let type, _, _, _),
      .invalidElement(let type, _, _, _, _):
      type.isEmpty || type == ScopeSync.type
    }
  }
}

extension WireError {
  /// The error of a message of the server that cannot be used.
  fileprivate static func unreadable(_ problem: String) -> WireError {
    WireError(message: "What the server sends cannot be read: \(problem)", type: "invalid-message")
  }
}
