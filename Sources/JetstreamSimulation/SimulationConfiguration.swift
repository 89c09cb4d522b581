/// The size of a simulation, the rates of edits and faults, and the promises that are checked.
public struct SimulationConfiguration: Sendable, Hashable, Codable {
  /// The rate of each fault: the share of all steps in which it happens, from 0 to 1.
  public struct Faults: Sendable, Hashable, Codable {
    /// The connection of a client is cut; everything in transit on it is lost.
    public var cut = 0.0
    /// A client is unreachable for a while, but keeps its session. What was sent waits.
    public var partition = 0.0
    /// A client is unreachable until its session has expired on the server.
    public var expiry = 0.0
    /// A frame is lost, although its connection stays open.
    public var loss = 0.0
    /// A frame arrives twice.
    public var duplication = 0.0
    /// A frame is overtaken by the next one.
    public var reordering = 0.0
    /// A client loses its memory and starts again, from its disk if it has one. Frames that it has
    /// sent may arrive after that.
    public var clientCrash = 0.0
    /// The server loses its memory and starts again, from its journal if it has one.
    public var serverCrash = 0.0
    /// The server loses its memory and starts again from an old copy of its journal, under a new
    /// epoch: no promise covers the change sets that were accepted since the copy was made. Clients
    /// have to notice the loss, and send their pending change sets again or take them back. A
    /// server without a journal starts anew.
    public var historyLoss = 0.0

    /// The next operation of some kind on the disk of a client or of the server fails, if there is
    /// a disk. The log tries it again.
    public var disk = 0.0

    /// Creates rates without faults.
    public init() {}

    /// The rate of the fault with this name, such as `cut`; nil if there is no such fault. Setting
    /// the rate of an unknown fault, or setting nil, does nothing.
    public subscript(name: String) -> Double? {
      get { Self.rate(name).map { self[keyPath: $0] } }
      set { if let rate = Self.rate(name), let newValue { self[keyPath: rate] = newValue } }
    }

    /// The names of all faults.
    public static let names = [
      "cut", "partition", "expiry", "loss", "duplication", "reordering", "clientCrash",
      "serverCrash", "historyLoss", "disk",
    ]

    private static func rate(_ name: String) -> WritableKeyPath<Faults, Double>? {
      switch name {
      case "cut": \.cut
      case "partition": \.partition
      case "expiry": \.expiry
      case "loss": \.loss
      case "duplication": \.duplication
      case "reordering": \.reordering
      case "clientCrash": \.clientCrash
      case "serverCrash": \.serverCrash
      case "historyLoss": \.historyLoss
      case "disk": \.disk
      default: nil
      }
    }
  }

  /// Guarantees that a run checks, besides the equality of all replicas at rest.
  public struct Promises: OptionSet, Sendable, Hashable, Codable {
    /// The bits of the set.
    public let rawValue: Int

    /// Creates a set from its bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Concurrent additions to a counter add up. Version 1 of the protocol sends counters as
    /// values, and cannot promise that.
    public static let countersAddUp = Promises(rawValue: 1)
    /// A change set is decided once, even if the session that has carried it is lost. Version 1
    /// sends undecided change sets again, and cannot promise that.
    public static let exactlyOnce = Promises(rawValue: 2)
    /// A model that was put into a collection stays there until another change set removes it, and
    /// one that was removed stays out until another change set inserts it. Version 1 sends
    /// collections as values: a change set after a rejected one also does what that would have
    /// done, and concurrent insertions and removals may have another result. In any case, a run
    /// checks that a new model is there when the change set that adds it is accepted.
    public static let collectionsKeepIntents = Promises(rawValue: 4)

    /// Accepted change sets outlive a crash of the server, which has a journal. Only a loss of its
    /// history takes them back.
    public static let serverIsDurable = Promises(rawValue: 8)

    /// The change sets that a client has made outlive its crash: it has a log.
    public static let clientsAreDurable = Promises(rawValue: 16)

    /// All promises.
    public static let all: Promises = [
      .countersAddUp, .exactlyOnce, .collectionsKeepIntents, .serverIsDurable, .clientsAreDurable,
    ]
    /// The promises by the names that `simulate` knows.
    public static let named: [String: Promises] = [
      "counters": .countersAddUp, "once": .exactlyOnce, "collections": .collectionsKeepIntents,
      "durable": .serverIsDurable, "outbox": .clientsAreDurable, "all": .all,
    ]
  }

  /// The name of the configuration in reports.
  public var name: String
  /// The number of clients.
  public var clients = 3
  /// The clients, numbered from 0, that never join. Shrinking leaves out clients in this way, so
  /// that what happens to the others stays the same.
  public var absent: Set<Int> = []
  /// The number of events in a schedule.
  public var steps = 200
  /// The time that a frame takes to arrive, in milliseconds. Frames of a connection stay in order.
  public var delay = 1...120
  /// The time that the engines wait for a session to begin, in milliseconds. A connection that
  /// takes longer, because its client is unreachable, is closed, and the client tries again.
  public var handshakeTimeout = 12_000
  /// The time that a disk takes for each piece of work, in milliseconds.
  public var diskDelay = 0...40
  /// The length of a step in which nothing but time passes, in milliseconds.
  public var pause = 1...300
  /// The share of steps that are edits of a client.
  public var edits = 0.45
  /// The share of steps that are edits of the server.
  public var serverEdits = 0.04
  /// The share of steps in which a client runs a scripted edit, if the world has any.
  public var scripts = 0.02
  /// The share of steps in which everything comes to rest and is compared.
  public var rests = 0.01
  /// The share of steps in which a client changes its sync mode.
  public var modes = 0.0
  /// The share of steps in which a client syncs, whatever its mode is.
  public var syncs = 0.0
  /// The share of steps in which the app of a client grants or denies the use of the network.
  public var permissions = 0.0
  /// The share of steps in which the app of a client discards a conflict of its ledger, or retries
  /// it.
  public var conflicts = 0.0
  /// The share of steps in which the app of a client pauses or resumes incoming changes.
  public var incomingPauses = 0.0
  /// The share of clients that take back their pending change sets when the server has lost its
  /// history. The others send them again.
  public var discarding = 0.0
  /// The rates at which edits use features that not every app uses.
  public var features = Features()
  /// The share of the clients whose notifications are checked.
  public var watched = 0.34
  /// The share of the rests that wait until throttled properties are sent, instead of flushing
  /// them.
  public var patience = 0.5
  /// True if the sizes of the engines' tables are checked at the end of a run.
  public var checksTables = false
  /// The limits of the engines.
  public var limits = Limits()
  /// The share of clients that speak version 1 of the protocol.
  public var oldClients = 0.0
  /// The share of runs in which the server speaks version 1 of the protocol, and with it all
  /// clients.
  public var oldServers = 0.0
  /// The largest number of old browser clients, in addition to the other clients. Their number is
  /// derived from the seed.
  public var browsers = 0
  /// The share of steps that are edits of an old browser client, if there is one.
  public var browserEdits = 0.0
  /// The share of the server's starts after which it takes up to three seconds until clients can
  /// fetch the scope. Not used with old browser clients, which do not ask again.
  public var lateOpenings = 0.0
  /// The share of runs in which the server keeps its history in a storage that servers share, in place of a log on its
  /// disk. Requests and answers can be lost, and those of a server that has crashed may arrive later.
  public var sharing = 0.0
  /// The share of runs in which the server asks its app for the rights of clients, and has rules for what they may change, if
  /// the world has some.
  public var guarding = 0.0
  /// The share of steps in which such a server gives a client other rights: to read and write, to read only, or none. All
  /// clients have all rights again when everything comes to rest.
  public var revocations = 0.0
  /// The share of steps in which a client calls the procedure of the world, if it has one. The server's app waits a while
  /// before it decides about most calls.
  public var calls = 0.0
  /// The share of runs in which the server has the scope in another channel of its sessions, as one
  /// that spreads its scopes over several threads. Not used with peers of version 1, which know no
  /// channels.
  public var spread = 0.0
  /// The share of runs in which the server opens its scope when a client fetches it. Not used with
  /// peers of version 1, nor together with ``spread``, nor without a journal.
  public var opening = 0.0
  /// The share of steps in which such a server closes its scope, in the middle of everything.
  public var closings = 0.0
  /// The rates of the faults.
  public var faults = Faults()
  /// The promises that are checked.
  public var promises: Promises = []

  /// Creates a configuration without faults and promises.
  public init(name: String = "custom") { self.name = name }

  /// No faults: the network only delays frames.
  public static let calm = SimulationConfiguration(name: "calm")

  /// The faults of any network: cuts, partitions and expired sessions. Clients change modes, and
  /// the server has a journal.
  public static let rough: SimulationConfiguration = {
    var configuration = SimulationConfiguration(name: "rough")
    configuration.faults.cut = 0.03
    configuration.faults.partition = 0.02
    configuration.faults.expiry = 0.006
    configuration.modes = 0.02
    configuration.syncs = 0.02
    configuration.permissions = 0.006
    configuration.conflicts = 0.01
    configuration.incomingPauses = 0.02
    // The journal tells what was decided, even where no answer does.
    configuration.promises = [
      .countersAddUp, .exactlyOnce, .collectionsKeepIntents, .serverIsDurable,
    ]
    return configuration
  }()

  /// All faults and all promises.
  public static let everything: SimulationConfiguration = {
    var configuration = rough
    configuration.name = "everything"
    configuration.faults.loss = 0.01
    configuration.faults.duplication = 0.01
    configuration.faults.reordering = 0.01
    configuration.faults.clientCrash = 0.006
    configuration.faults.serverCrash = 0.004
    configuration.faults.historyLoss = 0.003
    configuration.faults.disk = 0.01
    configuration.lateOpenings = 0.3
    configuration.spread = 0.3
    configuration.sharing = 0.3
    configuration.guarding = 0.4
    configuration.revocations = 0.01
    configuration.calls = 0.04
    configuration.opening = 0.4
    configuration.closings = 0.01
    configuration.discarding = 0.3
    configuration.promises = .all
    configuration.handshakeTimeout = 2_000
    return configuration
  }()

  /// All faults, with peers that speak version 1 of the protocol: clients and servers that use the
  /// current engines, and old browser clients. Such runs do not check what version 1 cannot
  /// promise.
  public static let old: SimulationConfiguration = {
    var configuration = everything
    configuration.name = "old"
    configuration.oldClients = 0.4
    configuration.oldServers = 0.2
    configuration.browsers = 2
    configuration.browserEdits = 0.12
    // Browsers show what they are told over their own changes that are still being judged.
    configuration.limits.sliceSize = 2
    return configuration
  }()

  /// The presets by name.
  public static let presets = [calm, rough, everything, old]
}
