extension SimulationConfiguration {
  /// The limits of the engines: small, so that a short run reaches them.
  public struct Limits: Sendable, Hashable, Codable {
    /// How many undecided change sets a client sends ahead.
    public var sendWindow = 8
    /// After how many messages a client or the server acknowledges, although no ping is due.
    public var acknowledgeAfter = 16
    /// How many messages the server keeps for a session that does not acknowledge them.
    public var keptMessages = 48
    /// About how large a message of the server with a part of a full state is, in bytes.
    public var stateBytes = 1_000
    /// About how large a frame of the server becomes, in bytes.
    public var frameBytes = 3_000
    /// How many change sets the server can tell clients that were away.
    public var streamLength = 4_096
    /// How many clients without a session the server remembers.
    public var rememberedClients = 100_000
    /// How many of its own change sets a client remembers, to notice that they were overwritten.
    public var ownWrites = 256
    /// How many messages a client keeps while the app pauses what the server sends.
    public var pausedMessages = 1_000

    /// Makes the limits of the presets.
    public init() {}
  }
}
