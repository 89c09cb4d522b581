/// The client's side of one channel of a session: its messages, the requests for scopes in it, and what was
/// acknowledged.
///
/// A server that serves its scopes on several threads has a channel for each of them, so that these need not agree on
/// one order of messages. Every session begins with channel 0, in which a scope is asked for first.
struct ClientChannel {
  var messages = ReliableChannel(side: .client)
  /// The requests for scopes.
  var requests = ScopeRequests()
  /// The acknowledgements that the client has sent.
  var early = EarlyAcknowledgement()
  /// True while a new connection waits for what the server has sent in the channel before.
  var isResuming = false
}
