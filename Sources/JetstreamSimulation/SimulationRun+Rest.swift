import Jetstream

/// Rests, in which all that is open comes to an end, and the comparison of all replicas after it.
extension SimulationRun {
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
    var rounds = Rounds()
    while problems.isEmpty, rounds.begin(undecided: present.reduce(0) { $0 + $1.undecidedCount }) {
      let scopes = [server.scope] + present.map(\.scope)
      if !waits { for scope in scopes { scope.flush() } }
      // An observer that is yet to be called may change something.
      let isSafe =
        server.isOpen && server.nextDeadline == nil
        && scopes.allSatisfy { $0.isSettled && $0.ticker.isIdle }
      let isQuiet = network.isIdle || rounds.count > 500 && network.carriesOnlyPings
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

extension SimulationRun {
  /// The rounds of a rest, which ends when nothing comes of many of them.
  private struct Rounds {
    /// The number of rounds that have begun.
    private(set) var count = 0
    private var last = 0
    private var fewest = Int.max

    /// Begins a round. Returns false after two minutes of virtual time in which the number of undecided change sets has not
    /// become smaller than ever before: a slow client may need much longer than that for all of them.
    mutating func begin(undecided: Int) -> Bool {
      if undecided < fewest { (fewest, last) = (undecided, count + 6_000) }
      count += 1
      return count <= last
    }
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
