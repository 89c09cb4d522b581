import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("Rights of sessions in scopes")
struct AccessTests {
  private let world = InMemoryWorld()
  private final class Asked {
    var names: [String] = []
  }
  private let asked = Asked()

  init() {
    world.access = { [asked] _, name in
      asked.names.append(name)
      return .pending
    }
  }

  private func peer(version: Int = 2) -> RawPeer {
    let peer = RawPeer(world)
    let spoken = version > 1 ? #""protocol":2,"# : ""
    peer.send(#"{"type":"SessionCreate","index":0,"version":"1.0.0",\#(spoken)"params":{}}"#)
    return peer
  }

  private func fetch(_ name: String = "Canvas", by peer: RawPeer) {
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: name))))
  }

  private func answer(
    _ peer: RawPeer, _ answer: Result<ScopeAccess, WireError>, of name: String = "Canvas"
  ) {
    world.decide(peer.token!, name, answer)
    peer.take()
    #expect(world.server.checkInvariants() == [])
  }

  private func change(
    _ peer: RawPeer, _ answer: Result<ScopeAccess, WireError>, of name: String = "Canvas"
  ) {
    world.server.changeAccess(peer.token!, name, answer, now: world.now)
    peer.take()
    #expect(world.server.checkInvariants() == [])
  }

  private func replies(to peer: RawPeer) -> [ScopeFetchReply] {
    peer.messages.compactMap { if case .scopeFetchReply(let reply) = $0 { reply } else { nil } }
  }

  private func rename(_ name: String, by peer: RawPeer) -> WireError? {
    let replies = peer.submit([
      SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": .string(name)])
    ])
    #expect(replies.count == 1)
    return replies.first?.error
  }

  @Test("A fetch waits for the app's answer, which is asked for once", arguments: [1, 2])
  func waiting(version: Int) {
    let peer = peer(version: version)
    fetch(by: peer)
    fetch(by: peer)
    #expect(replies(to: peer).isEmpty && asked.names == ["Canvas"])
    answer(peer, .success(.readWrite))
    #expect(replies(to: peer).count == 2 && replies(to: peer).allSatisfy { $0.error == nil })
    #expect(rename("a", by: peer) == nil && world.canvas.name == "a")
    // Known rights are not asked for again.
    fetch(by: peer)
    #expect(asked.names == ["Canvas"] && replies(to: peer).count == 3)
  }

  @Test("A fetch that is denied tells the reason, and the next one asks again", arguments: [1, 2])
  func denied(version: Int) {
    let peer = peer(version: version)
    fetch(by: peer)
    answer(peer, .failure(.notThere("There is no such room")))
    #expect(replies(to: peer).last?.error == .notThere("There is no such room"))
    #expect(world.fetches.isEmpty)
    fetch(by: peer)
    answer(peer, .success(.readOnly))
    #expect(asked.names.count == 2 && replies(to: peer).last?.error == nil)
  }

  @Test(
    "A client that may only read sees everything, and whatever it changes is rejected with the reason",
    arguments: [1, 2])
  func readOnly(version: Int) {
    let (reader, writer) = (peer(version: version), peer())
    for (peer, access) in [(reader, ScopeAccess.readOnly), (writer, .readWrite)] {
      fetch(by: peer)
      answer(peer, .success(access))
    }
    #expect(rename("a", by: writer) == nil)
    world.advance(by: .milliseconds(20))
    reader.take()
    #expect(reader.syncs.flatMap(\.fragments).contains { $0.properties["name"] == "a" })
    #expect(rename("b", by: reader)?.type == "read-only" && world.canvas.name == "a")
    writer.take()
    #expect(!writer.syncs.contains { $0.fragments.contains { $0.properties["name"] == "b" } })
  }

  @Test("Of a scope with several names, the rights under the last one count, and are kept")
  func names() {
    let peer = peer()
    for (name, access) in [
      ("one", ScopeAccess.readWrite), ("two", .readWrite), ("three", .readOnly),
    ] {
      world.moreScopes[name] = world.scope
      fetch(name, by: peer)
      answer(peer, .success(access), of: name)
    }
    #expect(rename("a", by: peer)?.type == "read-only")
    change(peer, .failure(.rejected("Out")), of: "one")
    #expect(world.server.sessions.values.first?.subscriptions.access.knownNames == ["three"])
    change(peer, .success(.readWrite), of: "three")
    #expect(rename("a", by: peer) == nil)
  }

  @Test("Rights change while a client is connected, at once and in both directions")
  func changes() {
    let peer = peer()
    fetch(by: peer)
    answer(peer, .success(.readOnly))
    #expect(rename("a", by: peer) != nil)
    change(peer, .success(.readWrite))
    #expect(rename("b", by: peer) == nil && world.canvas.name == "b")
    change(peer, .success(.readOnly))
    #expect(rename("c", by: peer) != nil && world.canvas.name == "b")
    let index = peer.scopeIndex
    change(peer, .failure(.rejected("You were put out")))
    let leaves = peer.messages.compactMap {
      if case .scopeLeave(let leave) = $0 { leave } else { nil }
    }
    #expect(
      leaves.map(\.scopeIndex) == [index] && leaves.first?.error == .rejected("You were put out"))
    let told = peer.messages.count
    world.canvas.name = "secret"
    world.scope.flush()
    world.advance(by: .milliseconds(20))
    peer.take()
    #expect(
      !peer.messages.dropFirst(told).contains { if case .scopeSync = $0 { true } else { false } })
    // It may come back when the app says so.
    fetch(by: peer)
    #expect(asked.names.count == 2)
    answer(peer, .success(.readWrite))
    #expect(rename("back", by: peer) == nil && world.canvas.name == "back")
  }

  @Test(
    "Rights that are taken while the app was asked, or while a scope is being opened, are not given"
  )
  func overtaken() {
    let peer = peer()
    fetch(by: peer)
    world.server.outdateAccess(of: nil)
    // This answer is from before; the app is asked once more.
    answer(peer, .success(.readWrite))
    #expect(replies(to: peer).isEmpty && asked.names.count == 2)
    answer(peer, .failure(.rejected("no")))
    #expect(replies(to: peer).last?.error == .rejected("no"))
  }

  @Test("An answer that comes late serves the next fetch, unless rights have changed meanwhile")
  func outOfDate() throws {
    let peer = peer()
    fetch(by: peer)
    let first = try #require(world.questions.values.first)
    world.advance(by: .seconds(31))
    peer.take()
    #expect(replies(to: peer).last?.error?.denial == .notNow)
    fetch(by: peer)
    #expect(asked.names.count == 1)
    world.server.outdateAccess(of: nil)
    world.decide(peer.token!, "Canvas", .success(.readWrite), to: first)
    #expect(asked.names.count == 2)
    world.decide(peer.token!, "Canvas", .success(.readWrite), to: first)
    peer.take()
    #expect(replies(to: peer).count == 1)
    answer(peer, .failure(.rejected("no")))
    #expect(replies(to: peer).last?.error == .rejected("no") && world.fetches.isEmpty)
  }

  @Test(
    "A question that is never answered is asked anew in the end, and its answer is too late then")
  func unanswered() throws {
    let peer = peer()
    fetch(by: peer)
    let first = try #require(world.questions.values.first)
    for _ in 0..<4 {
      world.advance(by: .seconds(31))
      peer.take()
    }
    fetch(by: peer)
    #expect(asked.names.count == 2)
    world.decide(peer.token!, "Canvas", .success(.readWrite), to: first)
    peer.take()
    #expect(replies(to: peer).count == 1)
    answer(peer, .success(.readOnly))
    #expect(replies(to: peer).last?.error == nil && rename("x", by: peer)?.type == "read-only")
  }

  @Test("An answer that comes too late, or for a session that has ended, changes nothing")
  func late() {
    let (slow, gone) = (peer(), peer())
    fetch(by: slow)
    fetch(by: gone)
    let token = gone.token!
    world.server.endSession(token, telling: .rejected("over"))
    world.decide(token, "Canvas", .success(.readWrite))
    world.advance(by: .seconds(29))
    slow.acknowledge()
    #expect(replies(to: slow).isEmpty)
    world.advance(by: .seconds(2))
    slow.take()
    #expect(replies(to: slow).last?.error?.denial == .notNow)
    answer(slow, .success(.readWrite))
    #expect(replies(to: slow).count == 1 && world.fetches.isEmpty)
  }

  @Test(
    "A client that fetches more scopes than may wait is told to come back, and others are not held up"
  )
  func flood() {
    let (peer, other) = (peer(), peer())
    for number in 0..<80 { fetch("Room \(number)", by: peer) }
    #expect(asked.names.count == 64 && replies(to: peer).count == 16)
    #expect(replies(to: peer).allSatisfy { $0.error?.denial == .notNow })
    fetch(by: other)
    answer(other, .success(.readWrite))
    #expect(rename("a", by: other) == nil)
    let large = JSONValue.string(String(repeating: "x", count: 2 << 20))
    let third = self.peer()
    third.send(third.stamp(.scopeFetch(ScopeFetch(name: "Canvas", params: large))))
    #expect(replies(to: third).last?.error?.denial == .notNow && asked.names.count == 65)
  }

  @Test(
    "A change set behind one that was dropped is dropped, too, until that one comes again"
  )
  func dropped() {
    let peer = peer()
    let client = UUID()
    func fetch() {
      peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas", client: client))))
      answer(peer, .success(.readWrite))
    }
    func submit(_ number: Int) -> [FragmentReply]? {
      var sync = ScopeSync(
        scopeIndex: peer.scopeIndex,
        fragments: [
          SyncFragment(
            .change, uuid: world.canvas.uuid, className: "Canvas",
            properties: ["name": .string("set \(number)")])
        ])
      sync.number = number
      let message = peer.stamp(.scopeSync(sync))
      peer.send(message)
      return peer.replies(to: message.index)
    }
    fetch()
    #expect(submit(1) == [FragmentReply()])
    change(peer, .failure(.notNow("later", retryAfter: .zero)))
    // Sent before the client knows: it has also asked for the scope once more, for another reason.
    #expect(submit(2) == nil)
    fetch()
    #expect(submit(3) == nil && world.canvas.name == "set 1")
    // Now it knows, and sends all that is undecided.
    #expect(submit(2) == [FragmentReply()] && submit(3) == [FragmentReply()])
    #expect(world.canvas.name == "set 3")
    #expect(world.server.positions.map(\.sequence) == [3])
  }

  @Test("A client whose scope is taken away is not sent the state again that it has missed")
  func missedState() {
    let peer = peer()
    fetch(by: peer)
    answer(peer, .success(.readWrite))
    func states(_ peer: RawPeer) -> Int {
      peer.messages.count { if case .scopeState = $0 { true } else { false } }
    }
    #expect(states(peer) == 1)
    world.cut(peer.link)
    change(peer, .failure(.notNow("later", retryAfter: .zero)))
    let again = RawPeer(world, params: ["sessiontoken": peer.token!])
    again.send(#"{"type":"Ping","index":0,"ack":0,"resendMissing":true}"#)
    #expect(states(again) == 0)
    // No number is missing for it.
    #expect(again.messages.map(\.index).filter { $0 > 0 } == [1, 2, 3])
  }
}
