import Foundation

/// What the server says in a session, and what is said to it.
extension ClientEngine {
  func handle(_ message: Message) {
    if state == .creating {
      guard case .sessionCreateReply(let reply) = message else {
        return report(.skipped("\(message.type) before the session was created"))
      }
      return begin(reply)
    }
    if case .ping(let ping) = message { return handle(ping) }
    switch channel.receive(index: message.index) {
    case .duplicate: return
    case .gap(let expected):
      retry(reason: "message \(expected) is missing before \(message.index)")
      return
    case .process: break
    }
    switch message {
    case .scopeFetchReply(let reply): handle(reply)
    case .scopeState(let state):
      guard let replica = replica(state.scopeIndex) else { return }
      handle(state, for: replica)
    case .scopeSync(let sync):
      replica(sync.scopeIndex)?.receive(.sync(sync.fragments), index: sync.index)
    case .scopeSyncReply(let reply):
      replicas.first { $0.hasSent(reply.replyTo) }?
        .receive(
          .reply(messageIndex: reply.replyTo, reply.fragmentReplies), index: reply.index)
      updateWaitingReplies()
    case .ping, .sessionCreate, .sessionCreateReply, .scopeFetch:
      report(.skipped("\(message.type), which a server does not send in a session"))
    }
  }

  func begin(_ reply: SessionCreateReply) {
    switch reply.result {
    case .failure(let error): end(.sessionDenied(error.message))
    case .success(let token):
      self.token = token
      becomeOnline()
      report(.sessionCreated(token: token))
      for replica in replicas { send(fetch: replica) }
    }
  }

  func becomeOnline() {
    failures = 0
    handshakeDue = nil
    schedulePing()
    enter(.online)
  }

  func handle(_ ping: Ping) {
    for message in channel.receive(ping) {
      // Each set is repeated with what we had seen when it was made.
      if let seen = replicas.lazy.compactMap({ $0.seen(whenSending: message.index) }).first,
        seen > lastAckSent
      {
        transmit([acknowledgement(of: seen), message])
      } else {
        transmit([message])
      }
    }
    if state == .resuming, ping.resendMissing {
      becomeOnline()
      for replica in replicas where replica.scopeIndex == nil && !isFetching(replica) {
        send(fetch: replica)
      }
    }
  }

  func handle(_ reply: ScopeFetchReply) {
    guard let replica = fetches.removeValue(forKey: reply.replyTo) else { return }
    switch reply.result {
    case .success(let index): replica.scopeIndex = index
    case .failure(let error):
      replica.end("\(error)")
      replicas.removeAll { $0 === replica }
      complete(replica, .failure(.scopeDenied(replica.scope.name, error)))
    }
  }

  func handle(_ state: ScopeState, for replica: Replica) {
    replica.receive(
      .state(state.fragments, rootUUID: state.rootUUID) { [weak self, weak replica] result in
        guard let self, let replica else { return }
        switch result {
        case .success: complete(replica, .success(()))
        case .failure(let error):
          replica.end("\(error)")
          replicas.removeAll { $0 === replica }
          complete(replica, .failure(.invalidReply("\(error)")))
        }
      }, index: state.index)
  }

  func complete(_ replica: Replica, _ result: Result<Void, SyncError>) {
    completions.removeValue(forKey: ObjectIdentifier(replica))?(result)
  }

  func replica(_ index: Int) -> Replica? { replicas.first { $0.scopeIndex == index } }

  func isFetching(_ replica: Replica) -> Bool { fetches.values.contains { $0 === replica } }

  // MARK: Sending

  func send(fetch replica: Replica) {
    let message = channel.stamp(
      .scopeFetch(ScopeFetch(name: replica.scope.name, params: replica.params)))
    fetches[message.index] = replica
    transmit([message])
  }

  /// Up to which of the server's messages everything has been taken in.
  var knowledge: Int {
    let held = replicas.compactMap(\.firstHeldIndex).min()
    return min(channel.highestReceived, held.map { $0 - 1 } ?? .max)
  }

  func acknowledgement(of index: Int) -> Message {
    lastAckSent = index
    return .ping(Ping(ack: index))
  }

  /// Sends the change sets that wait. A ping in front tells the server what we had seen when we made
  /// them: so it knows which elements of a collection we left out on purpose.
  func sendWaiting() {
    guard state == .online, !isReceiving else { return updateWaitingReplies() }
    let seen = knowledge
    for replica in replicas {
      guard let scopeIndex = replica.scopeIndex else { continue }
      replica.sendWaiting(seen: seen) { set, fragments in
        let fragments = fragments.map {
          configuration.dateForm.applied(to: $0, in: replica.scope)
        }
        var frame = seen > lastAckSent ? [acknowledgement(of: seen)] : []
        let message = channel.stamp(
          .scopeSync(
            ScopeSync(
              scopeIndex: scopeIndex, fragments: fragments, atomic: set.isAtomic ? true : nil,
              procedure: set.procedure)))
        frame.append(message)
        transmit(frame)
        return message.index
      }
    }
    updateWaitingReplies()
  }

  func updateWaitingReplies() {
    let count = pendingCount
    guard count != waitingReplies else { return }
    waitingReplies = count
    report(.waitingRepliesChanged(count))
  }

  func transmit(_ messages: [Message]) {
    perform(.send(Message.encodeFrame(messages, asArray: false)))
  }
}
