/// How large a simulation is, and what goes wrong in it.
public struct SimulationConfiguration: Sendable, Hashable, Codable {
  /// How often each fault happens: the share of all steps, from 0 to 1.
  public struct Faults: Sendable, Hashable, Codable {
    /// A connection is cut, with what is on its way.
    public var cut = 0.0
    /// A client is out of reach for a time that its session outlives. What was sent waits.
    public var partition = 0.0
    /// A client is out of reach until the server has forgotten its session.
    public var expiry = 0.0
    /// A frame is lost, although its connection goes on.
    public var loss = 0.0
    /// A frame arrives twice.
    public var duplication = 0.0
    /// A frame is overtaken by the next one.
    public var reordering = 0.0
    /// A client's memory is gone; it starts anew. What it has sent may arrive after that.
    public var clientCrash = 0.0
    /// The server's memory is gone; it starts anew.
    public var serverCrash = 0.0
    /// The server's memory is gone, and an old copy stands in place of its journal, under a new epoch: what
    /// was accepted since the copy was made is gone, and nobody promises it any more. Clients have to
    /// notice, and send again what was not decided for them. A server without a journal starts anew.
    public var historyLoss = 0.0

    /// What a client's or the server's disk is asked for next fails, if there is a disk. It is tried again.
    public var disk = 0.0

    /// No faults.
    public init() {}

    /// The rate of a fault by its name, such as `cut`; nil if there is no such fault. Setting one that
    /// there is not does nothing.
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

  /// What has to hold besides that all replicas end equal.
  public struct Promises: OptionSet, Sendable, Hashable, Codable {
    /// The bits.
    public let rawValue: Int

    /// Makes a set of its bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// What several clients add to a counter at the same time adds up. Version 1 of the protocol sends
    /// counters as values, and cannot promise that.
    public static let countersAddUp = Promises(rawValue: 1)
    /// A set is decided once, also if the session that has carried it is lost. Version 1 sends what was
    /// not decided again, and cannot promise that.
    public static let exactlyOnce = Promises(rawValue: 2)
    /// Who was put into a collection stays there until somebody takes it out, and the other way round.
    /// Version 1 sends collections as values: a set that follows a rejected one does what that would have
    /// done, and of what several insert and remove at the same time something else may come. A new model
    /// is looked for in any case when the set that adds it is accepted.
    public static let collectionsKeepIntents = Promises(rawValue: 4)

    /// What a server has accepted outlives its crash: it has a journal. Only a lost history takes something
    /// back.
    public static let serverIsDurable = Promises(rawValue: 8)

    /// What a client has made outlives its crash: it has a log.
    public static let clientsAreDurable = Promises(rawValue: 16)

    /// All of them.
    public static let all: Promises = [
      .countersAddUp, .exactlyOnce, .collectionsKeepIntents, .serverIsDurable, .clientsAreDurable,
    ]
    /// Each by the name that `simulate` knows.
    public static let named: [String: Promises] = [
      "counters": .countersAddUp, "once": .exactlyOnce, "collections": .collectionsKeepIntents,
      "durable": .serverIsDurable, "outbox": .clientsAreDurable, "all": .all,
    ]
  }

  /// What reports call it.
  public var name: String
  /// The number of clients.
  public var clients = 3
  /// Clients, by number from 0, that never join. Shrinking leaves out those that are not needed in this way,
  /// so that what happens to the others stays the same.
  public var absent: Set<Int> = []
  /// The number of events.
  public var steps = 200
  /// How long a frame takes, in milliseconds. Frames of a connection stay in order.
  public var delay = 1...120
  /// How long the engines wait for a session to begin, in milliseconds. Where this is shorter than a client
  /// is out of reach, the server turns the client away, which ends a client of this version for good.
  public var handshakeTimeout = 12_000
  /// How long it takes until what is written to a disk is safe, in milliseconds.
  public var diskDelay = 0...40
  /// How long nothing but the passing of time happens, in milliseconds.
  public var pause = 1...300
  /// The share of steps that are edits of a client.
  public var edits = 0.45
  /// The share of steps that are edits of the server.
  public var serverEdits = 0.04
  /// The share of steps in which a client runs a scripted edit, if the world has any.
  public var scripts = 0.02
  /// The share of steps in which everything comes to rest and is compared.
  public var rests = 0.01
  /// The share of steps in which a client begins to sync in another mode.
  public var modes = 0.0
  /// The share of steps in which a client syncs, whatever its mode is.
  public var syncs = 0.0
  /// The share of steps in which the app of a client lets it use the network, or not any more.
  public var permissions = 0.0
  /// The share of steps in which the app of a client lets go of a conflict, or does again what it is about.
  public var conflicts = 0.0
  /// The share of steps in which the app of a client pauses what the server sends, or lets it go on.
  public var incomingPauses = 0.0
  /// The share of clients that take back what is pending when the server has lost its history. The others send
  /// it again.
  public var discarding = 0.0
  /// How often edits use what not every app uses.
  public var features = Features()
  /// The share of the clients whose notifications are counted.
  public var watched = 0.34
  /// The share of the rests that wait for throttled properties, instead of having them sent at once.
  public var patience = 0.5
  /// Whether the sizes of the engines' tables are compared with their limits at the end.
  public var checksTables = false
  /// The limits of the engines.
  public var limits = Limits()
  /// The share of clients that speak version 1 of the protocol.
  public var oldClients = 0.0
  /// The share of runs in which the server does, and with it all clients.
  public var oldServers = 0.0
  /// The largest number of old browser clients besides the others. How many there are follows from the seed.
  public var browsers = 0
  /// The share of steps that are edits of an old browser client, if there is one.
  public var browserEdits = 0.0
  /// The share of the server's starts after which it takes up to three seconds until the scope can be fetched. A
  /// server with old browser clients, which do not ask again, has its scope at once.
  public var lateOpenings = 0.0
  /// What goes wrong.
  public var faults = Faults()
  /// What has to hold.
  public var promises: Promises = []

  /// Makes a configuration without faults.
  public init(name: String = "custom") { self.name = name }

  /// Nothing but delays.
  public static let calm = SimulationConfiguration(name: "calm")

  /// What any network does: delays, cuts, partitions and sessions that expire.
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
    // What was decided is known from the journal, also where no answer tells it.
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
    configuration.discarding = 0.3
    configuration.promises = .all
    configuration.handshakeTimeout = 2_000
    return configuration
  }()

  /// All faults, with peers of version 1 among the others: clients that have this version's engine, servers, and
  /// old browser clients. In such runs, what version 1 cannot promise is not looked for.
  public static let old: SimulationConfiguration = {
    var configuration = everything
    configuration.name = "old"
    configuration.oldClients = 0.4
    configuration.oldServers = 0.2
    configuration.browsers = 2
    configuration.browserEdits = 0.12
    return configuration
  }()

  /// The presets by name.
  public static let presets = [calm, rough, everything, old]
}
