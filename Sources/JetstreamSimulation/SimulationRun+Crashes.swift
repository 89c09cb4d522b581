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
    outbox?.crash(now: now)
    let client = makeClient(number)
    start(client)
    join(client)
    if let outbox, outbox.undecided != client.sets.map(\.id) {
      report(
        .messages,
        "Client \(number) has written \(outbox.undecided.count) undecided sets and comes back with \(client.sets)"
      )
    }
  }
}
