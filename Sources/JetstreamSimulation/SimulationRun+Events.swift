import Jetstream

/// The performance of events, and the checks that follow them.
extension SimulationRun {
  /// Performs an event, and checks what holds at any time.
  func perform(_ event: SimulationEvent) {
    // A list may be about more clients than take part.
    if let number = event.client {
      guard let client = client(number) else { return }
      note(event.description)
      perform(event, on: client)
      if let client = self.client(number) { sabotage.afterEvent(event, client.scope) }
    } else {
      note(event.description)
      performForAll(event)
    }
    // A client changes only by its own events, by what arrives and by time.
    check(event.client.map { [client($0)].compactMap(\.self) } ?? present)
  }

  private func performForAll(_ event: SimulationEvent) {
    switch event {
    case .serverEdit(let seed):
      guard server.isOpen else { return }
      var random = SimulationRandom(seed: seed, branch: 8)
      let words = server.app.edit(&random)
      note("the server \(words)")
    case .closeScope: closeScope()
    case .pass(let milliseconds): pass(.milliseconds(milliseconds))
    case .rest: rest()
    case .crashServer: crashServer()
    case .loseHistory(let pick): loseHistory(pick)
    case .failDisk(_, let pick): journal?.fail(pick)
    case .browserEdit(let number, let seed): editBrowser(number, seed)
    case .reload(let number): reloadBrowser(number)
    case .edit, .script, .flush, .cut, .partition, .lose, .duplicate, .reorder, .crashClient, .mode,
      .sync, .permission, .conflict, .pauseIncoming, .access, .call:
      break
    }
  }

  private func perform(_ event: SimulationEvent, on client: SimulatedClient) {
    switch event {
    case .edit(let number, let seed):
      var random = SimulationRandom(seed: seed, branch: 6)
      let words = client.app.edit(&random)
      note("client \(number) \(words)")
    case .script(let number, let name, let seed):
      var random = SimulationRandom(seed: seed, branch: 7)
      let words = client.app.run(name, &random)
      note("client \(number) \(words)")
    case .flush: client.scope.flush()
    case .cut(let number): _ = network.cut(number)
    case .partition(let number, let milliseconds):
      network.partition(number, for: .milliseconds(milliseconds))
    case .lose(_, toServer: true, let pick) where client.version == 1:
      dropSet(of: client, pick)
    case .reorder(_, toServer: true, _) where client.version == 1:
      // A server of version 1 does not notice what it does not get.
      break
    case .lose(let number, toServer: false, let pick) where client.version == 1:
      // A client of version 1 notices that it lacks a frame when it gets a numbered message behind it, and not before.
      network.tamper(number, toServer: false) { packets, frames in
        let last = frames.last { packets[$0].isNumbered }
        let noticed = frames.filter { $0 < last ?? 0 }
        if !noticed.isEmpty { packets.remove(at: noticed[pick % noticed.count]) }
      }
    case .lose(let number, let toServer, let pick):
      network.tamper(number, toServer: toServer) { packets, frames in
        packets.remove(at: frames[pick % frames.count])
      }
    case .duplicate(let number, let toServer, let pick):
      network.tamper(number, toServer: toServer) { packets, frames in
        let at = frames[pick % frames.count]
        packets.insert(packets[at], at: at)
      }
    case .reorder(let number, let toServer, let pick):
      network.tamper(number, toServer: toServer, least: 2) { packets, frames in
        let at = pick % (frames.count - 1)
        let (first, second) = (packets[frames[at]].packet, packets[frames[at + 1]].packet)
        packets[frames[at]].packet = second
        packets[frames[at + 1]].packet = first
      }
    case .crashClient(let number): crashClient(number)
    case .mode(_, let mode): client.change(to: mode, now: now)
    case .sync:
      let (place, starts) = (server.position, starts)
      client.sync(now: now) { [unowned self] in
        // Changes that were not durable when the server crashed cannot be expected.
        starts == self.starts ? place : nil
      }
    case .conflict(let number, let pick):
      // Only a traced run evaluates its notes, and the app acts in every run.
      let words = client.lookAtConflicts(pick)
      note("client \(number) \(words)")
    case .permission(_, let isGranted): client.permit(isGranted, now: now)
    case .pauseIncoming(_, let isPaused): client.pauseIncoming(isPaused)
    case .access(_, let access): setAccess(of: client, to: access)
    case .call(_, let seed): call(by: client, seed: seed)
    case .failDisk(let number, let pick): number.flatMap { outboxes[$0] }?.fail(pick)
    case .serverEdit, .closeScope, .browserEdit, .reload, .pass, .rest, .crashServer, .loseHistory:
      break
    }
  }

  /// Checks what holds at any time, for the server and for the clients that may have changed.
  private func check(_ clients: [SimulatedClient]) {
    for problem in journal?.takeProblems() ?? [] { report(.durability, problem) }
    for number in outboxes.keys.sorted() {
      for problem in outboxes[number]?.takeProblems() ?? [] { report(.durability, problem) }
    }
    for problem in server.differencesFromRows.prefix(4) {
      report(.divergence, "Models and rows of the server differ: \(problem)")
    }
    for problem in server.violations.prefix(4) {
      report(.invariant, "A rule of the server is broken: \(problem)")
    }
    for problem in server.checkInvariants().prefix(4) {
      report(.invariant, "An invariant of the server is broken: \(problem)")
    }
    for client in clients {
      for problem in client.checkInvariants() {
        report(.invariant, "An invariant of client \(client.number) is broken: \(problem)")
      }
      for problem in client.wrongState() {
        report(.state, "The sync state of client \(client.number) is wrong: \(problem)")
      }
      for problem in client.takeModeProblems() {
        report(.mode, "Client \(client.number) does not sync as it should: \(problem)")
      }
      for problem in client.watch?.takeProblems(atRest: false) ?? [] {
        report(.notification, "Client \(client.number) notifies wrongly: \(problem)")
      }
      if client.differences > 0 {
        report(.divergence, "Client \(client.number) has found itself not equal")
      }
      if let error = client.fetchError {
        report(.unrest, "Client \(client.number) does not get the scope: \(error)")
      }
    }
    for problem in observer.takeProblems() { report(.stream, problem) }
    checkIntents()
  }

  /// Makes all clients reachable, lets everything arrive and be decided, and compares all replicas.
  func rest() {
    network.heal()
    for client in present {
      setAccess(of: client, to: .readWrite)
      client.pauseIncoming(false)
      client.permit(true, now: now)
      client.change(to: .realtime, now: now)
    }
    // The loss of the last frame of a connection is noticed only with the next ping.
    var isSure = configuration.faults.loss == 0
    let waits = isPatient()
    for round in 0..<6_000 where problems.isEmpty {
      let scopes = [server.scope] + present.map(\.scope)
      if !waits { for scope in scopes { scope.flush() } }
      // An observer that is yet to be called may change something.
      let isSafe =
        server.isOpen && server.nextDeadline == nil
        && scopes.allSatisfy { $0.isSettled && $0.ticker.isIdle }
      let isQuiet = network.isIdle || round > 500 && network.carriesOnlyPings
      if isSafe, isQuiet, present.allSatisfy(\.isAtRest), browsers.allSatisfy(\.isAtRest) {
        if isSure { return compare() }
        isSure = true
        pass(.milliseconds(2 * Simulation.Times.ping))
        continue
      }
      pass(.milliseconds(20))
      if present.contains(where: { $0.fetchError != nil }) { return }
    }
    guard problems.isEmpty else { return }
    let why = present.compactMap { client in
      client.restlessness.map { "client \(client.number) \($0)" }
    }
    report(
      .unrest,
      "It does not come to rest: "
        + (why.isEmpty ? "something is always on its way" : why.joined(separator: ", ")))
  }

  /// Returns true if this rest waits for throttled properties instead of flushing them.
  private func isPatient() -> Bool {
    rests += 1
    var random = SimulationRandom(seed: seed, branch: 14, rests)
    return random.chance(configuration.patience)
  }

  private func compare() {
    let state = server.scope.fullState()
    let bytes = state.bytes
    let plain = PlainJSON(state: state)
    for client in present {
      for problem in client.wrongHandles() { report(.handle, problem) }
      for problem in client.app.problems() {
        report(.app, "The app of client \(client.number) is wrong: \(problem)")
      }
      for problem in client.watch?.takeProblems(atRest: true) ?? [] {
        report(.notification, "Client \(client.number) notifies wrongly: \(problem)")
      }
      for problem in wrongOrigins(of: client) { report(.messages, problem) }
      // Version 1 sends undecided change sets again, and the reference cannot know what is lost of them.
      if client.version > 1 {
        for problem in client.wrongConflicts(overwritten: overwritten(of: client)) {
          report(.conflict, problem)
        }
      }
      for problem in client.wrongStateAtRest(of: server.position) {
        report(.state, "The sync state of client \(client.number) is wrong: \(problem)")
      }
      let models = client.scope.fullState()
      for problem in client.wrongPending(client.undecidedModels, among: models) {
        report(.state, "The sync state of client \(client.number) is wrong: \(problem)")
      }
      // States with the same bytes have the same canonical form.
      if models.bytes == bytes { continue }
      let own = client.scope.canonicalJSON
      guard own != server.scope.canonicalJSON else { continue }
      let differences = StreamReference(canonical: plain)
        .differences(from: PlainJSON(own.utf8) ?? .null, kinds(of:), "the server", "the client")
      report(.divergence, "Client \(client.number) differs from the server:")
      for difference in differences.prefix(8) { report(.divergence, "  \(difference)") }
      if differences.isEmpty { report(.divergence, "  only in the bytes") }
    }
    for problem in server.app.problems() {
      report(.app, "The app of the server is wrong: \(problem)")
    }
    for browser in browsers {
      for problem in browser.problems.prefix(4) { report(.stream, problem) }
      let differences = browser.model.differences(
        from: plain, kinds(of:), "the browser", "the server")
      for difference in differences.prefix(8) {
        report(.divergence, "\(browser) differs from the server: \(difference)")
      }
    }
    let told = observer.stream.differences(from: plain, kinds(of:), "the stream", "the server")
    for difference in told.prefix(8) {
      report(.stream, "The server has not told what it has: \(difference)")
    }
    let lost = intents.lasting(
      in: observer.stream, reachable: observer.reachable(kinds(of:)))
    for problem in lost.prefix(8) { report(.intent, problem) }
    for client in present {
      let mayBeForgotten =
        configuration.limits.rememberedClients < configuration.clients * 4
        || configuration.limits.absentDecisionBytes != nil
      for problem in client.wrongHistory(epochs, mayBeForgotten: mayBeForgotten) {
        report(.history, problem)
      }
    }
  }
}

extension SimulationRun {
  /// Returns where a client was told wrongly what the maker of a change set had seen.
  private func wrongOrigins(of client: SimulatedClient) -> [String] {
    guard let journal, let outbox = outboxes[client.number] else { return [] }
    let origins = journal.origins
    let lines = outbox.lines
    let start = lines.lastIndex { $0.kind.rawValue == "base" } ?? 0
    return lines[start...].compactMap {
      guard $0.kind.rawValue == "confirmed", let place = $0.json["sequence"]?.whole else {
        return nil
      }
      let (told, known) = ($0.json["seen"]?.whole, origins[place]?.seen)
      return told == known
        ? nil
        : "Client \(client.number) was told that the set at \(place) had seen "
          + "\(told.map(String.init) ?? "all"), which is \(known.map(String.init) ?? "all")"
    }
  }

  /// Returns the writes of a client that others have overwritten; nil if the client has no disk.
  private func overwritten(of client: SimulatedClient) -> [KnownLoss]? {
    outboxes[client.number]?.overwritten(
      root: client.root, client.setsByID, kinds: kinds(of:),
      defaultValue: { [server] in server?.defaultValue(of: $1, in: $0) })
  }
}

extension PlainJSON {
  /// Creates a scope's canonical JSON from its full state.
  init(state: [SyncFragment]) {
    var models: [String: PlainJSON] = [:]
    for fragment in state.map(PlainJSON.init) {
      models[fragment["uuid"]?.text ?? ""] = .object([
        "clsName": fragment["clsName"] ?? .null, "properties": fragment["properties"] ?? .null,
      ])
    }
    let root = state.first.map { PlainJSON($0)["uuid"] ?? .null } ?? .null
    self = .object(["models": .object(models), "root": root])
  }
}

extension [SyncFragment] {
  /// The JSON text of all fragments, in their order.
  fileprivate var bytes: [UInt8] {
    var bytes: [UInt8] = []
    for fragment in self { fragment.write(to: &bytes) }
    return bytes
  }
}

extension StreamReference {
  /// Creates the reference that a scope's canonical JSON corresponds to, as if the stream had sent it.
  init(canonical: PlainJSON) {
    self.init()
    let fragments = (canonical["models"]?.members ?? [:]).map { uuid, model in
      PlainJSON.object([
        "uuid": .string(uuid), "clsName": model["clsName"] ?? .null,
        "properties": model["properties"] ?? .null,
      ])
    }
    begin(root: canonical["root"]?.text ?? "", fragments)
  }
}
