import Foundation
import Jetstream

/// Sessions with scopes of several engines. Each engine has a session of its own for the same client, with its own
/// messages, in a channel of the connection. The engine of channel 0 creates the session; another one joins it when the
/// client first fetches one of its scopes.
extension ServerEngine {
  /// Sends a client to the channel in which the scope is served that it fetches.
  func move(_ fetch: ScopeFetch, of session: ServerSession, to channel: Int) {
    guard session.version > 1, let id = session.link.connection else {
      let error = WireError.rejected(
        "The scope '\(fetch.name)' is served to clients of version 2 of the protocol only")
      return post(session, .scopeFetchReply(ScopeFetchReply(replyTo: fetch.index, error: error)))
    }
    session.subscriptions.noteChannel(channel)
    perform(.join(channel: channel, connection: id, session.info, fetch: fetch.index))
  }

  /// Answers a fetch once the engine of another channel knows the session.
  package func joined(_ channel: Int, answering fetch: Int, of token: String, now: Duration) {
    self.now = now
    guard let session = sessions[token] else { return }
    post(
      session,
      .scopeFetchReply(ScopeFetchReply(replyTo: fetch, answer: .moved(channel: channel))))
    if !isHandling { flush() }
  }

  /// Takes a session that the engine of channel 0 has created, with its open connection.
  package func join(_ info: SessionInfo, on id: Int, now: Duration) {
    self.now = now
    guard sessions[info.token] == nil else { return }
    let session = begin(info, version: configuration.highestVersion, on: id)
    schedulePing(session)
  }

  /// Returns the other channels of the session that a connection has.
  package func otherChannels(of id: Int) -> Set<Int> {
    guard case .session(let session)? = connections[id] else { return [] }
    return session.subscriptions.otherChannels
  }

  /// Ends a session that has ended in another channel.
  package func endSession(_ token: String, now: Duration) {
    self.now = now
    guard let session = sessions[token] else { return }
    end(session, code: 4097, reason: "the session has ended in another channel")
  }
}
