import Jetstream

/// Connections whose clients have shown the token of a session, while the app is asked who they are.
///
/// The token alone may be stolen. A stranger can show it at any time and as often as it likes, and the session's owner,
/// who comes back after a lost connection, must not be kept out by that. So none of these connections takes the place
/// of another one before the app has answered: they wait side by side, and all but one of them have a place among the
/// connections without a session, whose number is limited: a stranger who comes first and fills these keeps the owner
/// waiting. The server cannot tell which of them is the owner's, which may share an address with the others: it closes
/// none for another one. The first whose client is the owner gets the session, and ends the earlier ones. A later one
/// may be the owner's, too: it takes the session over, or is refused.
extension ServerEngine {
  /// Closes the connections that have waited with the token of a session for longer than the one that gets it.
  func endClaims(of token: String, before id: Int) {
    for earlier in quotas.claimants(of: token).sorted() where earlier < id {
      connections[earlier] = nil
      quotas.endHandshake(earlier)
      perform(.close(connection: earlier, code: 1000, reason: "resumed on another connection"))
    }
  }
}
