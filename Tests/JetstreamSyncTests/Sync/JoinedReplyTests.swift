import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// Change sets that are accepted one behind the other in one turn get one reply.
@Suite("One reply to several change sets")
struct JoinedReplyTests {
  private let world = InMemoryWorld()

  private func likes(_ count: Int64) -> SyncFragment {
    SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["likes": .integer(count)])
  }

  private var wrong: SyncFragment {
    SyncFragment(.change, uuid: UUID(), className: "Canvas", properties: ["likes": 1])
  }

  /// Sends a change set for each of some lists of fragments, all in one frame. Returns their indices.
  private func send(_ sets: [[SyncFragment]], by peer: RawPeer) -> [Int] {
    let messages = sets.map {
      peer.stamp(.scopeSync(ScopeSync(scopeIndex: peer.scopeIndex, fragments: $0)))
    }
    peer.send(String(decoding: Message.encodeFrame(messages, asArray: true), as: UTF8.self))
    return messages.map(\.index)
  }

  private func replies(to peer: RawPeer) -> [ScopeSyncReply] {
    peer.messages.compactMap { if case .scopeSyncReply(let reply) = $0 { reply } else { nil } }
  }

  private func counts(of peer: RawPeer) -> [Int] { replies(to: peer).map(\.count) }

  @Test("The reply names the last message and the last sequence, and how many there are")
  func joined() throws {
    let (peer, other) = (
      RawPeer.joined(world, protocol: 2), RawPeer.joined(world, protocol: 2)
    )
    let name = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "a"])
    let indices = send([[likes(1)], [likes(2), name], [likes(4)]], by: peer)
    let reply = try #require(replies(to: peer).first)
    #expect(replies(to: peer).count == 1 && reply.count == 3)
    #expect(
      reply.replyTo == indices[2] && reply.sequence == world.server.hosts.values.first?.sequence)
    #expect(indices.allSatisfy(reply.answers) && !reply.answers(indices[0] - 1))
    other.take()
    #expect(other.syncs.count == 3)
    // The next turn begins another one.
    _ = send([[likes(5)]], by: peer)
    #expect(counts(of: peer) == [3, 1])
    #expect(world.server.checkInvariants() == [])
  }

  @Test("A rejected change set has a reply of its own, in its place")
  func rejected() {
    let peer = RawPeer.joined(world, protocol: 2)
    let indices = send([[likes(1)], [likes(2)], [wrong], [likes(3)], [likes(4)]], by: peer)
    #expect(counts(of: peer) == [2, 1, 2])
    #expect(replies(to: peer).map(\.replyTo) == [indices[1], indices[2], indices[4]])
    #expect(replies(to: peer)[1].fragmentReplies.map { $0.error != nil } == [true])
  }

  @Test("A change set that another message precedes has a reply of its own")
  func interrupted() {
    let peer = RawPeer.joined(world, protocol: 2)
    let scope = peer.scopeIndex
    let messages = [
      peer.stamp(.scopeSync(ScopeSync(scopeIndex: scope, fragments: [likes(1)]))),
      peer.stamp(.scopeFetch(ScopeFetch(name: "Nowhere"))),
      peer.stamp(.scopeSync(ScopeSync(scopeIndex: scope, fragments: [likes(2)]))),
    ]
    peer.send(String(decoding: Message.encodeFrame(messages, asArray: true), as: UTF8.self))
    #expect(counts(of: peer) == [1, 1])
  }

  @Test("What others have changed in between is told in its place")
  func others() {
    let peers = (0..<2).map { _ in RawPeer.joined(world, protocol: 2) }
    for round in 0..<2 {
      for (at, peer) in peers.enumerated() {
        let syncs = (0..<2).map { number in
          Result<Message, MessageError>.success(
            peer.stamp(
              .scopeSync(
                ScopeSync(scopeIndex: 0, fragments: [likes(Int64(100 * at + 10 * round + number))]))
            ))
        }
        world.server.received(
          [.frame(.init(messages: .success(syncs), isArray: true))], on: peer.link.id,
          now: world.now, endsTurn: false)
      }
    }
    world.server.endTurn()
    for (at, peer) in peers.enumerated() {
      peer.take()
      #expect(counts(of: peer) == [2, 2])
      let order = peer.messages.flatMap { message -> [Int] in
        switch message {
        case .scopeSync(let sync): sync.sequence.map { [$0] } ?? []
        case .scopeSyncReply(let reply):
          reply.sequence.map { Array($0 - reply.count + 1...$0) } ?? []
        default: []
        }
      }
      // The last ones of the other follow at the end of the turn.
      #expect(order == Array(1...8), "peer \(at)")
    }
  }

  @Test("A peer of version 1 gets a reply to each")
  func versionOne() {
    let peer = RawPeer.joined(world)
    let indices = send([[likes(1)], [likes(2)]], by: peer)
    #expect(replies(to: peer).map(\.replyTo) == indices && counts(of: peer) == [1, 1])
  }

  @Test("A reply that was lost with the connection is sent again as it was")
  func resent() throws {
    let peer = RawPeer.joined(world, protocol: 2)
    let indices = send([[likes(1)], [likes(2)], [likes(3)]], by: peer)
    let first = try #require(replies(to: peer).first)
    peer.send(.ping(Ping(ack: first.index - 1, resendMissing: true)))
    #expect(replies(to: peer) == [first, first] && first.replyTo == indices[2])
    #expect(world.server.checkInvariants() == [])
  }

  @Test("A client that acknowledges a reply which it was not sent yet gets another one")
  func acknowledgedTooEarly() throws {
    let peer = RawPeer.joined(world, protocol: 2)
    let unsent = try #require(world.server.sessions.values.first).channel.highestSent + 1
    func sync(_ count: Int64) -> Message {
      peer.stamp(.scopeSync(ScopeSync(scopeIndex: peer.scopeIndex, fragments: [likes(count)])))
    }
    let messages = [sync(1), .ping(Ping(ack: unsent)), sync(2)]
    world.server.received(
      messages.map { .frame(.init(messages: .success([.success($0)]), isArray: true)) },
      on: peer.link.id, now: world.now, endsTurn: false)
    world.server.endTurn()
    peer.take()
    #expect(replies(to: peer).map(\.replyTo) == [messages[0].index, messages[2].index])
    #expect(counts(of: peer) == [1, 1] && world.server.checkInvariants() == [])
  }

  @Test("A client takes it as the decision on each, at the sequence of each")
  func client() throws {
    let server = ScriptedServer()
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 7))
    var decided: [Int] = []
    let handles = (1...3).map { number in
      let handle = server.scope.modify(nil) {
        server.canvas.likes = number
        // Two fragments.
        if number == 2 { server.canvas.shapes.append(Shape()) }
      }
      handle.whenFinished { if $0 == nil { decided.append(number) } }
      return handle
    }
    let sent = server.takeSyncs().map(\.index)
    #expect(sent.count == 3)
    var reply = ScopeSyncReply(replyTo: sent[0], fragmentReplies: [FragmentReply()], sequence: 8)
    #expect(reply.accept(sent[1], at: 9) && reply.accept(sent[2], at: 10))
    server.deliver([.scopeSyncReply(reply)])
    #expect(decided == [1, 2, 3] && handles.map(\.state) == [.accepted, .accepted, .accepted])
    #expect(handles.map(\.outcomes.count) == [1, 2, 1])
    #expect(server.engine.replicas.first?.progress.sequence == 10)
    #expect(server.engine.checkInvariants().isEmpty)
  }

  @Test("It is written without the replies, and read from any text")
  func text() throws {
    var reply = ScopeSyncReply(
      index: 4, replyTo: 7, fragmentReplies: [FragmentReply()], sequence: 20)
    #expect(!reply.accept(9, at: 21) && !reply.accept(8, at: 22) && reply.count == 1)
    #expect(reply.accept(8, at: 21) && reply.accept(9, at: 22))
    let message = Message.scopeSyncReply(reply)
    let text =
      #"{"type":"ScopeSyncReply","index":4,"replyTo":9,"count":3,"sequence":22}"#
    #expect(message.json.text == text)
    let spaced = #"[ {"type":"ScopeSyncReply", "sequence":22,"count":3,"index":4,"replyTo":9} ]"#
    for frame in [text, spaced] {
      let read = try Message.decodeFrame(Array(frame.utf8)).map { try $0.get() }
      #expect(read == [message])
    }
    for count in ["1", "0", "-1", "10001", "23", "10", "\"3\""] {
      let wrong = text.replacingOccurrences(of: #""count":3"#, with: #""count":\#(count)"#)
      let read = try Message.decodeFrame(Array(wrong.utf8))
      #expect(throws: MessageError.self, "\(count)") { try read[0].get() }
    }
    let nowhere = #"{"type":"ScopeSyncReply","index":4,"replyTo":9,"count":3}"#
    #expect(throws: MessageError.self) {
      try Message.decodeFrame(Array(nowhere.utf8))[0].get()
    }
  }
}
