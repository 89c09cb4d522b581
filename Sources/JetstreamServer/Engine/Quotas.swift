import Jetstream

/// The sessions of an engine, and its connections without one, counted by those who have them. All counts are O(1).
struct Quotas {
  /// A number for each name that has one.
  private struct Tally {
    private var counts: [String: Int] = [:]

    subscript(name: String) -> Int { counts[name] ?? 0 }

    mutating func add(_ name: String) { counts[name, default: 0] += 1 }

    mutating func remove(_ name: String) {
      let count = self[name] - 1
      counts[name] = count > 0 ? count : nil
    }
  }

  /// The connections without a session, each with its address; see ``ClientAddress/group(of:)``.
  private var handshakes: [Int: String?] = [:]
  private var handshakesByAddress = Tally()
  private var sessionsByAddress = Tally()
  /// The tokens of the sessions of each principal.
  private var tokens: [String: Set<String>] = [:]
  /// The connections without a session whose clients have shown the token of one, by that token.
  private var claims: [String: Set<Int>] = [:]
  /// The token of each of them.
  private var claimed: [Int: String] = [:]

  // MARK: Connections without a session

  /// Returns the limit that one more connection from an address would exceed; nil if it is let in.
  func limit(
    onHandshakeFrom address: String?, _ limits: ServerLimits
  ) -> ServerLimit? {
    if let most = limits.handshakesPerAddress, let address, handshakesByAddress[address] >= most {
      return .handshakesPerAddress
    }
    if let most = limits.handshakes, handshakes.count >= most { return .handshakes }
    return nil
  }

  mutating func beginHandshake(_ id: Int, from address: String?) {
    handshakes[id] = .some(address)
    if let address { handshakesByAddress.add(address) }
  }

  /// Frees the place of a connection that has got a session, or has ended, and forgets what it claims. Does nothing if
  /// it has neither.
  mutating func endHandshake(_ id: Int) {
    if let token = claimed.removeValue(forKey: id) {
      claims[token]?.remove(id)
      if claims[token]?.isEmpty == true { claims[token] = nil }
    }
    guard let address = handshakes.removeValue(forKey: id) else { return }
    if let address { handshakesByAddress.remove(address) }
  }

  /// The connections that wait with the token of a session.
  func claimants(of token: String) -> Set<Int> { claims[token] ?? [] }

  /// Notes that a connection waits with the token of a session, until ``endHandshake(_:)``.
  mutating func beginClaim(of token: String, by id: Int) {
    claims[token, default: []].insert(id)
    claimed[id] = token
  }

  // MARK: Sessions

  func sessionCount(from address: String) -> Int { sessionsByAddress[address] }

  /// The tokens of the sessions of a principal.
  func sessions(of principal: String) -> Set<String> { tokens[principal] ?? [] }

  mutating func begin(_ session: SessionInfo) {
    if let address = session.addressGroup { sessionsByAddress.add(address) }
    if let id = session.principal?.id { tokens[id, default: []].insert(session.token) }
  }

  mutating func end(_ session: SessionInfo) {
    if let address = session.addressGroup { sessionsByAddress.remove(address) }
    guard let id = session.principal?.id else { return }
    tokens[id]?.remove(session.token)
    if tokens[id]?.isEmpty == true { tokens[id] = nil }
  }
}

extension SessionInfo {
  /// The address that the session counts for; nil if it has none.
  var addressGroup: String? { ClientAddress.group(of: request?.remoteAddress) }
}
