/// Scopes that the server refuses.
///
/// When a refusal is about the credentials (``Denial/notYou``), the client asks its app for others and presents them
/// in another session, once until the server grants the scope. Otherwise, and if the server refuses these, too, the
/// following holds.
///
/// A refusal with a retry time means "not now": the client waits and asks again, and keeps the scope with all
/// pending change sets. Any other refusal is treated in the same way if the scope has a log, or if this replica has
/// had a state, unless the server's error says that the scope does not exist or no longer exists: a server that has
/// just been started may not know the scope yet, and ending the subscription would lose the changes made from then
/// on. In all other cases the refusal ends the subscription, and
/// ``Client/fetch(_:params:mode:keepingContent:)`` throws it.
///
/// A server of version 2 that needs the schema of the scope's classes refuses a request that does not have it, with
/// ``WireError/schemaWanted``. That is no refusal for the app: the client asks again at once, with the schema.
extension ClientEngine {
  /// Handles the server's refusal of a scope.
  func handle(_ error: WireError, refusing replica: Replica) {
    let name = replica.scope.name
    replica.session.bringsSchema = false
    if error.denial == .notYou, configuration.hasCredentials,
      replica.request.takeCredentialsRequest()
    {
      return refuseCredentials(error.message, reason: "scope \(name) is refused: \(error)")
    }
    let isFinal = error.denial?.isFinal ?? !replica.mayReturn
    guard !isFinal, replica.mayReturn || error.denial == .notNow else {
      return lose(replica, error)
    }
    let delay = configuration.backoff.delay(
      failure: replica.request.refusalCount, atLeast: error.retryAfter ?? .zero, random: random)
    replica.request.noteRefused(error, retryDue: now + delay)
    // Change sets that were sent under an earlier grant of this session are sent again under the next one.
    if replica.session.scopeIndex != nil || replica.session.channel > 0 { replica.sessionEnded() }
    replica.schedule.schedulePoll(now: now)
    let round = replica.schedule.end(now: now)
    diagnose(
      .info, .scope, scope: replica.scope,
      "is refused for now: \(error); asking again in \(delay)")
    reportStates()
    round?.finish(.failure(.scopeDenied(scope: name, error: error)))
  }

  // MARK: Asking

  /// Asks the server for a scope.
  ///
  /// - Parameter isWhole: true to ask for the full state, even if a delta would do.
  func send(fetch replica: Replica, tell: ScopeFetch.Tell? = nil, isWhole: Bool = false) {
    // A handler that is told of a frame that cannot be sent may have left the scope since its turn was planned.
    guard replicas.contains(where: { $0 === replica }) else { return }
    let version = session.version
    let tell = version == 1 ? .everything : tell ?? replica.firstTell
    // A server that was restored may have come to the same sequence in another way.
    let isWhole = isWhole || replica.session.needsState || replica.progress.hasDiverged
    let schema = replica.session.bringsSchema ? schema(of: replica) : nil
    let channel = replica.session.channel
    let message = session[channel].messages.stamp(
      .scopeFetch(
        ScopeFetch(
          name: replica.scope.name, params: replica.request.params,
          since: version > 1 && !isWhole ? replica.progress.position : nil,
          decided: version > 1 ? replica.decided : nil,
          client: version > 1 && replica.request.clientID != configuration.clientID
            ? replica.request.clientID : nil, tell: tell, schema: schema)))
    session[channel].requests.add(
      message.index,
      ScopeRequests.Request(
        replica: replica, tell: tell, since: replica.progress.sequence, hasSchema: schema != nil))
    replica.session.asked = tell
    if tell != .nothing { replica.session.hasMissed = false }
    transmit([message], in: channel)
  }

  /// Asks for a scope again, with its schema, if the server has refused the request because it had none.
  ///
  /// Two requests for a scope may be under way, and each may be refused because it has no schema: ``fetchMissing()`` sends
  /// the schema when both are answered.
  ///
  /// - Returns: false if the refusal is another one, or the server does not take the schema for an answer.
  func bringSchema(after error: WireError, to request: ScopeRequests.Request) -> Bool {
    let replica = request.replica
    guard error.type == WireError.schemaWanted.type, session.version > 1, !request.hasSchema,
      schema(of: replica) != nil
    else { return false }
    // The server had granted the scope earlier in this session, and has closed it.
    if replica.session.scopeIndex != nil { replica.sessionEnded() }
    replica.session.bringsSchema = true
    diagnose(.info, .scope, scope: replica.scope, "is asked for again, with its schema")
    fetchMissing()
    return true
  }

  /// Returns the schema of the classes that a replica's scope knows; nil if the scope has no root, or if
  /// the schema is longer than a server reads.
  func schema(of replica: Replica) -> JSONValue? {
    guard let schema = replica.scope.wireSchema?.json,
      schema.text.utf8.count <= Schema.maximumBytes
    else { return nil }
    return schema
  }

  /// The scopes that this session does not have and for which the server is not being asked.
  private var missing: [Replica] {
    guard status == .online else { return [] }
    return replicas.filter {
      $0.session.scopeIndex == nil && !session.isAsking(for: $0)
    }
  }

  /// Asks again for the scopes whose retry time has come, or which the app has synced. In a session that does not have its
  /// scopes yet, asks at once for those that were not refused.
  func fetchMissing() {
    for replica in missing {
      if let due = replica.request.refusal?.retryDue, due > now, !replica.schedule.isForced {
        continue
      }
      send(fetch: replica)
      // If the frame could not be sent, a handler may have closed the client.
      guard status == .online else { return }
    }
  }

  /// The time at which ``fetchMissing()`` has something to do next; nil if nothing waits.
  var refetchDue: Duration? { missing.compactMap(\.request.refusal?.retryDue).min() }
}
