/// When what is appended to a log has to be on stable storage.
public enum LogDurability: Sendable, Hashable {
  /// Each append is durable once it is written and synced. What is appended while the disk is busy
  /// shares the next sync, so many appenders cost hardly more than one.
  case everyChangeSet
  /// Each append is written within moments, which survives a killed process, and synced with all others after
  /// this time at the latest, which survives a power failure.
  case interval(Duration)
  /// Each append is written within moments and synced when the system likes, or by ``FragmentLog/sync()``. An
  /// append counts as durable once it is written.
  case none
}

/// How much of a log is kept when a snapshot stands for it.
public enum LogHistory: Sendable, Hashable {
  /// Everything, for ever.
  case all
  /// At least so many of the last records, and the snapshot below them.
  case last(Int)
  /// Nothing but the last snapshot and what came after it.
  case nothing
}

/// How a log works.
public struct LogConfiguration: Sendable, Hashable {
  /// When appends are durable. Every append, unless set.
  public var durability: LogDurability
  /// The records that are kept behind a snapshot. Unless set, the log of a scope that a client syncs keeps nothing that
  /// its last snapshot contains, and every other log keeps everything.
  public var history: LogHistory?
  /// A segment that has become this long is followed by another one. 16 MiB, unless set.
  public var segmentBytes: Int
  /// How many bytes may wait to be written, while the disk is slow or full. 256 MiB, unless set.
  public var backlogBytes: Int
  /// A Boolean value that indicates whether a log is opened although records are missing at its end that were known
  /// to be durable. False unless set: opening throws ``LogError/damaged(_:)`` then.
  ///
  /// Set it to go on with what is left, such as after a disk has lost the end of a file. Opening says in
  /// ``LogOpening/losses`` what is missing, once; the next record gets the number of the first one that is gone. A
  /// server that goes on so has to begin another history, by `ScopeLog.beginEpoch()`, before it hosts the scope:
  /// its clients may have seen what is gone.
  public var acceptsLoss: Bool

  /// Makes a configuration.
  public init(
    durability: LogDurability = .everyChangeSet, history: LogHistory? = nil,
    segmentBytes: Int = 16 << 20, backlogBytes: Int = 256 << 20,
    acceptsLoss: Bool = false
  ) {
    self.durability = durability
    self.history = history
    self.segmentBytes = segmentBytes
    self.backlogBytes = backlogBytes
    self.acceptsLoss = acceptsLoss
  }
}
