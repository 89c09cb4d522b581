/// Crashes of the server and of clients, and the start of the processes that follow.
extension SimulationRun {
  func crashServer() {
    // Durable records count, even if the server had no time to report them.
    for content in journal?.crash(now: now) ?? [] { take(content) }
    network.serverIsGone()
    startServer()
  }

  /// Starts the server from an old copy of its journal. Change sets that were accepted since count as not
  /// submitted: a client that does not know of the acceptance sends them again, and the server may decide them
  /// in another way.
  func loseHistory(_ pick: Int) {
    guard let journal else { return crashServer() }
    for decision in journal.lose(pick, epoch: "epoch\(epochs.count)", now: now) { forget(decision) }
    network.serverIsGone()
    startServer(isRestored: true)
  }

  func crashClient(_ number: Int) {
    network.abandon(number)
    let outbox = outboxes[number]
    // Changes since the last tick are in no change set, and may be lost.
    let shown = clients[number].flatMap { $0.scope.isSettled ? $0.scope.canonicalJSON : nil }
    let isKept = outbox?.crash(now: now) ?? false
    let client = makeClient(number)
    start(client)
    join(client)
    // Observers may have written while the log was read.
    let isAsKept = isKept && client.scope.isSettled && !client.hasWrittenInRestart
    if isAsKept, let shown, client.scope.canonicalJSON != shown {
      report(.durability, "Client \(number) was killed, and does not show what it has shown")
      let differences = StreamReference(canonical: PlainJSON(shown.utf8) ?? .null).differences(
        from: PlainJSON(client.scope.canonicalJSON.utf8) ?? .null, kinds(of:), "before", "after")
      for difference in differences.prefix(8) { report(.durability, "  \(difference)") }
    }
    if let outbox, outbox.undecided != client.sets.map(\.id) {
      report(
        .messages,
        "Client \(number) has written \(outbox.undecided.count) undecided sets and comes back with \(client.sets)"
      )
    }
  }
}
