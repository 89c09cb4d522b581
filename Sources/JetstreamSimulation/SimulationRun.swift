import Foundation
import Jetstream

/// One run of a schedule: the server, the clients, the network between them, and the references that check
/// them.
final class SimulationRun {
  let seed: UInt64
  let world: SimulationWorld
  let configuration: SimulationConfiguration
  /// The versions of the protocol that the peers speak.
  let versions: SimulatedVersions
  let sabotage: Sabotage
  let network: SimulatedNetwork
  /// The server's disk; nil if the server does not promise to be durable.
  let journal: SimulatedJournal?
  private(set) var server: SimulatedServer!
  let rights = SimulatedRights()
  var clients: [Int: SimulatedClient] = [:] {
    didSet { present = (0..<configuration.clients).compactMap { clients[$0] } }
  }
  /// The clients that take part, by number.
  private(set) var present: [SimulatedClient] = []
  /// The clients' disks by the clients' numbers; empty if the clients do not promise to be durable.
  var outboxes: [Int: SimulatedOutbox] = [:]
  /// All clients by id, including those whose process has ended.
  var clientsByID: [UUID: SimulatedClient] = [:]
  private(set) var observer: RawObserver!
  /// The old browser clients. Their numbers in the network differ from those of all other clients.
  var browsers: [OldBrowser] = []
  /// The time at which the server last sent each property, if a check needs it.
  var told: [StreamReference.Key: Duration] = [:]
  var intents: IntentReference
  /// The submitted change sets, by the session and the index of the message that carries them.
  var submissions: [String: (set: SubmittedSet, client: SimulatedClient, sent: [PlainJSON])] = [:]
  /// The indexes of the messages with which the server has taken the scope from clients, by session.
  var leaves: [String: Set<Int>] = [:]
  /// The indexes of the messages with which the server has answered them, by the same keys.
  var replies: [String: Int] = [:]
  /// The sequences of a client's own change sets, as replies have told them since it fetched the scope, by session.
  var ownSequences: [String: Set<Int>] = [:]
  private(set) var problems: [SimulationFailure.Problem] = []
  /// The trace; empty unless the run is traced.
  private(set) var trace: [String] = []
  private let isTracing: Bool
  /// A hash of all frames that the network has delivered, if the run is traced.
  private(set) var digest: UInt64 = 0xCBF2_9CE4_8422_2325
  private var kinds: [String: [String: PropertyKind]] = [:]
  private var tokens = 0
  /// The number of times that a client or the server was started.
  private(set) var starts = 0
  private var serverSets = 0
  /// Returns the time that the server takes to encode a part of a state.
  private var encodingTime: () -> Duration = { .zero }
  /// The number of rests that were begun.
  var rests = 0
  private var serverHasEdited = false
  private var observerPing: Duration = .zero
  /// The epochs of the server, in order; all but the last one are lost.
  private(set) var epochs: [String] = []

  var now: Duration {
    get { network.now }
    set { network.now = newValue }
  }

  init(
    seed: UInt64, world: SimulationWorld, configuration: SimulationConfiguration,
    sabotage: Sabotage,
    isTracing: Bool
  ) {
    self.seed = seed
    self.world = world
    let versions = SimulatedVersions(seed: seed, configuration)
    self.versions = versions
    self.configuration = configuration.keeping(versions)
    self.sabotage = sabotage
    self.isTracing = isTracing
    network = SimulatedNetwork(seed: seed, delay: configuration.delay)
    var sharing = SimulationRandom(seed: seed, branch: 23)
    journal =
      configuration.promises.contains(.serverIsDurable)
      ? SimulatedJournal(
        random: SimulationRandom(seed: seed, branch: 6), delay: configuration.diskDelay,
        isShared: sharing.chance(configuration.sharing),
        forgets: sabotage.losesSafeRecords) : nil
    intents = IntentReference(configuration.promises, isGuarded: versions.areGuarded)
    observer = RawObserver(kinds: { [unowned self] in kinds(of: $0) }) { [unowned self] in
      server.received(RawObserver.connection, [$0], now: now)
    }
    startServer()
    for number in 0..<configuration.clients where !configuration.absent.contains(number) {
      start(makeClient(number))
    }
    for client in present { join(client) }
    startBrowsers()
  }

  /// Puts a client in the place of the one with the same number, if there was one.
  func start(_ client: SimulatedClient) { clients[client.number] = client }

  func join(_ client: SimulatedClient) {
    client.join(now: now, epochs: epochs)
    clientsByID[client.id] = client
  }

  func client(_ number: Int) -> SimulatedClient? { clients[number] }

  /// Releases the clients, the server and the observer, so that models and engines hold each other no longer.
  func end() {
    clients = [:]
    clientsByID = [:]
    server = nil
    observer = nil
  }

  // MARK: Starts

  /// Starts the server.
  ///
  /// - Parameter isRestored: whether it starts from an old copy of its journal. Then only what that copy holds
  ///   is expected of it.
  func startServer(isRestored: Bool = false) {
    let app = { [unowned self] (ticker: Ticker) -> SimulatedApp in
      var random = SimulationRandom(seed: seed, branch: 3)
      let scope = Scope(
        name: world.name, root: world.makeRoot(&random), models: world.models, ticker: ticker)
      if starts == 0 || journal == nil { world.fill(scope, &random) }
      return SimulatedApp(world, scope, SimulationProcess(client: nil, configuration, seed: seed))
    }
    let events = SimulatedServer.Events(
      now: { [unowned self] in now }, app: app, changed: { [unowned self] in serverChanged($0) },
      isSafe: { [unowned self] in take($0) }, opened: { [unowned self] in bringObserver() },
      awaited: { [unowned self] in bringObserver() })
    server = SimulatedServer(
      version: versions.server, isSpread: versions.areSpread, opensScope: versions.opensScope,
      openings: SimulationRandom(seed: seed, branch: 22, starts),
      handshake: configuration.handshakeTimeout, limits: configuration.limits, events: events,
      procedure: world.procedure, requests: SimulationRandom(seed: seed, branch: 25, starts),
      journal: journal, rules: versions.areGuarded ? world.rules : nil,
      access: versions.areGuarded ? { [rights] in rights.answer(for: $0) } : nil,
      makeToken: { [unowned self] in
        tokens += 1
        return "session\(tokens)"
      },
      send: { [unowned self] id, frame in serverSends(frame, on: id) },
      probe: { [unowned self] id in network.send(OldBrowser.probe, on: id) },
      close: { [unowned self] id, code, reason in
        note("server closes connection \(id): \(code) \(reason)")
        network.close(id, code: code, reason: reason)
      })
    if server.epoch != epochs.last { epochs.append(server.epoch) }
    bringObserver()
    var random = SimulationRandom(seed: seed, branch: 20, starts)
    encodingTime = { .milliseconds(random.number(in: 0...40)) }
    server.encodingTime = encodingTime
    openLate()
    // Without a journal, or from an old copy, only what the server has now is expected of it.
    if starts == 0 || isRestored || !configuration.promises.contains(.serverIsDurable) {
      intents = IntentReference(configuration.promises, isGuarded: versions.areGuarded)
      intents.begin(with: observer.stream, kinds(of:))
    }
    starts += 1
  }

  /// Has the observer fetch the scope. It has to know all that the server has before anything happens.
  private func bringObserver() {
    server.encodingTime = { .zero }
    server.opened(RawObserver.connection, token: nil, now: now)
    observer.join()
    observer.fetch(world.name)
    observer.acknowledge()
    server.settle(now: now)
    server.encodingTime = encodingTime
  }

  /// Closes the server's scope. It is opened again when a client fetches it, or when none has for a while.
  func closeScope() {
    guard versions.opensScope, server.isOpen else { return }
    server.closed(RawObserver.connection, now: now)
    server.closeScope()
  }

  /// Makes the server refuse its scope for a while, after some of its starts. Once every client has had the
  /// scope, the server may leave out when to ask again: such a client asks again by itself.
  private func openLate() {
    var random = SimulationRandom(seed: seed, branch: 15, starts)
    guard configuration.browsers == 0, random.chance(configuration.lateOpenings) else { return }
    let time = now + .milliseconds(random.number(in: 1...3_000))
    let saysWhen = random.chance(0.5)
    server.open(at: time) { [unowned self] in saysWhen || !present.allSatisfy(\.hasFetched) }
    note("the server has its scope in \(time - now)")
  }

  func makeClient(_ number: Int) -> SimulatedClient {
    starts += 1
    let predecessor = clients[number]
    if configuration.promises.contains(.clientsAreDurable), outboxes[number] == nil {
      outboxes[number] = SimulatedOutbox(
        random: SimulationRandom(seed: seed, branch: 7, number), delay: configuration.diskDelay)
    }
    let client = SimulatedClient(
      number: number, version: versions.client(number),
      handshake: configuration.handshakeTimeout, outbox: outboxes[number],
      predecessor: predecessor,
      app: { ticker in
        var random = SimulationRandom(seed: seed, branch: 4, number, starts)
        let scope = Scope(
          name: world.name, root: world.makeRoot(&random),
          models: world.models + world.clientModels, ticker: ticker)
        scope.flush()
        return SimulatedApp(
          world, scope, SimulationProcess(client: number, configuration, seed: seed))
      }, policy: policy(of: number), limits: configuration.limits, isWatched: isWatched(number),
      random: SimulationRandom(seed: seed, branch: 5, number, starts),
      connect: { [unowned self] connection, token in
        note("client \(number) connects" + (token.map { " to go on with \($0)" } ?? ""))
        network.connect(number, connection: connection, token: token)
      }, send: { [unowned self] in clientSends($1, $0) },
      disconnect: { [unowned self] in
        note("client \(number) leaves its connection")
        network.disconnect(number)
      })
    return client
  }

  private func policy(of number: Int) -> HistoryLoss {
    var random = SimulationRandom(seed: seed, branch: 9, number)
    return random.chance(configuration.discarding) ? .discard : .recover
  }

  private func isWatched(_ number: Int) -> Bool {
    var random = SimulationRandom(seed: seed, branch: 11, number)
    return random.chance(configuration.watched)
  }

  func kinds(of className: String) -> [String: PropertyKind] {
    if let known = kinds[className] { return known }
    let found = server.kinds(of: className)
    kinds[className] = found
    return found
  }

  // MARK: Sending

  private func serverSends(_ frame: [UInt8], on id: Int) {
    if id == RawObserver.connection {
      noteTold(frame)
      return observer.received(frame)
    }
    if let messages = messages(in: frame, thatName: Self.words.ofServer) {
      noteReplies(in: messages, on: id)
    }
    checkAccess(of: frame, on: id)
    network.send(frame, on: id)
  }

  private func clientSends(_ frame: [UInt8], _ client: SimulatedClient) {
    if let messages = messages(in: frame, thatName: Self.words.ofClients) {
      noteSubmissions(in: messages, by: client)
      checkSafety(of: messages, by: client)
    }
    network.send(frame, from: client.number)
  }

  /// Returns the messages of a frame if one of `words` occurs in it; the other frames are not worth reading.
  private func messages(in frame: [UInt8], thatName words: [[UInt8]]) -> [PlainJSON]? {
    occurs(anyOf: words, in: frame) ? PlainJSON(frame)?.messages : nil
  }

  /// The types of the messages that are worth reading, as frames contain them.
  private static let words = (
    ofServer: [
      Array("\"ScopeSyncReply\"".utf8), Array("\"ScopeSync\"".utf8),
      Array("\"SessionCreateReply\"".utf8), Array("\"ScopeFetchReply\"".utf8),
      Array("\"ScopeLeave\"".utf8),
    ],
    ofClients: [Array("\"ScopeSync\"".utf8)]
  )

  private func serverChanged(_ set: ChangeSet) {
    let made = SubmittedSet(
      client: nil, place: serverSets, id: set.id, isAtomic: set.isAtomic,
      fragments: set.fragments)
    serverSets += 1
    if journal == nil { acceptOwn(made) } else { server.noteOwn(made) }
  }

  /// Applies a record of the server that has become durable to the references: from now on it counts.
  func take(_ content: SimulatedJournal.Content) {
    if let set = content.own { acceptOwn(set) }
    if let decision = content.decision { accept(decision, effective: content.fragments) }
    if content.own == nil, content.decision == nil { acceptUnnumbered(content.fragments) }
  }

  /// Applies a change set of the server's own to the reference.
  func acceptOwn(_ set: SubmittedSet) {
    serverHasEdited = true
    for intent in set.intents {
      // Changes that the server's app makes to a model right before it removes the model are in no change set.
      // Clients see them if one of them brings the model back.
      let held = intent.values.keys.compactMap {
        observer.stream.models[intent.uuid]?.properties[$0]?.text
      }
      for element in intent.removed + held where observer.stream.models[element] != nil {
        intents.forget(observer.stream.reachable(from: element, kinds(of:)))
      }
      intents.accept(
        intent, sent: intent.values, bases: [:], of: set, name: { $0 }, kinds(of: intent.className))
    }
  }

  // MARK: Time

  /// Lets time pass, and delivers everything that is due by then.
  func pass(_ duration: Duration) {
    let end = now + duration
    deliver()
    while now < end, problems.isEmpty {
      var next = min(end, now + .milliseconds(250))
      for due in [network.nextArrival, server.nextDeadline] { next = min(next, due ?? next) }
      for client in present { next = min(next, client.nextDeadline ?? next) }
      advance(to: min(max(next, now + .milliseconds(1)), end))
      deliver()
    }
  }

  private func advance(to time: Duration) {
    let step = time - now
    now = time
    server.settle(now: now)
    server.advance(by: step, to: now)
    for client in present { client.advance(by: step, to: now) }
    for browser in browsers { browser.advance(to: now) }
    if now >= observerPing {
      observer.ping()
      observerPing = now + .milliseconds(Simulation.Times.ping)
    }
    observer.acknowledge()
  }

  private func deliver() {
    var isServerTurning = false
    func endServerTurn() {
      guard isServerTurning else { return }
      isServerTurning = false
      server.endTurn()
      checkIntents()
    }
    while problems.isEmpty {
      guard let (link, toServer, packet) = network.next() else {
        if !isServerTurning { return }
        endServerTurn()
        continue
      }
      if isTracing { noteArrival(link, toServer, packet) }
      // The server handles the frames of several clients that arrive at the same time in one turn.
      if case (.frame, true) = (packet, toServer) {} else { endServerTurn() }
      if deliver(packet, toServer, link) { continue }
      guard let client = clients[link.client] else { continue }
      switch (packet, toServer) {
      case (.open, true):
        network.accept(link)
        server.opened(link.id, token: link.token, now: now)
      case (.frame(let frame), true):
        let frames = [frame] + network.nextFrames(of: link)
        server.received(
          link.id,
          frames.flatMap { sabotage.frames($0, true, link.client) }.map(readByServer), now: now,
          endsTurn: false)
        isServerTurning = true
      case (.close, true): server.closed(link.id, now: now)
      case (.open, false): client.opened(link.connection, now: now)
      case (.frame(let frame), false):
        for frame in sabotage.frames(frame, false, link.client) {
          client.received(link.connection, frame, now: now)
        }
      case (.close(let code, let reason), false):
        client.closed(link.connection, code: code, reason: reason, now: now)
      }
      observer.acknowledge()
    }
  }

  // MARK: Notes

  /// Checks that the changes that were accepted since the last call are in the server's stream.
  func checkIntents() {
    // Until the scope is open again, the observer does not see what becomes durable.
    guard server.isOpen else { return }
    if serverHasEdited {
      serverHasEdited = false
      intents.forgetAll(but: observer.reachable(kinds(of:)))
    }
    let found = intents.problems(in: observer.stream, reachable: observer.reachable(kinds(of:)))
    for problem in found { report(.intent, problem) }
  }

  /// Reports a problem, which ends the run.
  func report(_ kind: SimulationFailure.Kind, _ text: String) {
    problems.append(SimulationFailure.Problem(kind: kind, text: text))
  }

  func note(_ text: @autoclosure () -> String) {
    guard isTracing else { return }
    let milliseconds = Int(now / .milliseconds(1))
    let (seconds, rest) = milliseconds.quotientAndRemainder(dividingBy: 1000)
    let fraction = String(1000 + rest).dropFirst()
    trace.append("\(seconds).\(fraction) s  \(text())")
  }

  private func noteArrival(
    _ link: SimulatedNetwork.Link, _ toServer: Bool, _ packet: SimulatedNetwork.Packet
  ) {
    let way = toServer ? "client \(link.client) -> server" : "server -> client \(link.client)"
    switch packet {
    case .open: note("\(way): connection \(link.id) is open")
    case .close(let code, let reason):
      note("\(way): connection \(link.id) is closed \(code) \(reason)")
    case .frame(let frame):
      for byte in frame { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01B3 }
      note("\(way): \(FrameWords.describe(frame))")
    }
  }
}
