import Foundation
import Testing

@testable import Jetstream

private final class Card: ModelObject {
  @Property var title = ""
  @Property var rank = 0
  @Property var level: Int8 = 0
  @Property(.counter) var likes = 0
  @Property(.merge(.max)) var best = 0
  @Property(.local) var note = ""
  @Property var other: Card?
  @Property var cards: ModelArray<Card> = []
}

/// A fragment that sets plain values of one model is applied in a short way. The report and the scope are the same as those of
/// the long one, which a second, empty fragment leads to.
#if ON_ACTOR
@TestDomain
#endif
@Suite("Applying plain values", .paced) struct PlainValueApplyTests {
  private struct Replica {
    let root = Card()
    let scope: Scope
    let card: Card

    init(_ uuids: (root: UUID, card: UUID), isolation: (any Actor)? = #isolation) {
      scope = manualScope(root, models: [Card.self], isolation: isolation)
      let state = [
        SyncFragment(
          .change, uuid: uuids.root, className: "Card",
          properties: ["cards": [uuids.card._jsonValue]]),
        SyncFragment(.add, uuid: uuids.card, className: "Card", properties: ["rank": 1]),
      ]
      _ = try? scope.applyFullState(state, rootUUID: uuids.root)
      card = root.cards[0]
    }
  }

  private func makeTwins() -> (short: Replica, long: Replica) {
    let uuids = (UUID(), UUID())
    return (Replica(uuids), Replica(uuids))
  }

  private func apply(
    _ fragment: SyncFragment, to twins: (short: Replica, long: Replica), _ comment: Comment
  ) {
    let empty = SyncFragment(
      .change, uuid: twins.long.root.uuid, className: "Card", properties: [:])
    let short = twins.short.scope.apply([fragment])
    let long = twins.long.scope.apply([fragment, empty])
    #expect("\(short.errors)" == "\(long.errors)", comment)
    #expect("\(short.kept)" == "\(long.kept)", comment)
    #expect(twins.short.scope.canonicalJSON == twins.long.scope.canonicalJSON, comment)
    let sets = [twins.short, twins.long].map { $0.scope.takeFragments().map(\.json) }
    #expect(sets[0] == sets[1], comment)
  }

  private func change(_ replica: Replica, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(.change, uuid: replica.card.uuid, className: "Card", properties: properties)
  }

  @Test("Values of all kinds, with local changes and without", arguments: [1, 2, 3] as [UInt64])
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let twins = makeTwins()
    let values: [JSONValue] = [1, 300, -5, "x", "", .null, 2.5, true, [], ["x"], [:]]
    let names = ["title", "rank", "level", "likes", "best", "note", "other", "cards", "unknown"]
    for step in 0..<400 {
      if Int.random(in: 0..<4, using: &generator) == 0 {
        for replica in [twins.short, twins.long] {
          replica.card.rank = step
          replica.card.likes += 1
        }
      }
      var properties = JSONObject()
      for _ in 0...Int.random(in: 0...2, using: &generator) {
        properties[names.randomElement(using: &generator)!] = values.randomElement(
          using: &generator)!
      }
      apply(change(twins.short, properties), to: twins, "seed \(seed), step \(step), \(properties)")
    }
  }

  @Test("An observer of one value that changes the next one, or takes the model out")
  func observers() {
    for takesOut in [false, true] {
      let twins = makeTwins()
      var tokens: [ObservationToken] = []
      for replica in [twins.short, twins.long] {
        tokens.append(
          replica.card.observeChangeImmediately(\.title) {
            [root = replica.root, unowned card = replica.card] _, _ in
            if takesOut { root.cards = [] } else { card.rank = 77 }
          })
      }
      apply(change(twins.short, ["title": "a", "rank": 5, "likes": 3]), to: twins, "\(takesOut)")
      for token in tokens { token.cancel() }
    }
  }

  @Test("Observers and those who follow the scope are told once")
  func told() {
    let twins = makeTwins()
    var count = 0
    let token = twins.short.card.observeChange(\.rank, isolation: here()) { _, _ in count += 1 }
    _ = twins.short.scope.apply([change(twins.short, ["rank": 9])])
    twins.short.scope.flush()
    #expect(count == 1 && twins.short.card.rank == 9)
    #expect(twins.short.scope.takeFragments().isEmpty)
    token.cancel()
  }

  @Test("A model that is not in the scope is an error, as before")
  func missing() {
    let twins = makeTwins()
    let fragment = SyncFragment(.change, uuid: UUID(), className: "Card", properties: ["rank": 1])
    apply(fragment, to: twins, "missing")
  }
}
