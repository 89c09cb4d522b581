import JetstreamWebSocket

extension Server {
  /// The timeouts and limits of a server.
  public struct Configuration: Sendable {
    /// The time after which a session is ended and forgotten if its client has sent nothing.
    public var sessionExpiry: Duration = .seconds(600)
    /// The number of bytes that may wait for a client's acknowledgement. A session that exceeds it is ended. One
    /// message that is larger than this by itself may always wait, and does not count. Less than 4 MiB counts as 4 MiB:
    /// clients of version 2 acknowledge what they have received after 1 MiB, and otherwise every ten seconds.
    public var keptBytes = 64 << 20
    /// The size of the largest message that the server reads, in bytes. At most 64 KiB are read before a connection has
    /// a session. Clients of this package send at most 16 MiB, and reject a longer change set themselves: more than that is
    /// for other clients.
    public var maximumMessageBytes = 16 << 20
    /// The number of bytes that may wait to be sent on one connection. A connection that exceeds it is dropped. One
    /// message that is larger than this by itself may always wait, and does not count.
    public var maximumOutboundBytes = 64 << 20
    /// The number of clients, at least, whose decisions each scope keeps: those seen most recently. A client that was
    /// dropped and comes back with change sets whose outcome it does not know is told so, and sends them again or takes
    /// them back; see `HistoryLoss`.
    public var rememberedClients = 100_000
    /// The number of event loops over which the server spreads the scopes that it hosts from a schema. With 0 they live on
    /// the server's actor, as all others do. The process has as many loops as processors, from 2 to 8: a larger number
    /// is of no use.
    ///
    /// A client may use scopes of several loops at once, in one session. Clients of version 1 of the protocol are refused
    /// the scopes that are spread. The limits of a session, such as ``keptBytes``, then hold for each loop. A server with
    /// ``Server/resolveScope`` never offers the scopes that are spread.
    public var scopeLoops = 0
    /// The largest number of scopes that are open at a time of those that are opened on demand. When more are fetched,
    /// idle ones are closed for them; if there are none, the fetches are refused, and their clients ask again. An open
    /// scope takes one file descriptor, and a second one while it is written.
    public var maximumOpenScopes = 1_000
    /// The time after which a scope that was opened on demand is closed if no session that has a connection has it.
    public var idleScopeTime: Duration = .seconds(60)
    /// The time for which a fetch waits for a scope to be opened, before the client is told to ask again later.
    public var scopeOpeningTime: Duration = .seconds(30)
    /// The time that a client may take for the opening handshake.
    public var handshakeTimeout: Duration = .seconds(10)
    /// The time after which a procedure that has not committed has failed, and its task is cancelled.
    public var procedureTime: Duration = .seconds(30)
    /// The origins whose pages may open WebSockets, in addition to the server's own, in the form that browsers send,
    /// such as `https://app.example.org`; `*` allows all. Clients that are not browsers send no origin and are not
    /// restricted.
    public var allowedOrigins: Set<String> = []
    /// The names that `Host` may contain in requests from the same machine, in addition to `localhost`, the machine's
    /// own name and IP addresses. Add the names that a reverse proxy on this machine passes on. Requests with other
    /// names are refused, because the owner of a web page could point a name at the user's machine (DNS rebinding).
    public var allowedHosts: Set<String> = []
    /// The numeric addresses of the reverse proxies in front of the server. The address of a client that comes
    /// through one of these is the last entry of `X-Forwarded-For` that is not itself a trusted proxy: it is the
    /// `remoteAddress` of ``SessionInfo/request``, and counts for the limits per address. A proxy that is not named
    /// here is taken for the client, so that all its clients count as one address.
    public var trustedProxies: Set<String> = []
    /// The limits that keep hostile or broken clients from what others need.
    public var limits = ServerLimits()

    /// Returns the rules for the changes of clients in the scope of a name; nil for none, which is the default: a client
    /// that may write to a scope may then write everything that its classes can hold. Called once for each scope that
    /// begins to be hosted, on the actor on which it lives.
    public var rules: @Sendable (_ scope: String) -> ScopeRules? = { _ in nil }

    /// Makes a configuration with default values.
    public init() {}

    var engine: ServerEngine.Configuration {
      var result = ServerEngine.Configuration()
      result.expiry = sessionExpiry
      result.procedureTime = procedureTime
      result.handshakeTimeout = handshakeTimeout
      // Half of it may be on its way before the client acknowledges anything.
      result.keptLimit = .init(bytes: max(keptBytes, 4 << 20))
      result.rememberedClients = rememberedClients
      result.absentDecisionBytes = limits.absentDecisionBytes
      result.rules = rules
      result.limits = limits
      result.openScopes = .init(
        count: maximumOpenScopes, idleTime: idleScopeTime, openingTime: scopeOpeningTime)
      return result
    }

    var proxies: TrustedProxies { TrustedProxies(trustedProxies) }

    var origins: OriginPolicy { OriginPolicy(origins: allowedOrigins, hosts: allowedHosts) }

    /// The bounds of the sockets that are no WebSockets yet. A proxy may have many: it is the clients behind it that
    /// count by address, once their requests have been read.
    func waitingSockets(
      _ reached: @escaping @Sendable (ServerLimit) -> Void
    ) -> WaitingSocketLimits {
      var result = WaitingSocketLimits()
      result.total = limits.handshakes
      result.perAddress = limits.handshakesPerAddress
      result.group = { [proxies] in proxies.contains($0) ? nil : ClientAddress.group(of: $0) }
      result.onDrop = { reached($0 ? .handshakesPerAddress : .handshakes) }
      return result
    }

    /// The configuration of a connection that has no session yet. Until the server has time for it, nothing is taken
    /// from it, and little is read.
    var socket: WebSocketConfiguration {
      WebSocketConfiguration(
        limits: socketLimits(upTo: min(maximumMessageBytes, LargeMessageGate.threshold)),
        maximumInboundBytes: LargeMessageGate.threshold, maximumOutboundBytes: maximumOutboundBytes,
        slowConsumerPolicy: .abort)
    }

    /// The limits of a connection that has a session.
    var socketLimits: WebSocketLimits { socketLimits(upTo: maximumMessageBytes) }

    private func socketLimits(upTo bytes: Int) -> WebSocketLimits {
      WebSocketLimits(maximumFrameBytes: bytes, maximumMessageBytes: bytes)
    }
  }
}
