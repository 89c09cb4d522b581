extension SimulationConfiguration {
  /// The limits of the engines. Most are small, so that a short run reaches them.
  public struct Limits: Sendable, Hashable, Codable {
    /// The number of undecided change sets that a client sends ahead.
    public var sendWindow = 8
    /// The number of messages after which a client or the server acknowledges, even if no ping is
    /// due.
    public var acknowledgeAfter = 16
    /// The number of messages that the server keeps for a session that does not acknowledge them.
    /// It ends a session that exceeds this.
    public var keptMessages = 48
    /// The number of other clients' change sets that the server sends a client before the client acknowledges them. Later
    /// ones wait. It must not be smaller than ``acknowledgeAfter``.
    public var streamWindow = 24
    /// The approximate size of a server's message with a part of a full state, in bytes.
    public var stateBytes = 1_000
    /// The approximate size of a server's frame, in bytes.
    public var frameBytes = 3_000
    /// The number of its last change sets that the server can send to a client that was away, at
    /// least. A client that has missed more gets the full state.
    public var streamLength = 4_096
    /// The approximate size of the last change sets that the server can send to a client that was
    /// away, at least, in bytes; of a larger scope, see ``streamStates``. A client that has missed
    /// more gets the full state.
    public var streamBytes = 256 << 10
    /// The number of full states of a larger scope that take as many bytes as those change sets.
    public var streamStates = 2
    /// The number of clients without a session whose decisions the server remembers.
    public var rememberedClients = 100_000
    /// The size of the slices in which the server judges a change set of more than two of them, in fragments, operations and
    /// elements.
    public var sliceSize = 1_000
    /// The size of the decisions, in bytes, that the server keeps for a client until it says that it knows them; nil for any.
    public var unknownDecisionBytes: Int?
    /// The size of the decisions, in bytes, that the server keeps for all clients without a session together; nil for any.
    public var absentDecisionBytes: Int?
    /// The number of decisions on change sets whose sequences it has not reached that a client leaves to one record.
    public var decisionsPerRecord = 2
    /// The number of decisions that a client makes the server keep at most. It must not be smaller than
    /// ``decisionsPerRecord``.
    public var unknownDecisions = 10_000
    /// The number of its own change sets that a client remembers, to notice when others overwrite
    /// them.
    public var ownWrites = 256
    /// The number of departed models that a client keeps. Above it, those that no pending change set needs are dropped.
    public var departedModels = 1024
    /// The number of messages that a client keeps while its app pauses incoming changes.
    public var pausedMessages = 1_000

    /// Creates the limits of the presets.
    public init() {}

    /// True if the server may forget what it has decided for a client that has not come back yet.
    var mayForget: Bool { rememberedClients < 100 || absentDecisionBytes != nil }
  }
}
