import Jetstream

/// Connections whose clients have shown the token of a session, while the app is asked who they are.
///
/// The token alone may be stolen. A stranger can show it at any time and as often as it likes, and the session's owner,
/// who comes back after a lost connection, must not be kept out by that. So none of these connections takes the place
/// of another one before the app has answered: a few of them wait side by side, and all but one of them have a place
/// among the connections without a session. The first whose client is the owner gets the session, and ends the earlier
/// ones. A later one may be the owner's, too: it takes the session over, or is refused.
extension ServerEngine {
  /// The number of connections that may wait with the token of one session.
  private static let mostClaimants = 4

  /// Returns the connections that wait with the token of a session, the earliest first.
  func claimants(of token: String) -> [Int] { (quotas.claims[token] ?? []).filter(isWaiting) }

  /// Notes that a connection waits with the token of a session. If there are too many, the earliest one from the
  /// address with the most of them is closed.
  func noteClaim(of token: String, by id: Int) {
    var waiting = claimants(of: token) + [id]
    if waiting.count > Self.mostClaimants {
      let addresses = waiting.map(addressOfApplicant)
      let counts = Dictionary(addresses.map { ($0, 1) }, uniquingKeysWith: +)
      let most = counts.values.max()
      if let at = addresses.firstIndex(where: { counts[$0] == most }) {
        endClaim(waiting.remove(at: at))
      }
    }
    quotas.claims[token] = waiting
  }

  /// Closes the connections that have waited with the token of a session for longer than the one that gets it.
  func endClaims(of token: String, before id: Int) {
    for earlier in claimants(of: token) where earlier < id { endClaim(earlier) }
  }

  private func endClaim(_ id: Int) {
    connections[id] = nil
    quotas.endHandshake(id)
    perform(.close(connection: id, code: 1000, reason: "resumed on another connection"))
  }

  private func addressOfApplicant(_ id: Int) -> String? {
    guard case .authenticating(let applicant)? = connections[id] else { return nil }
    return applicant.info.addressGroup
  }
}
