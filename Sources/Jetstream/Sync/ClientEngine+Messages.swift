import Foundation

/// The messages that the server sends in a session, and those that are sent to it.
extension ClientEngine {
  func handle(_ message: Message, in channel: Int) {
    if connection.isCreating {
      guard case .sessionCreateReply(let reply) = message else {
        return diagnose(
          .warning, .session, "skipped \(message.type), which came before the session was created")
      }
      return begin(reply)
    }
    if case .ping(let ping) = message { return handle(ping, in: channel) }
    guard isNext(message.index, in: channel) else { return }
    switch message {
    case .scopeFetchReply(let reply): handle(reply, in: channel)
    case .scopeState(let state):
      guard let replica = replica(state.scopeIndex) else { return }
      handle(state, for: replica)
    case .scopeSync(let sync):
      replica(sync.scopeIndex)?.receive(Self.incoming(sync), index: sync.index)
    case .scopeSyncReply(let reply): handle(reply, in: channel)
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
  func isNext(_ index: Int, in channel: Int) -> Bool {
    switch session[channel].messages.receive(index: index) {
    case .process: return true
    case .duplicate: return false
    case .gap(let expected):
      retry(reason: "message \(expected) is missing before \(index)")
      return false
    }
  }

  private func handle(_ reply: ScopeSyncReply, in channel: Int) {
    if reply.count > 1, let last = reply.sequence {
      for before in (0..<reply.count).reversed() {
        accept(reply.replyTo - before, at: last - before, in: channel, by: reply.index)
      }
      return updateWaitingReplies()
    }
    replicas(in: channel).first { $0.hasSent(reply.replyTo) }?
      .receive(
        .reply(
          messageIndex: reply.replyTo, reply.fragmentReplies, sequence: reply.sequence,
          effective: reply.effective, outcome: reply.outcome),
        index: reply.index)
    updateWaitingReplies()
  }

  /// Handles the server's message `index` as the reply that accepts the change set that message `messageIndex` has carried.
  private func accept(_ messageIndex: Int, at sequence: Int, in channel: Int, by index: Int) {
    guard let replica = replicas(in: channel).first(where: { $0.hasSent(messageIndex) }) else {
      return
    }
    let replies = replica.repliesAccepting(messageIndex)
    replica.receive(
      .reply(messageIndex: messageIndex, replies, sequence: sequence), index: index)
  }

  /// Handles the server's message `index` as the reply to the change set that message `messageIndex` has carried.
  private func decide(
    _ messageIndex: Int, in channel: Int, _ replies: [FragmentReply], by index: Int
  ) {
    replicas(in: channel).first { $0.hasSent(messageIndex) }?
      .receive(.reply(messageIndex: messageIndex, replies), index: index)
    updateWaitingReplies()
  }

  /// Rejects the change set that a message has carried, because the server has answered it with something that is
  /// not a valid reply.
  func decide(_ messageIndex: Int, in channel: Int, failing reason: String, by index: Int) {
    let reply = FragmentReply(error: WireError(message: reason))
    decide(messageIndex, in: channel, [reply], by: index)
  }

  func begin(_ reply: SessionCreateReply) {
    switch reply.result {
    case .failure(let error):
      if error.denial == .notYou, configuration.hasCredentials {
        return refuseCredentials(error.message, after: error.retryAfter ?? .zero)
      }
      guard let pause = error.retryAfter else { return deny(.sessionDenied(reason: error.message)) }
      retry(reason: error.message, after: pause)
    case .success(let token):
      session.begin(token, version: min(reply.protocol ?? 1, configuration.highestVersion))
      for replica in replicas { replica.dialect = dialect }
      becomeOnline()
      // A listener of the status may have closed the client.
      guard session.token == token else { return }
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

  func handle(_ ping: Ping, in channel: Int) {
    if let last = session.lastMissing(ping, in: channel) {
      return retry(reason: "messages up to \(last) are missing")
    }
    // Local changes that cancelled each other out were in no change set, so that nothing else has cleared the
    // graveyard.
    let replicas = replicas(in: channel)
    for replica in replicas { replica.clearGraveyard() }
    var frame: [Message] = []
    for message in session.receive(ping, in: channel) {
      // Each change set is repeated with what the client had seen when it was first sent.
      if let seen = replicas.lazy.compactMap({ $0.seen(whenSending: message.index) }).first {
        frame += session.acknowledgement(in: channel, upTo: seen)
      }
      frame.append(message)
      // The change set of a procedure stays in one frame with its marker.
      if replicas.contains(where: { $0.session.procedures.isMarker(message.index) }) { continue }
      transmit(frame, in: channel)
      frame = []
    }
    for place in ping.latest { replica(place.scopeIndex)?.noteLatest(place.sequence) }
    if ping.resendMissing { session[channel].requests.noteLatest(ping.latest) }
    if case .resuming = connection.state, ping.resendMissing, !session.isResuming {
      becomeOnline()
      fetchMissing()
    }
  }

  func handle(_ reply: ScopeFetchReply, in channel: Int) {
    defer { if session.uses(channel) { giveUpGrants(in: channel) } }
    if session[channel].requests.takeLeft(reply) {
      if let replica = reply.scopeIndex.flatMap(replica) { fetchAgain(replica) }
      return
    }
    guard let request = session[channel].requests.take(reply.replyTo) else {
      let reason = "The server answered with a ScopeFetchReply"
      return decide(reply.replyTo, in: channel, failing: reason, by: reply.index)
    }
    let replica = request.replica
    switch reply.answer {
    case .moved(let other): move(replica, from: channel, to: other)
    case .granted(let index):
      if let first = owner(ofGrant: index), first !== replica {
        return end(replica, grantedAs: first)
      }
      (replica.session.channel, replica.session.scopeIndex) = (channel, index)
      replica.session.earlierIndex = nil
      replica.session.bringsSchema = false
      replica.request.noteGranted()
      guard let standing = reply.standing else { return }
      let latest = session[channel].requests.takeLatest(of: index)
      replica.session.latest = max(replica.session.latest, latest ?? 0)
      replica.receive(
        .standing(standing, request.tell, since: request.since), index: reply.index)
      if standing.resumes, request.tell != .nothing { complete(replica, .success(())) }
    case .denied(let error):
      guard !bringSchema(after: error, to: request) else { return }
      handle(error, refusing: replica)
    }
  }

  /// Asks for a scope in the channel in which the server serves it.
  private func move(_ replica: Replica, from channel: Int, to other: Int) {
    guard session.version > 1, channel == 0, other > 0, replica.session.scopeIndex == nil,
      session.open(other)
    else {
      let text = "The server sends the client from channel \(channel) to \(other) for the scope"
      return handle(WireError(message: text, type: "invalid-message"), refusing: replica)
    }
    replica.session.channel = other
    fetchMissing()
  }

  func handle(_ state: ScopeState, for replica: Replica) {
    replica.receive(
      .state(state.fragments, rootUUID: state.rootUUID, more: state.more) {
        [weak self, weak replica] result in
        guard let self, let replica else { return }
        switch result {
        case .success: complete(replica, .success(()))
        case .failure(let error):
          lose(replica, because: "\(error)")
        }
      }, index: state.index)
  }

  func complete(_ replica: Replica, _ result: Result<Void, SyncError>) {
    completions.removeValue(forKey: ObjectIdentifier(replica))?(result)
  }

  func replica(_ index: Int) -> Replica? { replicas.first { $0.session.scopeIndex == index } }

  /// Returns the replica of a scope that the server has granted in this session, also while it is asked for again.
  private func owner(ofGrant index: Int) -> Replica? {
    replica(index) ?? replicas.first { $0.session.earlierIndex == index }
  }

  /// Returns the replicas of the scopes that are served in a channel.
  func replicas(in channel: Int) -> [Replica] {
    session.hasOneChannel ? replicas : replicas.filter { $0.session.channel == channel }
  }

  func replica(of scope: Scope) -> Replica? { replicas.first { $0.scope === scope } }

  // MARK: Sending

  /// Returns the index up to which the server's messages in a channel have been received, for tests and simulations.
  package func highestReceived(in channel: Int) -> Int { session[channel].messages.highestReceived }

  /// Returns the index up to which all messages of the server in a channel have been applied.
  func knowledge(in channel: Int) -> Int {
    let held = replicas(in: channel).compactMap(\.firstHeldIndex).min()
    return min(session[channel].messages.highestReceived, held.map { $0 - 1 } ?? .max)
  }

  /// Acknowledges at once if much has arrived, so that the server need not wait for the next ping.
  private func acknowledgeIfDue(in channel: Int) {
    let sets = replicas(in: channel).reduce(0) { $0 + $1.unacknowledgedCount }
    let limit = configuration.limits.acknowledgeAfter
    guard session[channel].early.isDue(at: knowledge(in: channel), others: sets, limit: limit)
    else { return }
    transmit([ping(in: channel)], in: channel)
  }

  /// Returns the places of all replicas of a channel. A regular ping and the beginning of a connection name them all, so
  /// that an acknowledgement that was lost is made up for.
  func takeAllSeen(in channel: Int) -> [Ping.Place] {
    let replicas = replicas(in: channel)
    for replica in replicas { replica.acknowledgeAgain() }
    return replicas.compactMap { $0.takeSeen() }
  }

  /// Returns a ping that acknowledges everything of a channel that has been applied, but for what the server has been told
  /// of.
  func ping(in channel: Int, _ differences: [Ping.Difference] = []) -> Message {
    session.ping(
      in: channel, acknowledging: knowledge(in: channel),
      replicas(in: channel).compactMap { $0.takeSeen() }, differences)
  }

  /// Sends the change sets that wait. A ping in front tells the server what the client had seen when it made them,
  /// so that the server knows which elements of a collection the client left out on purpose.
  func sendWaiting() {
    guard status == .online, !isReceiving else { return updateWaitingReplies() }
    let seen = session.openChannels.map { ($0, knowledge(in: $0)) }
    var sent = replicas.reduce(0) { $0 + $1.sentCount }
    for replica in replicas {
      guard let scopeIndex = replica.session.scopeIndex, maySend(of: replica) else { continue }
      // Change sets that observers make in response to a rejection are left for the next time.
      let last = replica.pending.lastNumber
      let channel = replica.session.channel
      let known = seen.first { $0.0 == channel }?.1 ?? 0
      let others = sent - replica.sentCount
      while let unsendable = send(replica, scopeIndex, seen: known, others: others),
        replica.rejectNext(unsendable, upTo: last)
      {}
      sent = others + replica.sentCount
    }
    updateWaitingReplies()
    for replica in replicas { goOn(with: replica) }
    restIfPossible()
    // The server may be waiting for the acknowledgement of messages that a resumed scope has just applied.
    for channel in session.openChannels where status == .online { acknowledgeIfDue(in: channel) }
  }

  /// Sends the waiting change sets of one scope, while `others` of other scopes are on their way; see
  /// ``Replica/sendWaiting(seen:limit:while:_:)``.
  private func send(
    _ replica: Replica, _ scopeIndex: Int, seen: Int, others: Int
  ) -> UnsendableSet? {
    let (version, limits) = (session.version, configuration.limits)
    let channel = replica.session.channel
    return replica.sendWaiting(
      seen: seen, limit: min(limits.maximumMessageBytes, refusedBytes - 1),
      while: {
        $1 < limits.unknownDecisions
          && session.hasRoom(behind: $0, others: others, limit: limits.sendWindow)
      }
    ) { entry, fragments in
      let set = entry.set
      let fragments = replica.dialect.dateForm.applied(to: fragments, in: replica.scope)
      // The server needs to know what the client had seen in order to interpret whole collections.
      var frame = version == 1 ? session.acknowledgement(in: channel, upTo: seen) : []
      var sync = ScopeSync(
        scopeIndex: scopeIndex, fragments: fragments, atomic: set.isAtomic ? true : nil,
        procedure: version == 1 ? set.oldProcedure : set.procedure)
      if version > 1 {
        sync.arguments = set.arguments
        (sync.number, sync.decided) = (entry.number, replica.decided)
        sync.origin = replica.origin(of: entry)
      }
      let marker =
        version == 1 && set.oldProcedure != nil
        ? session[channel].messages.stamp(
          .scopeSync(ScopeSync(scopeIndex: scopeIndex, fragments: []))) : nil
      let message = session[channel].messages.stamp(.scopeSync(sync))
      if let marker {
        replica.session.procedures.note(marker: marker.index, of: message.index)
        frame.append(marker)
      }
      frame.append(message)
      transmit(frame, in: channel)
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

  func transmit(_ messages: [Message], in channel: Int = 0) {
    let frame = Message.encodeFrame(messages, asArray: false, channel: channel)
    largestFrame.note(frame.count, messages, in: channel)
    if session.version > 1 { session[channel].early.note(bytes: frame.count) }
    perform(.send(frame))
  }
}
