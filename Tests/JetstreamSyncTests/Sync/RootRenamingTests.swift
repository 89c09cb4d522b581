import Foundation
import Jetstream
import JetstreamServer
import Testing

private final class Board: ModelObject {
  @Property var title = ""
  @Property var cards: ModelArray<Card> = []
  @Property var text = ""
  @Property(.minSyncInterval(.seconds(5))) var steps = 0
}

private class Card: ModelObject {
  @Property var text = ""
  @Property var home: Board?
  @WeakReference var board: Board?
}

private final class Pin: Card {}

/// The root takes the server's UUID when the first full state comes. Whatever was changed before names it by the one
/// that it had.
@Suite("What refers to the root before the first state")
struct RootRenamingTests {
  private let world = InMemoryWorld()
  private let shared = Board()
  private let client: WorldClient
  private var board: Board { client.scope.root as! Board }

  init() {
    world.replaced = Scope(name: "Canvas", root: shared, ticker: world.serverTicker)
    client = world.addClient(root: Board())
  }

  private func makeCard(_ text: String) -> Card {
    let card = Card()
    card.text = text
    card.home = board
    card.board = board
    board.cards.append(card)
    client.scope.flush()
    return card
  }

  private func expectEqual(_ client: WorldClient? = nil) {
    world.settle()
    let client = client ?? self.client
    #expect(differences(client.scope, world.replaced!) == [])
    #expect(client.rejections.isEmpty && client.engine.checkInvariants() == [])
    #expect(shared.cards.allSatisfy { $0.home === shared && $0.board === shared })
  }

  @Test("References to the root in additions and changes lead to the server's root")
  func references() {
    client.join()
    let card = makeCard("new")
    card.home = nil
    client.scope.flush()
    card.home = board
    board.text = board.uuid.uuidString.lowercased()
    let text = board.text
    client.scope.flush()
    expectEqual()
    #expect(shared.cards.count == 1 && card.home === board && card.board === board)
    // A plain text is no reference.
    #expect(shared.text == text)
  }

  @Test("What was changed before the first state can be undone after it")
  func undo() throws {
    client.join()
    let history = UndoHistory(of: client.scope)
    board.title = "first"
    client.scope.flush()
    board.title = "second"
    client.scope.flush()
    _ = makeCard("new")
    expectEqual()
    let reports = (0..<2).map { _ in history.undo() }
    #expect(reports.allSatisfy { $0?.isComplete == true })
    expectEqual()
    #expect(board.title == "first" && shared.title == "first" && shared.cards.isEmpty)
    #expect(history.redo()?.isComplete == true && history.redo()?.isComplete == true)
    expectEqual()
    #expect(shared.cards.map(\.text) == ["new"])
  }

  @Test("What a process before has left in its log names the root as the server does")
  func restored() throws {
    var records: [ReplicaRecord] = []
    try client.engine.fetch(
      client.scope, params: .null, history: nil, now: world.now, store: { records.append($0) }
    ) { _ in }
    _ = makeCard("kept")
    guard case .named(let name, let root)? = records.first else {
      Issue.record("The log does not begin with a name: \(records)")
      return
    }
    let next = world.addClient(root: Board())
    let history = ReplicaHistory(client: name, root: root, records: Array(records.dropFirst()))
    let replica = try next.engine.fetch(
      next.scope, params: .null, history: history, now: world.now, store: { _ in }
    ) { _ in }
    replica?.stored(1_000)
    client.wantsOnline = false
    next.engine.connect(params: .null, now: world.now)
    for _ in 0..<20 where next.engine.pendingCount > 0 {
      world.advance(by: .seconds(1))
      world.exchange()
    }
    #expect(differences(next.scope, world.replaced!) == [])
    #expect(shared.cards.map(\.text) == ["kept"] && shared.cards[0].board === shared)
    #expect((next.scope.root as? Board)?.cards.first?.board === next.scope.root)
  }

  @Test("What is held back when the first state comes is held back until its interval has passed")
  func heldBack() throws {
    let board = Board()
    let server = ScriptedServer(root: board)
    var records: [ReplicaRecord] = []
    server.connect()
    server.open()
    let replica = try server.engine.fetch(
      server.scope, params: .null, history: nil, now: server.now, store: { records.append($0) }
    ) { _ in }
    for steps in 1...2 {
      board.steps = steps
      server.advance(by: .milliseconds(100))
    }
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    let root = SyncFragment(.change, uuid: UUID(), className: "Board", properties: ["steps": 0])
    let standing = ScopeStanding(position: ScopePosition(epoch: "one", sequence: 0))
    server.receive(
      .scopeFetchReply(ScopeFetchReply(index: 1, replyTo: 1, scopeIndex: 0, standing: standing)),
      .scopeState(ScopeState(index: 2, scopeIndex: 0, rootUUID: root.uuid, fragments: [root])))
    replica?.stored(1_000)
    #expect(board.uuid == root.uuid && board.steps == 2)
    #expect(server.takeSyncs().map { $0.fragments[0].properties } == [["steps": 1]])
    server.advance(by: .seconds(2))
    #expect(server.takeSyncs().isEmpty)
    server.advance(by: .seconds(4))
    replica?.stored(1_000)
    let second = server.takeSyncs().map { $0.fragments[0] }
    #expect(second.map(\.properties) == [["steps": 2]] && second.first?.uuid == root.uuid)
    // The log has the name and the first change set, then the state, and only then the second change set.
    let base = records.firstIndex { if case .base = $0 { true } else { false } }
    #expect(records.count == 4 && base == 2)
  }

  @Test("A conflict about the root can be retried when the root has another name")
  func conflicts() throws {
    client.join()
    world.settle()
    try client.scope.modify(procedure: "Board.rename") { board.title = "mine" }
    world.settle()
    #expect(client.scope.conflicts.items.map(\.model) == [shared.uuid])
    // The server begins anew, with another root.
    let other = Board()
    other.title = "other"
    world.replaced = Scope(name: "Canvas", root: other, ticker: world.serverTicker)
    world.server.advance(to: world.now + .seconds(3600))
    world.settle()
    #expect(board.title == "other" && board.uuid == other.uuid)
    #expect(client.scope.conflicts.items.map(\.model) == [other.uuid])
    client.scope.retry(client.scope.conflicts.items)
    world.settle()
    #expect(client.scope.conflicts.isEmpty && other.title == "mine")
  }

  @Test("What was rejected because of another rejection names the root by its new name, too")
  func consequences() throws {
    client.join()
    world.settle()
    // The server does not know the class.
    board.cards.append(Pin())
    world.settle()
    let item = try #require(client.scope.conflicts.items.first)
    #expect(item.consequences.map(\.model) == [shared.uuid])
    let other = Board()
    world.replaced = Scope(name: "Canvas", root: other, ticker: world.serverTicker)
    world.server.advance(to: world.now + .seconds(3600))
    world.settle()
    #expect(board.uuid == other.uuid)
    let parts = client.scope.conflicts.items.flatMap(\.parts)
    #expect(parts.map(\.model) == [item.model, other.uuid])
    #expect(parts.map(\.property) == [nil, "cards"])
  }
}
