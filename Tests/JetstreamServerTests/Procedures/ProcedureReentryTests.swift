import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// Observers of the server that act while a call commits, and what waits behind one.
@Suite("Procedures in the middle of other things")
struct ProcedureReentryTests {
  private let world = InMemoryWorld()
  private final class Kept {
    var requests: [ProcedureRequest] = []
    var records: [ScopeRecord] = []
    var errors: [any Error] = []
  }
  private let kept = Kept()

  init() throws {
    world.procedures[Like.name] = ServedProcedure(takesArguments: true) { [kept] in
      kept.requests.append($0)
    }
    _ = try world.server.host(world.scope, history: nil) { [kept] in kept.records.append($0) }
  }

  private func client() -> WorldClient {
    let client = world.addClient()
    client.join()
    settle()
    return client
  }

  private func settle() {
    for _ in 0..<4 {
      world.exchange()
      world.server.stored(kept.records.count, of: world.scope)
      world.exchange()
    }
  }

  /// Has an observer of the server change something with each change set that adds likes.
  private func nameWhenLiked() -> ObservationToken {
    world.scope.onChanges.listen { [world] set in
      if set.fragments.contains(where: { $0.operations["likes"] != [] }) {
        world.scope.modify { world.canvas.name = "seen" }
      }
    }
  }

  @Test("What an observer changes comes behind the change set of the call, in the log as well")
  func observer() async throws {
    let (ann, ben) = (client(), client())
    let call = try ann.scope.call(Like())
    settle()
    let token = nameWhenLiked()
    defer { token.cancel() }
    try kept.requests[0].commit(Like())
    #expect(kept.records.compactMap(\.sequence) == [1, 2])
    #expect(kept.records.map { $0.decision != nil } == [true, false])
    settle()
    #expect(try await call.output() == 1)
    #expect(world.canvas.name == "seen")
    for client in [ann, ben] {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    }
    let told = ben.heard.compactMap { message in
      if case .scopeSync(let sync) = message { sync.sequence } else { nil }
    }
    #expect(told == told.sorted())
  }

  @Test(
    "A client that was away is told the outcome of a call before what an observer has changed behind it"
  )
  func observerWhileAway() async throws {
    let ann = client()
    let call = try ann.scope.call(Like())
    settle()
    let token = nameWhenLiked()
    defer { token.cancel() }
    world.cut(try #require(ann.link))
    try kept.requests[0].commit(Like())
    settle()
    #expect(kept.records.compactMap(\.sequence) == [1, 2] && call.changeSet.state == .pending)
    let sent = ann.sent.count
    pass(5)
    #expect(try await call.output() == 1)
    #expect(ann.canvas.name == "seen")
    let asked = ann.sent.dropFirst(sent).contains { frame in
      String(decoding: frame, as: UTF8.self).contains("ScopeFetch")
    }
    #expect(!asked)
  }

  @Test("A request cannot commit while its scope delivers a change set; it can afterwards")
  func delivering() throws {
    let ann = client()
    try ann.scope.call(Like())
    settle()
    let token = world.scope.onChanges.listen { [kept] _ in
      if kept.errors.isEmpty {
        do { try kept.requests[0].commit(Like()) } catch { kept.errors.append(error) }
      }
    }
    defer { token.cancel() }
    world.canvas.name = "x"
    world.scope.flush()
    #expect(kept.errors.count == 1 && world.canvas.likes == 0)
    #expect(kept.requests[0].isOpen)
    try kept.requests[0].commit(Like())
    #expect(world.canvas.likes == 1 && kept.records.count(where: { $0.decision != nil }) == 1)
    settle()
    #expect(ann.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  @Test("A call whose scope is removed by an observer of its change set is not decided")
  func removed() throws {
    let ann = client()
    try ann.scope.call(Like())
    settle()
    let token = world.scope.onChanges.listen { [world] _ in
      world.server.remove(world.scope, .rejected("over"))
    }
    defer { token.cancel() }
    #expect(throws: CancellationError.self) { try kept.requests[0].commit(Like()) }
    #expect(kept.records.isEmpty)
  }

  @Test("The server remembers what was removed until the calls from before that are decided")
  func horizon() throws {
    world.canvas.shapes.append(Shape())
    world.scope.flush()
    let (ann, ben) = (client(), client())
    try ann.scope.call(Like())
    world.exchange()
    ben.canvas.shapes.remove(ben.canvas.shapes[0])
    ben.flush()
    pass(20)
    #expect(ann.canvas.shapes.isEmpty)
    #expect(world.server.departedCount(of: world.scope) == 1)
    try kept.requests[0].commit(Like())
    pass(20)
    #expect(world.server.departedCount(of: world.scope) == 0)
    #expect(ann.scope.canonicalJSON == world.scope.canonicalJSON)
  }

  private func pass(_ seconds: Int) {
    for _ in 0..<seconds {
      settle()
      world.advance(by: .seconds(1))
    }
    settle()
  }

  @Test("A call that commits because another one has taken too long is decided once")
  func committedBehindLateCall() throws {
    let (ann, ben) = (client(), client())
    try ann.scope.call(Like())
    try ben.scope.call(Like())
    settle()
    #expect(kept.requests.count == 2)
    for (at, request) in kept.requests.enumerated() {
      request.onCancel = { [kept] in _ = try? kept.requests[1 - at].commit(Like()) }
    }
    pass(40)
    settle()
    let decisions = kept.records.compactMap(\.decision)
    #expect(decisions.count == 2 && Set(decisions.map(\.client)).count == 2)
    #expect(world.canvas.likes == 1)
    for client in [ann, ben] { #expect(client.scope.canonicalJSON == world.scope.canonicalJSON) }
  }

  @Test("What another session has sent behind a call asks for its turn when the call is taken away")
  func takenAway() throws {
    world.judgesAtOnce = false
    let id = UUID()
    let peers = (0..<2).map { _ in
      let peer = RawPeer.joined(world, protocol: 2)
      peer.fetch(as: id)
      return peer
    }
    peers[0].call(number: 1)
    let change = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "behind"])
    peers[1].submit([change], number: 2)
    #expect(kept.requests.count == 1 && world.canvas.name == nil && !world.judge())
    let token = try #require(peers[0].token)
    world.server.endSession(token, isTakenAway: true, now: world.now)
    #expect(world.judge() && world.canvas.name == "behind")
  }
}
