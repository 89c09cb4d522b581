import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("Authentication of sessions")
struct AuthenticationTests {
  private let world = InMemoryWorld()
  /// The connections about whose clients the app is being asked.
  private final class Asked {
    var connections: [Int] = []
  }
  private let asked = Asked()

  init() {
    world.authenticate = { [asked] session in
      asked.connections.append(session.number)
      return .pending
    }
  }

  /// A client that has asked for a session.
  private func applicant() -> RawPeer {
    let peer = RawPeer(world)
    peer.send(#"{"type":"SessionCreate","index":0,"version":"1.0.0","protocol":2,"params":{}}"#)
    return peer
  }

  private func answer(_ peer: RawPeer, _ answer: Result<Principal?, WireError>) {
    world.server.authenticated(peer.link.id, answer, now: world.now)
    peer.take()
  }

  private func refusal(of peer: RawPeer) -> WireError? {
    for case .sessionCreateReply(let reply) in peer.messages { return reply.error }
    return nil
  }

  @Test(
    "A client waits for the app's answer, and its change sets have the principal's name as their author"
  )
  func accepted() throws {
    let peer = applicant()
    #expect(peer.messages.isEmpty && world.server.sessionCount == 0)
    answer(peer, .success(Principal("u-1", name: "Grace", claims: ["role": "editor"])))
    #expect(peer.token != nil && world.server.sessionCount == 1)
    let session = try #require(world.server.sessionInfos.first)
    #expect(session.principal?.id == "u-1" && session.principal?.claims == ["role": "editor"])
    var author: String?
    world.scope.onRemoteChanges.listen { author = $0.author }
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    peer.submit([
      SyncFragment(.change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "a"])
    ])
    #expect(world.canvas.name == "a" && author == "Grace")
    #expect(world.log.contains { $0.contains("u-1") }, "\(world.log)")
  }

  @Test("A client that is denied is told the reason, and its connection is closed")
  func denied() {
    let peer = applicant()
    answer(peer, .failure(.notYou("The token is not known")))
    #expect(refusal(of: peer) == .notYou("The token is not known"))
    #expect(peer.close?.code == 4096 && world.server.sessionCount == 0)
  }

  @Test("An answer that comes when the client has gone, or a second one, changes nothing")
  func gone() {
    let peer = applicant()
    world.cut(peer.link)
    answer(peer, .success(nil))
    answer(peer, .failure(.notYou("no")))
    #expect(world.server.sessionCount == 0 && world.server.connectionCount == 0)
    let other = applicant()
    answer(other, .success(nil))
    answer(other, .success(Principal("u-2")))
    answer(other, .failure(.notYou("no")))
    #expect(world.server.sessionInfos.map(\.principal) == [nil] && other.close == nil)
  }

  @Test(
    "A client whose app takes too long is told to come back, and one that talks meanwhile is refused"
  )
  func impatience() {
    let slow = applicant()
    let talking = applicant()
    talking.send(#"{"type":"Ping","index":0,"ack":0}"#)
    #expect(talking.close?.code == 4096)
    world.advance(by: .seconds(9.5))
    slow.take()
    #expect(slow.close == nil)
    world.advance(by: .seconds(1))
    slow.take()
    #expect(slow.close?.code == 4096 && slow.close?.reason.contains("not-now") == true)
    answer(slow, .success(nil))
    #expect(world.server.sessionCount == 0)
  }

  @Test(
    "Revoking a principal ends its sessions, and refuses the ones about which the app is being asked"
  )
  func revocation() {
    let (one, two, other, late, lateOther) = (
      applicant(), applicant(), applicant(), applicant(), applicant()
    )
    answer(one, .success(Principal("u-1")))
    answer(two, .success(Principal("u-1")))
    answer(other, .success(Principal("u-2")))
    #expect(world.server.revoke("u-1", telling: .rejected("You are blocked")) == 2)
    for peer in [one, two] {
      peer.take()
      #expect(peer.close?.code == 4096 && peer.close?.reason.contains("You are blocked") == true)
    }
    // The app may have found its answer before.
    answer(late, .success(Principal("u-1")))
    answer(lateOther, .success(Principal("u-3")))
    other.take()
    #expect(refusal(of: late)?.denial == .notYou && other.close == nil && lateOther.close == nil)
    #expect(world.server.sessionInfos.compactMap(\.principal?.id) == ["u-2", "u-3"])
    #expect(world.endedSessions.count == 2)
    #expect(world.server.revoke("u-1", telling: .rejected("again")) == 0)
  }

  @Test("A session ends when its credentials expire, with or without a connection, and no earlier")
  func expiry() {
    let date = Date(timeIntervalSince1970: 1_000_000)
    world.date = date
    let (one, two, late) = (applicant(), applicant(), applicant())
    for peer in [one, two] {
      answer(peer, .success(Principal("u-1", expiry: date.addingTimeInterval(60))))
    }
    answer(late, .success(Principal("u-1", expiry: date)))
    #expect(refusal(of: late)?.denial == .notYou)
    two.send(two.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    world.cut(two.link)
    world.advance(by: .seconds(59))
    #expect(world.server.sessionCount == 2)
    world.advance(by: .seconds(2))
    one.take()
    #expect(world.server.sessionCount == 0 && one.close?.code == 4096)
    #expect(one.close?.reason.contains("not-you") == true)
  }

  @Test("Credentials may expire at any time, also at one that is none")
  func farExpiry() {
    world.date = Date(timeIntervalSince1970: 1_000_000)
    for seconds in [Double.infinity, .greatestFiniteMagnitude, 1e20, 1e11] {
      let expiry = Date(timeIntervalSinceReferenceDate: seconds)
      let peer = applicant()
      answer(peer, .success(Principal("u-1", expiry: expiry)))
      #expect(peer.token != nil, "\(seconds)")
    }
    for seconds in [Double.nan, -.infinity, -1e20] {
      let expiry = Date(timeIntervalSinceReferenceDate: seconds)
      let peer = applicant()
      answer(peer, .success(Principal("u-1", expiry: expiry)))
      #expect(refusal(of: peer)?.denial == .notYou, "\(seconds)")
    }
    world.advance(by: .seconds(1))
    #expect(world.server.sessionCount == 4)
  }

  @Test("A client that resumes a session waits for the app's answer again")
  func resumed() throws {
    let date = Date(timeIntervalSince1970: 1_000_000)
    world.date = date
    let peer = applicant()
    answer(peer, .success(Principal("u-1", expiry: date.addingTimeInterval(20))))
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    world.cut(peer.link)
    world.canvas.name = "meanwhile"
    world.scope.flush()
    let again = RawPeer(world, params: ["sessiontoken": peer.token!])
    #expect(asked.connections.count == 2 && world.server.isWaiting(again.link.id))
    again.take()
    #expect(again.messages.isEmpty)
    let claims: [String: JSONValue] = ["role": "editor"]
    answer(
      again, .success(Principal("u-1", claims: claims, expiry: date.addingTimeInterval(200))))
    again.send(.ping(Ping(ack: 0)))
    again.take()
    #expect(again.syncs.flatMap(\.fragments).contains { $0.properties["name"] == "meanwhile" })
    // The session has the new claims, and the new time at which the credentials expire.
    #expect(world.server.sessionInfos.map(\.principal?.claims) == [claims])
    world.advance(by: .seconds(30))
    #expect(world.server.sessionCount == 1)
  }

  @Test("A token is of no use to another principal, nor without credentials, and its session stays")
  func stolenToken() {
    let peer = applicant()
    answer(peer, .success(Principal("u-1")))
    func attempt(_ answer: Result<Principal?, WireError>) -> WireError? {
      let thief = RawPeer(world, params: ["sessiontoken": peer.token!])
      self.answer(thief, answer)
      return thief.closeError
    }
    #expect(attempt(.success(Principal("u-2")))?.denial == .notYou)
    #expect(attempt(.success(nil))?.denial == .notYou)
    #expect(attempt(.failure(.notNow("Ask again", retryAfter: .seconds(9))))?.denial == .notNow)
    #expect(peer.close == nil && world.server.sessionCount == 1)
    // Nor if the answer comes when the session has ended.
    let late = RawPeer(world, params: ["sessiontoken": peer.token!])
    _ = world.server.revoke("u-1", telling: .notYou("Blocked"))
    answer(late, .success(Principal("u-1")))
    #expect(late.closeError == .notYou("The credentials were revoked"))
    // An app that does not answer is not waited for.
    let other = applicant()
    answer(other, .success(Principal("u-3")))
    let waiting = RawPeer(world, params: ["sessiontoken": other.token!])
    world.advance(by: .seconds(11))
    waiting.take()
    #expect(waiting.closeError?.denial == .notNow)
  }

  @Test("A client that claims another principal's client id takes over none of its numbers")
  func claimedClient() {
    let (ann, eve) = (applicant(), applicant())
    let client = UUID()
    func submit(_ name: String, by peer: RawPeer) -> WireError? {
      peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas", client: client))))
      var sync = ScopeSync(
        scopeIndex: peer.scopeIndex,
        fragments: [
          SyncFragment(
            .change, uuid: world.canvas.uuid, className: "Canvas",
            properties: ["name": .string(name)])
        ])
      sync.number = 1
      let message = peer.stamp(.scopeSync(sync))
      peer.send(message)
      return peer.replies(to: message.index)?.first?.error
    }
    answer(ann, .success(Principal("u-1")))
    answer(eve, .success(Principal("u-2")))
    #expect(submit("ann's", by: ann) == nil && world.canvas.name == "ann's")
    let standing = eve.messages.count
    #expect(submit("eve's", by: eve) == nil && world.canvas.name == "eve's")
    for case .scopeFetchReply(let reply) in eve.messages.dropFirst(standing) {
      #expect(reply.standing?.decided == 0 && reply.standing?.decisions == [])
    }
    // In another session of its own principal, the client is the same.
    let again = applicant()
    answer(again, .success(Principal("u-1")))
    _ = submit("ann's", by: again)
    #expect(world.canvas.name == "eve's")
  }

  @Test("A session can be ended while a change set of its own is being applied")
  func endedInside() {
    let peer = applicant()
    answer(peer, .success(Principal("u-1")))
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    var ended = 0
    world.canvas.observeChangeImmediately(asked, \.name) { [world] _, _, _ in
      ended += world.server.revoke("u-1", telling: .notYou("over"))
    }
    peer.send([
      SyncFragment(.change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "a"])
    ])
    #expect(ended == 1 && peer.close?.code == 4096 && world.server.sessionCount == 0)
    #expect(world.canvas.name == "a" && world.server.checkInvariants() == [])
  }
}
