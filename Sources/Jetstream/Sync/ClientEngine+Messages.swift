import Foundation

/// The messages that the server sends in a session, and those that are sent to it.
extension ClientEngine {
  func handle(_ message: Message) {
    if connection.isCreating {
      guard case .sessionCreateReply(let reply) = message else {
        return diagnose(
          .warning, .session, "skipped \(message.type), which came before the session was created")
      }
      return begin(reply)
    }
    if case .ping(let ping) = message { return handle(ping) }
    guard isNext(message.index) else { return }
    switch message {
    case .scopeFetchReply(let reply): handle(reply)
    case .scopeState(let state):
      guard let replica = replica(state.scopeIndex) else { return }
      handle(state, for: replica)
    case .scopeSync(let sync):
      replica(sync.scopeIndex)?.receive(Self.incoming(sync), index: sync.index)
    case .scopeSyncReply(let reply): handle(reply)
    case .scopeLeave(let leave): handle(leave)
    case .ping, .sessionCreate, .sessionCreateReply, .scopeFetch:
      diagnose(
        .warning, .session, "skipped \(message.type), which a server does not send in a session")
    }
  }

  private static func incoming(_ sync: ScopeSync) -> Replica.Incoming {
    if sync.repairs, let sequence = sync.sequence {
      return .repair(sync.fragments, sequence: sequence)
    }
    return .sync(
      sync.fragments, sequence: sync.sequence, number: sync.number, origin: sync.origin)
  }

  /// Returns true if the message with this index is to be processed. If messages before it are missing, reconnects
  /// to get them.
  func isNext(_ index: Int) -> Bool {
    switch session.channel.receive(index: index) {
    case .process: return true
    case .duplicate: return false
    case .gap(let expected):
      retry(reason: "message \(expected) is missing before \(index)")
      return false
    }
  }

  private func handle(_ reply: ScopeSyncReply) {
    let type = WireError.setNumberReused(0).type
    let replica = replicas.first { $0.hasSent(reply.replyTo) }
    if let replica, session.version > 1,
      reply.fragmentReplies.contains(where: { $0.error?.type == type })
    {
      return takeNewName(of: replica)
    }
    replica?.receive(
      .reply(
        messageIndex: reply.replyTo, reply.fragmentReplies, sequence: reply.sequence,
        effective: reply.effective),
      index: reply.index)
    updateWaitingReplies()
  }

  /// Handles the server's message `index` as the reply to the change set that message `messageIndex` has carried.
  private func decide(_ messageIndex: Int, _ replies: [FragmentReply], by index: Int) {
    replicas.first { $0.hasSent(messageIndex) }?
      .receive(.reply(messageIndex: messageIndex, replies), index: index)
    updateWaitingReplies()
  }

  /// Rejects the change set that a message has carried, because the server has answered it with something that is
  /// not a valid reply.
  func decide(_ messageIndex: Int, failing reason: String, by index: Int) {
    decide(messageIndex, [FragmentReply(error: WireError(message: reason))], by: index)
  }

  func begin(_ reply: SessionCreateReply) {
    switch reply.result {
    case .failure(let error):
      if error.denial == .notYou, configuration.hasCredentials {
        return refuseCredentials(error.message)
      }
      guard let pause = error.retryAfter else { return deny(.sessionDenied(reason: error.message)) }
      retry(reason: error.message, after: pause)
    case .success(let token):
      session.begin(token, version: min(reply.protocol ?? 1, configuration.highestVersion))
      for replica in replicas { replica.dialect = dialect }
      becomeOnline()
      report(.sessionCreated(token: token))
      fetchMissing()
    }
  }

  /// The protocol as the server of this session speaks it.
  var dialect: ReplicaDialect { ReplicaDialect(version: session.version, configuration) }

  func becomeOnline() {
    credentials.accepted()
    enter(.online(pingDue: nextPing))
  }

  func handle(_ ping: Ping) {
    if let last = session.lastMissing(ping) {
      return retry(reason: "messages up to \(last) are missing")
    }
    // Local changes that cancelled each other out were in no change set, so that nothing else has cleared the
    // graveyard.
    for replica in replicas { replica.clearGraveyard() }
    var frame: [Message] = []
    for message in session.receive(ping) {
      // Each change set is repeated with what the client had seen when it was first sent.
      if let seen = replicas.lazy.compactMap({ $0.seen(whenSending: message.index) }).first {
        frame += session.acknowledgement(upTo: seen)
      }
      frame.append(message)
      // The change set of a procedure stays in one frame with its marker.
      if replicas.contains(where: { $0.session.procedures.isMarker(message.index) }) { continue }
      transmit(frame)
      frame = []
    }
    if case .resuming = connection.state, ping.resendMissing {
      becomeOnline()
      fetchMissing()
    }
  }

  func handle(_ reply: ScopeFetchReply) {
    defer { giveUpGrants() }
    if session.requests.takeLeft(reply) { return }
    guard let (replica, tell, since) = session.requests.take(reply.replyTo) else {
      return decide(
        reply.replyTo, failing: "The server answered with a ScopeFetchReply", by: reply.index)
    }
    switch reply.result {
    case .success(let index):
      replica.session.scopeIndex = index
      replica.request.noteGranted()
      guard let standing = reply.standing else { return }
      replica.receive(.standing(standing, tell, since: since), index: reply.index)
      if standing.resumes, tell != .nothing { complete(replica, .success(())) }
    case .failure(let error): handle(error, refusing: replica)
    }
  }

  func handle(_ state: ScopeState, for replica: Replica) {
    replica.receive(
      .state(state.fragments, rootUUID: state.rootUUID, more: state.more) {
        [weak self, weak replica] result in
        guard let self, let replica else { return }
        switch result {
        case .success: complete(replica, .success(()))
        case .failure(let error):
          diagnose(.error, .scope, scope: replica.scope, "is no longer synced: \(error)")
          end(replica, .invalidReply(problem: "\(error)"), "\(error)")
        }
      }, index: state.index)
  }

  func complete(_ replica: Replica, _ result: Result<Void, SyncError>) {
    completions.removeValue(forKey: ObjectIdentifier(replica))?(result)
  }

  func replica(_ index: Int) -> Replica? { replicas.first { $0.session.scopeIndex == index } }

  func replica(of scope: Scope) -> Replica? { replicas.first { $0.scope === scope } }

  // MARK: Sending

  /// Asks the server for a scope.
  ///
  /// - Parameter isWhole: true to ask for the full state, even if a delta would do.
  func send(fetch replica: Replica, tell: ScopeFetch.Tell? = nil, isWhole: Bool = false) {
    let version = session.version
    let tell = version == 1 ? .everything : tell ?? replica.firstTell
    // A server that was restored may have come to the same sequence in another way.
    let isWhole = isWhole || replica.session.needsState || replica.progress.hasDiverged
    let message = session.channel.stamp(
      .scopeFetch(
        ScopeFetch(
          name: replica.scope.name, params: replica.request.params,
          since: version > 1 && !isWhole ? replica.progress.position : nil,
          decided: version > 1 ? replica.decided : nil,
          client: version > 1 && replica.request.clientID != configuration.clientID
            ? replica.request.clientID : nil, tell: tell)))
    session.requests.add(message.index, (replica, tell, replica.progress.sequence))
    replica.session.asked = tell
    if tell != .nothing { replica.session.hasMissed = false }
    transmit([message])
  }

  /// The index up to which all messages of the server have been applied.
  var knowledge: Int {
    let held = replicas.compactMap(\.firstHeldIndex).min()
    return min(session.channel.highestReceived, held.map { $0 - 1 } ?? .max)
  }

  /// Acknowledges at once if much has arrived, so that the server need not wait for the next ping.
  private func acknowledgeIfDue() {
    let sets = replicas.reduce(0) { $0 + $1.unacknowledgedCount }
    guard
      session.isAcknowledgementDue(
        upTo: knowledge, sets: sets, limit: configuration.limits.acknowledgeAfter)
    else { return }
    transmit([ping()])
  }

  /// Returns the places of all replicas. A regular ping and the beginning of a connection name them all, so that an
  /// acknowledgement that was lost is made up for.
  func takeAllSeen() -> [Ping.Place] {
    for replica in replicas { replica.acknowledgeAgain() }
    return replicas.compactMap { $0.takeSeen() }
  }

  /// Returns a ping that acknowledges everything that has been applied, but for what the server has been told of.
  func ping(_ differences: [Ping.Difference] = []) -> Message {
    session.ping(acknowledging: knowledge, replicas.compactMap { $0.takeSeen() }, differences)
  }

  /// Sends the change sets that wait. A ping in front tells the server what the client had seen when it made them,
  /// so that the server knows which elements of a collection the client left out on purpose.
  func sendWaiting() {
    guard status == .online, !isReceiving else { return updateWaitingReplies() }
    let seen = knowledge
    for replica in replicas {
      guard let scopeIndex = replica.session.scopeIndex, maySend(of: replica) else { continue }
      // Change sets that observers make in response to a rejection are left for the next time.
      let last = replica.pending.lastNumber
      while let oversize = send(replica, scopeIndex, seen: seen),
        replica.rejectNext(oversize, upTo: last)
      {}
    }
    updateWaitingReplies()
    for replica in replicas { goOn(with: replica) }
    restIfPossible()
    // The server may be waiting for the acknowledgement of messages that a resumed scope has just applied.
    if status == .online { acknowledgeIfDue() }
  }

  /// Sends the waiting change sets of one scope; see ``Replica/sendWaiting(seen:limit:while:_:)``.
  private func send(_ replica: Replica, _ scopeIndex: Int, seen: Int) -> OversizedSet? {
    let (version, window) = (session.version, configuration.limits.sendWindow)
    return replica.sendWaiting(
      seen: seen, limit: configuration.limits.maximumMessageBytes,
      while: { session.hasRoom(behind: $0, limit: window) }
    ) { entry, fragments in
      let set = entry.set
      let fragments = replica.dialect.dateForm.applied(to: fragments, in: replica.scope)
      // The server needs to know what the client had seen in order to interpret whole collections.
      var frame = version == 1 ? session.acknowledgement(upTo: seen) : []
      var sync = ScopeSync(
        scopeIndex: scopeIndex, fragments: fragments, atomic: set.isAtomic ? true : nil,
        procedure: version == 1 ? set.oldProcedure : set.procedure)
      if version > 1 {
        (sync.number, sync.decided) = (entry.number, replica.decided)
        sync.origin = replica.origin(of: entry)
      }
      let marker =
        version == 1 && set.oldProcedure != nil
        ? session.channel.stamp(.scopeSync(ScopeSync(scopeIndex: scopeIndex, fragments: []))) : nil
      let message = session.channel.stamp(.scopeSync(sync))
      if let marker {
        replica.session.procedures.note(marker: marker.index, of: message.index)
        frame.append(marker)
      }
      frame.append(message)
      transmit(frame)
      return message.index
    }
  }

  func updateWaitingReplies() {
    defer { reportStates() }
    let count = pendingCount
    guard count != waitingReplies else { return }
    waitingReplies = count
    report(.waitingRepliesChanged(count))
  }

  func transmit(_ messages: [Message]) {
    let frame = Message.encodeFrame(messages, asArray: false)
    if session.version > 1 { session.note(bytes: frame.count) }
    perform(.send(frame))
  }
}
