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
}
