import Foundation
import Jetstream

/// Sessions with scopes of several engines. Each engine has a session of its own for the same client, with its own
/// messages, in a channel of the connection. The engine of channel 0 creates the session; another one joins it when the
/// client first fetches one of its scopes.
extension ServerEngine {
  /// A session that the engine of another channel takes part in, since the client has fetched one of its scopes.
  package struct Join: Sendable {
    package let channel: Int
    package let connection: Int
    package let info: SessionInfo
    /// The version of the protocol that the session speaks.
    let version: Int
    /// The index of the fetch, and the name of the scope.
    let fetch: Int
    let name: String
    /// The rights in the scope; nil if all sessions may do everything.
    let access: Result<ScopeAccess, WireError>?
    /// True if it is the session's first one in that channel.
    let isFirst: Bool
  }

  /// Sends a client to the channel in which the scope is served that it fetches.
  func move(_ fetch: ScopeFetch, of session: ServerSession, to channel: Int) {
    guard session.version > 1 else {
      let error = WireError.rejected(
        "The scope '\(fetch.name)' is served to clients of version 2 of the protocol only")
      return post(session, .scopeFetchReply(ScopeFetchReply(replyTo: fetch.index, error: error)))
    }
    // Behind a message that ends the connection.
    guard let id = session.link.connection else { return putOff(fetch.index, of: session) }
    let isFirst = session.subscriptions.noteChannel(channel)
    perform(
      .join(
        Join(
          channel: channel, connection: id, info: session.info, version: session.version,
          fetch: fetch.index, name: fetch.name, access: session.subscriptions.access[fetch.name],
          isFirst: isFirst)))
    session.subscriptions.access.forget(fetch.name)
  }

  /// Has a client ask again once it has another connection.
  private func putOff(_ fetch: Int, of session: ServerSession) {
    let error = WireError.notNow("The connection has ended", retryAfter: .zero)
    post(session, .scopeFetchReply(ScopeFetchReply(replyTo: fetch, error: error)))
  }

  /// Takes note that a session cannot join, since its connection has ended.
  package func declined(_ join: Join, now: Duration) {
    self.now = now
    guard let session = sessions[join.info.token] else { return }
    if join.isFirst { session.subscriptions.forgetChannel(join.channel) }
    putOff(join.fetch, of: session)
    if !isHandling { flush() }
  }

  /// Answers a fetch once the engine of another channel knows the session.
  package func joined(_ join: Join, now: Duration) {
    self.now = now
    guard let session = sessions[join.info.token] else { return }
    let answer = ScopeFetchReply.Answer.moved(channel: join.channel)
    post(session, .scopeFetchReply(ScopeFetchReply(replyTo: join.fetch, answer: answer)))
    if !isHandling { flush() }
  }

  /// Takes a session that the engine of channel 0 has created, with its open connection.
  package func join(_ join: Join, now: Duration) {
    self.now = now
    let session: ServerSession
    if let known = sessions[join.info.token] {
      session = known
      session.info.principal = join.info.principal
    } else {
      session = begin(join.info, version: join.version, on: join.connection)
      schedulePing(session)
    }
    guard let access = join.access else { return }
    session.subscriptions.access.source = .channelZero
    session.subscriptions.access[join.name] = access
  }

  /// Returns the principal and the other channels of the session that a connection has.
  package func identity(on id: Int) -> (principal: Principal?, otherChannels: Set<Int>) {
    guard case .session(let session)? = connections[id] else { return (nil, []) }
    return (session.info.principal, session.subscriptions.otherChannels)
  }

  /// Ends a session that has ended in another channel.
  ///
  /// - Parameter isTakenAway: true if the app has ended it: then what is not decided ends undecided.
  package func endSession(_ token: String, isTakenAway: Bool = false, now: Duration) {
    self.now = now
    guard let session = sessions[token] else {
      if isTakenAway { dropLeft { $0.token == token } }
      if !isHandling { flush() }
      return
    }
    if isTakenAway { dropUndecided(of: session) }
    end(session, code: 4097, reason: "the session has ended in another channel")
    if !isHandling { flush() }
  }
}
