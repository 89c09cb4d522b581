/// The moment at which appended records must be on stable storage.
public enum LogDurability: Sendable, Hashable {
  /// Each append is written and synced at once, and durable after that. Records appended while the
  /// disk is busy share the next sync, so many concurrent appends cost hardly more than a single
  /// one.
  case everyChangeSet
  /// Each append is written within moments, which survives a killed process, and synced together
  /// with all others after this interval at the latest, which survives a power failure. It is durable
  /// after that sync.
  ///
  /// Clients and servers wait until a change set is durable: with such a log a server accepts a
  /// change set, and tells the other clients of it, up to this much later. An interval of some
  /// hundredths of a second spares syncs; one of seconds is felt by users.
  case interval(Duration)
  /// Each append is written within moments. It is synced when the system decides, by
  /// ``FragmentLog/sync()``, or when nothing was appended for a second or two. An append counts as
  /// durable once it is written. A power failure may take it, although a server has told its clients
  /// of it: the server then goes on in a new epoch.
  case none
}

/// The amount of history that a log keeps behind a snapshot.
public enum LogHistory: Sendable, Hashable {
  /// Keeps all records.
  case all
  /// Keeps at least this number of the last records, and the snapshot before them.
  case last(Int)
  /// Keeps only the last snapshot and the records after it.
  case nothing
}

/// The settings of a log.
public struct LogConfiguration: Sendable, Hashable {
  /// The moment at which appends are durable. The default is ``LogDurability/everyChangeSet``.
  public var durability: LogDurability
  /// The records that are kept behind a snapshot. Unless set, the log of a scope that a client syncs keeps nothing that
  /// its last snapshot contains, and every other log keeps everything.
  public var history: LogHistory?
  /// The size in bytes at which a segment ends and the next one begins. The default is 16 MiB.
  package var segmentBytes: Int
  /// The maximum number of bytes that may wait to be written while the disk is slow or full;
  /// appending more throws ``LogError/backlog(bytes:)``. The default is 256 MiB.
  package var backlogBytes: Int
  /// A Boolean value that indicates whether a log is opened although records at its end are missing
  /// that were known to be durable. The default is false: opening throws ``LogError/damaged(_:)``.
  ///
  /// Set it to continue with the remaining records, for example after a disk has lost the end of a
  /// file. ``LogOpening/losses`` reports the missing records, once; the next record gets the
  /// sequence number of the first missing one. A server that continues this way must begin a new
  /// epoch with `FragmentLog.beginEpoch()` before it hosts the scope, because its clients may have
  /// seen the missing records. A `ScopeDirectory` does so by itself.
  public var acceptsLoss: Bool

  /// Makes a configuration.
  public init(
    durability: LogDurability = .everyChangeSet, history: LogHistory? = nil,
    acceptsLoss: Bool = false
  ) {
    self.init(
      durability: durability, history: history, segmentBytes: 16 << 20, backlogBytes: 256 << 20,
      acceptsLoss: acceptsLoss)
  }

  /// Makes a configuration with bounds of its own.
  package init(
    durability: LogDurability = .everyChangeSet, history: LogHistory? = nil,
    segmentBytes: Int, backlogBytes: Int = 256 << 20,
    acceptsLoss: Bool = false
  ) {
    self.durability = durability
    self.history = history
    self.segmentBytes = segmentBytes
    self.backlogBytes = backlogBytes
    self.acceptsLoss = acceptsLoss
  }
}
