/// Whose memory is gone, and what the next one begins with.
extension SimulationRun {
  func crashServer() {
    // What is safe counts, also where the server had no time to say so.
    for content in journal?.crash(now: now) ?? [] { take(content) }
    network.serverIsGone()
    startServer()
  }

  /// The server goes on from an old copy. What was accepted since is taken for not submitted yet: a client
  /// that does not know that it was accepted sends it again, and it may be decided in another way.
  func loseHistory(_ pick: Int) {
    guard let journal else { return crashServer() }
    for decision in journal.lose(pick, epoch: "epoch\(epochs.count)", now: now) { forget(decision) }
    network.serverIsGone()
    startServer(isRestored: true)
  }

  func crashClient(_ number: Int) {
    network.abandon(number)
    let outbox = outboxes[number]
    // What was changed since the last tick is in no change set, and may be lost.
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
