import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// The server decides a change set that it cannot read, like any other: a client whose session is lost takes what is
/// not told for accepted, once later change sets are decided.
@Suite("Change sets that a server cannot read")
struct UnreadableChangeSetTests {
  private let world = InMemoryWorld()
  private let ann = UUID()

  private func peer(_ world: InMemoryWorld) -> RawPeer {
    let peer = RawPeer(world)
    peer.createSession()
    peer.fetch(as: ann)
    return peer
  }

  /// Sends a change set with a fragment that is none. Returns the index of the message.
  private func sendUnreadable(_ peer: RawPeer, number: Int) -> Int {
    let index = peer.stamp(.scopeLeave(ScopeLeave(scopeIndex: 0))).index
    peer.send(
      #"{"type":"ScopeSync","index":\#(index),"scopeIndex":\#(peer.scopeIndex),"#
        + #""fragments":[7],"number":\#(number)}"#)
    return index
  }

  private func named(_ text: String) -> [SyncFragment] {
    [
      SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": .string(text)])
    ]
  }

  private func isUnreadable(_ index: Int, by peer: RawPeer) -> Bool {
    peer.replies(to: index)?.map(\.error?.type) == ["invalid-message"]
  }

  private func decisions(toldTo peer: RawPeer) -> [ScopeStanding.Decision] {
    for case .scopeFetchReply(let reply) in peer.messages.reversed() {
      return reply.standing?.decisions ?? []
    }
    return []
  }

  private func expectDecided(_ decisions: [ScopeStanding.Decision]) {
    #expect(decisions.map(\.number) == [1, 2] && decisions.last?.sequence == 1)
    #expect(decisions.first?.fragmentReplies.map(\.error?.type) == ["invalid-message"])
    // It was not read, so that nothing tells it from another one.
    #expect(decisions.first?.checksum == nil)
  }

  @Test("One stays rejected in later sessions, and when the server is started again")
  func laterSession() throws {
    let peer = peer(world)
    #expect(isUnreadable(sendUnreadable(peer, number: 1), by: peer))
    let behind = peer.submit(named("behind"), number: 2)
    #expect(peer.replies(to: behind) == [FragmentReply()])

    let later = self.peer(world)
    expectDecided(decisions(toldTo: later))
    #expect(isUnreadable(sendUnreadable(later, number: 1), by: later))
    // The same change set, as a server of another version has read it.
    #expect(isUnreadable(later.submit(named("read"), number: 1), by: later))
    #expect(world.canvas.name == "behind" && world.server.checkInvariants() == [])

    let history = try #require(world.server.history(of: world.scope))
    let next = InMemoryWorld()
    try next.server.host(next.scope, history: history) { _ in }
    expectDecided(decisions(toldTo: self.peer(next)))
  }

  @Test("The record of the decision on one has no checksum to compare with")
  func record() {
    let host = world.server.hostedScope(world.scope)
    var records: [ScopeRecord] = []
    host.order.records.store = { records.append($0) }
    let peer = peer(world)
    let index = sendUnreadable(peer, number: 1)
    #expect(peer.replies(to: index) == nil)
    host.order.records.stored(records.count)
    world.server.endTurn()
    peer.take()
    #expect(isUnreadable(index, by: peer))
    #expect(records.map(\.decision?.number) == [1] && records.first?.decision?.checksum == 0)
  }

  /// Sends a call with a fragment that is none. Returns the index of the message.
  private func sendUnreadableCall(_ peer: RawPeer, number: Int? = nil) -> Int {
    let index = peer.stamp(.scopeLeave(ScopeLeave(scopeIndex: 0))).index
    let numbered = number.map { #","number":\#($0)"# } ?? ""
    peer.send(
      #"{"type":"ScopeSync","index":\#(index),"scopeIndex":\#(peer.scopeIndex),"#
        + #""fragments":[7],"atomic":true,"procedure":"\#(Like.name)","arguments":{}\#(numbered)}"#)
    return index
  }

  @Test("A call that cannot be read fails: its reply has an outcome", arguments: [nil, 1])
  func call(number: Int?) {
    world.procedures[Like.name] = ServedProcedure(takesArguments: true) { _ in
      Issue.record("It was not read.")
    }
    let peer = number == nil ? RawPeer.joined(world, protocol: 2) : peer(world)
    let index = sendUnreadableCall(peer, number: number)
    #expect(isUnreadable(index, by: peer))
    #expect(peer.reply(to: index)?.outcome?.error?.type == "invalid-message")
    guard let number else { return }
    // It stays so in later sessions.
    let later = self.peer(world)
    #expect(decisions(toldTo: later).map(\.outcome?.error?.type) == ["invalid-message"])
    let again = sendUnreadableCall(later, number: number)
    #expect(later.reply(to: again)?.outcome?.error?.type == "invalid-message")
  }

  @Test("One waits for the call in front of it")
  func behindCall() throws {
    var requests: [ProcedureRequest] = []
    world.procedures[Like.name] = ServedProcedure(takesArguments: true) { requests.append($0) }
    let peer = peer(world)
    let call = peer.call(number: 1)
    let index = sendUnreadable(peer, number: 2)
    #expect(peer.replies(to: index) == nil)
    try requests[0].commit(Like())
    peer.take()
    #expect(peer.reply(to: call)?.outcome == .output(1) && isUnreadable(index, by: peer))
    #expect(decisions(toldTo: self.peer(world)).map(\.number) == [1, 2])
  }

  @Test("Its client learns of the rejection in the next session")
  func client() throws {
    let client = world.addClient()
    client.join()
    world.settle()
    client.canvas.name = "mine"
    client.flush()
    let link = try #require(client.link)
    link.toServer = link.toServer.map {
      let text = String(decoding: $0, as: UTF8.self)
      return Array(text.replacingOccurrences(of: #""type":"change""#, with: #""type":"x""#).utf8)
    }
    client.canvas.likes = 1
    client.flush()
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    #expect(world.canvas.likes == 1 && world.canvas.name == nil)
    // The session is lost with the answers.
    link.toClient = []
    link.serverClose = (4097, "")
    world.pass(3)
    world.settle()
    #expect(client.rejections.count == 1 && client.canvas.name == nil && client.canvas.likes == 1)
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
  }
}
