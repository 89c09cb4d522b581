import Foundation
import Jetstream

/// The old browser clients of a run.
extension SimulationRun {
  /// The number of the first old browser client in the network, above the numbers of all other clients.
  private static let firstBrowser = 1_000

  func startBrowsers() {
    browsers = (0..<versions.browsers).map { place in
      let number = Self.firstBrowser + place
      var random = SimulationRandom(seed: seed, branch: 17, number)
      let isSlow = random.chance(configuration.features.slowBrowsers)
      return OldBrowser(
        number: number, scope: world.name, isSlow: isSlow,
        kinds: { [unowned self] in kinds(of: $0) },
        connect: { [unowned self] in
          network.disconnect(number)
          network.connect(number, connection: 0, token: nil)
        }, send: { [unowned self] in network.send($0, from: number) })
    }
    for browser in browsers { browser.load() }
  }

  /// Makes a random edit on an old browser client.
  func editBrowser(_ number: Int, _ seed: UInt64) {
    guard !browsers.isEmpty else { return }
    var random = SimulationRandom(seed: seed, branch: 11)
    let browser = browsers[number % browsers.count]
    var branch = SimulationRandom(seed: seed, branch: 16)
    let isRounded = branch.chance(configuration.features.roundedNumbers)
    let words = browser.edit(&random, isRounded: isRounded, kinds(of:))
    note("\(browser) \(words)")
  }

  /// Cuts the connection of an old browser client, which then loads its page again.
  func reloadBrowser(_ number: Int) {
    guard !browsers.isEmpty else { return }
    let browser = browsers[number % browsers.count]
    // The client loads its page when it hears of the cut.
    _ = network.cut(browser.number)
  }

  /// Returns true if a connection belongs to an old browser client.
  func isBrowser(_ link: SimulatedNetwork.Link) -> Bool { link.client >= Self.firstBrowser }

  /// Applies an accepted change set without a number, which a client of version 1 has sent, to the reference.
  func acceptUnnumbered(_ fragments: [SyncFragment]) {
    let set = SubmittedSet(
      client: nil, place: -1, id: UUID(), isAtomic: false, fragments: fragments)
    for intent in set.intents {
      intents.accept(
        intent, sent: intent.values, bases: [:], of: set, name: { $0 }, kinds(of: intent.className))
    }
  }

  /// Delivers a packet on the connection of an old browser client.
  ///
  /// - Returns: false, having done nothing, if the connection belongs to another client.
  func deliver(
    _ packet: SimulatedNetwork.Packet, _ toServer: Bool, _ link: SimulatedNetwork.Link
  ) -> Bool {
    guard let browser = browsers.first(where: { $0.number == link.client }) else { return false }
    switch (packet, toServer) {
    case (.open, true):
      network.accept(link)
      server.opened(link.id, token: nil, now: now)
    case (.frame(let frame), true) where frame == OldBrowser.probe:
      server.probed(link.id, now: now)
    case (.frame(let frame), true):
      let removals = provenRemovals(in: frame, of: browser)
      server.received(link.id, [frame], now: now)
      // A large change set is decided only then.
      if !removals.isEmpty { server.judgeAll(now: now) }
      check(removals, of: browser)
      checkIntents()
    case (.close, true): server.closed(link.id, now: now)
    case (.open, false): browser.opened()
    case (.frame(let frame), false): browser.received(frame)
    case (.close, false): browser.load()
    }
    observer.acknowledge()
    return true
  }
}

/// The check that the server removes an element when an old browser client that must have seen it does.
extension SimulationRun {
  private struct Removal {
    let key: StreamReference.Key
    let element: String
  }

  /// The time after which the server must know that an old client has seen what it was sent: the round trips of
  /// two pings, the second of which waits for the first, and the time that scripts are given.
  private var probeTime: Duration {
    .milliseconds(4 * configuration.delay.upperBound + 100 + Simulation.Times.reading)
  }

  /// Notes which properties a frame to all clients names, and when.
  func noteTold(_ frame: [UInt8]) {
    if configuration.features.slowBrowsers == 0 || versions.browsers == 0 { return }
    let messages = PlainJSON(frame)?.messages ?? []
    for fragment in messages.flatMap({ $0["fragments"]?.elements ?? [] }) {
      for name in (fragment["properties"]?.members ?? [:]).keys {
        told[StreamReference.Key(uuid: fragment["uuid"]?.text ?? "", name: name)] = now
      }
    }
  }

  /// Returns the elements that a frame removes from collections that have not changed for ``probeTime``, so
  /// that the server must know that the client has seen them. Considers only collections from which the frame
  /// removes one element and changes nothing else, and only while the server's disk is idle.
  private func provenRemovals(in frame: [UInt8], of browser: OldBrowser) -> [Removal] {
    guard configuration.features.slowBrowsers > 0, server.nextDeadline == nil,
      let loadedAt = browser.loadedAt, loadedAt + probeTime < now,
      let message = PlainJSON(frame)?.messages.first, message["type"]?.text == "ScopeSync",
      let fragment = message["fragments"]?.elements.first, fragment["type"]?.text == "change",
      let uuid = fragment["uuid"]?.text, observer.reachable(kinds(of:)).contains(uuid)
    else { return [] }
    return (fragment["properties"]?.members ?? [:]).compactMap { name, value in
      let key = StreamReference.Key(uuid: uuid, name: name)
      let before = observer.stream.models[uuid]?.properties[name]?.texts ?? []
      guard (told[key] ?? .zero) + probeTime < now, collection(key) == before,
        let element = before.first(where: { !value.texts.contains($0) }),
        before.filter({ $0 != element }) == value.texts
      else { return nil }
      return Removal(key: key, element: element)
    }
  }

  private func check(_ removals: [Removal], of browser: OldBrowser) {
    for removal in removals where collection(removal.key).contains(removal.element) {
      report(
        .intent,
        "\(browser) has removed \(removal.element.prefix(8)) from \(removal.key), which the server undoes"
      )
    }
  }

  /// Returns the elements that the server has in a collection; empty if the property is not a collection.
  private func collection(_ key: StreamReference.Key) -> [String] {
    guard let model = UUID(uuidString: key.uuid).flatMap(server.scope.model),
      let property = model.schema[wireName: key.name], property.isCollection
    else { return [] }
    return PlainJSON(model.json(of: property).text.utf8)?.texts ?? []
  }
}
