import Synchronization

/// A weak reference to an actor. The main actor lives as long as the process and is not referred to weakly, because
/// objects that are take longer to retain.
package final class WeakActor: Sendable {
  let isMain: Bool
  private let reference: Mutex<Box>

  private struct Box: Sendable { weak var actor: (any Actor)? }

  package init(_ actor: any Actor) {
    isMain = actor === MainActor.shared
    reference = Mutex(Box(actor: isMain ? nil : actor))
  }

  package var value: (any Actor)? { isMain ? MainActor.shared : reference.withLock { $0.actor } }
}

/// Holds one ticker per actor, for as long as the ticker is used.
enum TickerRegistry {
  /// Safe although a ticker is not Sendable: the reference is only handed to a caller that names
  /// the ticker's actor, which is the isolation domain of the ticker.
  private struct Entry: @unchecked Sendable {
    weak var ticker: Ticker?
    let actor: WeakActor
  }

  /// Carries a ticker out of the lock. Safe for the same reason as ``Entry``.
  private struct Handover: @unchecked Sendable { let ticker: Ticker }

  private struct Entries {
    var byActor: [ObjectIdentifier: Entry] = [:]
    var schedule = PruneSchedule()

    mutating func add(_ entry: Entry, for key: ObjectIdentifier) {
      if schedule.isDue(at: byActor.count) {
        byActor = byActor.filter { $0.value.ticker != nil }
        schedule.didPrune(to: byActor.count)
      }
      byActor[key] = entry
    }
  }

  private static let entries = Mutex(Entries())
  /// The ticker of the main actor. Both live as long as the process, so that no lock is needed to look it up.
  private static let main = (
    key: ObjectIdentifier(MainActor.shared),
    handover: Handover(ticker: Ticker.make(for: WeakActor(MainActor.shared)))
  )

  static func ticker(for actor: any Actor) -> Ticker {
    let key = ObjectIdentifier(actor)
    if key == main.key { return main.handover.ticker }
    return entries.withLock { entries -> Handover in
      if let entry = entries.byActor[key], entry.actor.value === actor, let ticker = entry.ticker {
        return Handover(ticker: ticker)
      }
      let weakActor = WeakActor(actor)
      let ticker = Ticker.make(for: weakActor)
      entries.add(Entry(ticker: ticker, actor: weakActor), for: key)
      return Handover(ticker: ticker)
    }.ticker
  }

  /// Makes an actor that stands for `ticker`, and keeps it.
  static func standIn(for ticker: Ticker) -> any Actor {
    let actor = StandIn(Handover(ticker: ticker))
    let entry = Entry(ticker: ticker, actor: WeakActor(actor))
    entries.withLock { $0.add(entry, for: ObjectIdentifier(actor)) }
    return actor
  }

  private actor StandIn {
    private let ticker: Handover

    init(_ ticker: Handover) { self.ticker = ticker }
  }
}
