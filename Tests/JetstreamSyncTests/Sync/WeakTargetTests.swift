import Foundation
import Jetstream
import JetstreamServer
import Testing

private final class Board: ModelObject {
  @Property var cards: ModelArray<Card> = []
}

private final class Card: ModelObject {
  @WeakReference var related: Card?
}

@Suite("Models that a change set removes and weak references name")
struct WeakTargetTests {
  @Test("A removal counts although the weak reference that the set gives to the model is rejected")
  func rejectedReference() {
    let world = InMemoryWorld()
    let shared = Board()
    shared.cards = [Card(), Card()]
    world.replaced = Scope(name: "Canvas", root: shared, ticker: world.serverTicker)
    let client = world.addClient(root: Board())
    client.join()
    world.settle()
    let board = client.scope.root as! Board
    board.cards[0].related = board.cards[1]
    board.cards.remove(at: 1)
    client.scope.flush()
    // The server does not have the first card any more when the set comes.
    shared.cards.remove(at: 0)
    world.replaced?.flush()
    world.settle()
    #expect(shared.cards.isEmpty && board.cards.isEmpty)
    #expect(client.scope.conflicts.items.map(\.property) == ["related"])
  }
}
