import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// A client that has lost its session sends again what that session has sent, while the server goes on with it there.
@Suite("Change sets that are decided for an earlier session of their client")
struct DecidedElsewhereTests {
  private final class Open {
    var requests: [ProcedureRequest] = []
  }
  private let world = InMemoryWorld()
  private let open = Open()
  private let ann = UUID()

  init() {
    world.procedures[Like.name] = ServedProcedure(takesArguments: true) { [open] in
      open.requests.append($0)
    }
  }

  private func peer(telling tell: ScopeFetch.Tell) -> RawPeer {
    let peer = RawPeer(world)
    peer.createSession()
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas", client: ann, tell: tell))))
    return peer
  }

  private func change(_ properties: JSONObject) -> [SyncFragment] {
    [
      SyncFragment(.change, uuid: world.canvas.uuid, className: "Canvas", properties: properties)
    ]
  }

  /// The sequences that a peer was told, by change sets and by replies.
  private func sequences(toldTo peer: RawPeer) -> [Int] {
    peer.messages.compactMap { message in
      switch message {
      case .scopeSync(let sync): sync.sequence
      case .scopeSyncReply(let reply): reply.sequence
      default: nil
      }
    }
  }

  @Test(
    "The reply to one has its sequence and what it does, if the client was not told that before",
    arguments: ScopeFetch.Tell.allCases)
  func behindCall(tell: ScopeFetch.Tell) throws {
    let old = peer(telling: .everything)
    old.call(number: 1)
    old.submit(change(["name": "mine"]), number: 2)
    let new = peer(telling: tell)
    let call = new.call(number: 1)
    let edit = new.submit(change(["name": "mine"]), number: 2)
    #expect(new.reply(to: edit) == nil && open.requests.count == 1)

    try open.requests[0].commit(Like())
    new.take()
    #expect(new.reply(to: call)?.sequence == 1)
    let reply = try #require(new.reply(to: edit))
    #expect(reply.fragmentReplies == [FragmentReply()] && reply.sequence == 2)
    #expect(reply.effective?.map(\.properties) == [["name": "mine"]])
    #expect(sequences(toldTo: new) == [1, 2])
    #expect(world.canvas.name == "mine" && world.server.checkInvariants() == [])
  }

  @Test("What the client was told before is not repeated")
  func toldBefore() throws {
    let old = peer(telling: .everything)
    old.submit(change(["name": "mine"]), number: 1)
    let new = peer(telling: .everything)
    let edit = new.submit(change(["name": "mine"]), number: 1)
    let reply = try #require(new.reply(to: edit))
    #expect(reply.sequence == nil && reply.effective == [])
    #expect(reply.fragmentReplies == [FragmentReply()])
  }

  @Test(
    "A client that only pushes goes on showing an edit that its lost session has delivered",
    arguments: [false, true])
  func pushOnly(withOthers: Bool) throws {
    let (client, other) = (world.addClient(), world.addClient())
    for each in [client, other] { each.join() }
    world.settle()
    client.engine.setMode(.pushOnly, of: client.scope, now: world.now)
    world.exchange()
    if withOthers {
      other.canvas.shapes.append(Shape())
      world.exchange()
    }
    try client.scope.call(Like())
    client.canvas.name = "mine"
    world.exchange()
    #expect(open.requests.count == 1)

    // The client takes its session for lost, and the server does not know that.
    let lost = try #require(client.link)
    lost.serverClose = (4097, "")
    world.pass(3)
    #expect(world.server.sessionCount == 3 && open.requests.count == 1)
    try open.requests[0].commit(Like())
    world.exchange()
    #expect(world.canvas.name == "mine" && world.canvas.likes == 1)
    #expect(client.canvas.name == "mine" && client.canvas.likes == 1)
    #expect(client.engine.pendingCount == (withOthers ? 2 : 0))

    client.engine.setMode(.realtime, of: client.scope, now: world.now)
    world.settle()
    for each in world.clients {
      #expect(each.scope.canonicalJSON == world.scope.canonicalJSON)
      #expect(each.scope.conflicts.items.isEmpty)
    }
    #expect(world.server.checkInvariants() == [])
  }
}
