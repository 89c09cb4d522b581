import Foundation
import Jetstream

/// What happens to old browser clients.
extension SimulationRun {
  /// The number of the first one in the network: no client has so many before it.
  private static let firstBrowser = 1_000

  func startBrowsers() {
    browsers = (0..<versions.browsers).map { place in
      let number = Self.firstBrowser + place
      return OldBrowser(
        number: number, scope: world.name,
        connect: { [unowned self] in
          network.disconnect(number)
          network.connect(number, connection: 0, token: nil)
        }, send: { [unowned self] in network.send($0, from: number) })
    }
    for browser in browsers { browser.load() }
  }

  /// Lets an old browser client edit.
  func editBrowser(_ number: Int, _ seed: UInt64) {
    guard !browsers.isEmpty else { return }
    var random = SimulationRandom(seed: seed, branch: 11)
    let browser = browsers[number % browsers.count]
    var branch = SimulationRandom(seed: seed, branch: 16)
    let isRounded = branch.chance(configuration.features.roundedNumbers)
    let words = browser.edit(&random, isRounded: isRounded, kinds(of:))
    note("\(browser) \(words)")
  }

  /// The connection of an old browser client is cut, and its page is loaded again.
  func reloadBrowser(_ number: Int) {
    guard !browsers.isEmpty else { return }
    let browser = browsers[number % browsers.count]
    // It hears of the cut, and loads the page then.
    _ = network.cut(browser.number)
  }

  /// Whether a connection is one of an old browser client.
  func isBrowser(_ link: SimulatedNetwork.Link) -> Bool { link.client >= Self.firstBrowser }

  /// The server has accepted a set that has no number: one of a client of version 1.
  func acceptUnnumbered(_ fragments: [SyncFragment]) {
    let set = SubmittedSet(
      client: nil, place: -1, id: UUID(), isAtomic: false, fragments: fragments)
    for intent in set.intents {
      intents.accept(
        intent, sent: intent.values, bases: [:], of: set, name: { $0 }, kinds(of: intent.className))
    }
  }

  /// Delivers a packet of an old browser client.
  ///
  /// - Returns: false, having done nothing, if it is one of another client.
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
      server.received(link.id, frame, now: now)
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
