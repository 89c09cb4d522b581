import Foundation
import Jetstream
import JetstreamServer
import Testing

/// Full states that arrive in a mode that holds back what others change.
@Suite("Full states and sync modes")
struct HeldStateTests {
  private let world = InMemoryWorld()
  private let client: WorldClient

  init() {
    client = world.addClient()
    client.join()
    world.settle()
  }

  private func setMode(_ mode: SyncMode) {
    client.engine.setMode(mode, of: client.scope, now: world.now)
  }

  private var state: SyncState { client.engine.state(of: client.scope)! }

  /// Has the server make more change sets than it remembers, while the client is not told of any.
  private func miss() {
    setMode(.paused)
    world.exchange()
    for number in 1...9000 {
      world.canvas.likes = number
      world.scope.flush()
    }
    world.exchange()
    #expect(client.canvas.likes == 0)
  }

  /// Has the server answer what the client has asked for, without delivering it.
  private func answer() throws {
    let link = try #require(client.link)
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    #expect(!link.toClient.isEmpty)
  }

  private func expectEqual() {
    #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
    #expect(client.engine.pendingCount == 0 && client.engine.checkInvariants() == [])
    #expect(state.isUpToDate && world.endedSessions.isEmpty)
  }

  @Test("One that is on its way when the mode changes is not shown, and comes when it may be")
  func onItsWay() throws {
    miss()
    client.canvas.name = "mine"
    client.flush()
    setMode(.realtime)
    try answer()
    setMode(.paused)
    world.exchange()
    #expect(client.canvas.likes == 0 && client.canvas.name == "mine" && !state.isUpToDate)
    setMode(.realtime)
    world.exchange()
    #expect(client.canvas.likes == 9000 && world.canvas.name == "mine")
    expectEqual()
  }

  @Test("A sync brings the one that was held back, and the mode may change to and fro")
  func toAndFro() throws {
    miss()
    setMode(.realtime)
    try answer()
    setMode(.pushOnly)
    client.canvas.name = "mine"
    world.exchange()
    #expect(client.canvas.likes == 0 && world.canvas.name == "mine")
    #expect(state.decidedCount == 1)
    var result: Result<Void, SyncError>?
    client.engine.sync(client.scope, now: world.now) { result = $0 }
    world.exchange()
    try result?.get()
    #expect(result != nil && client.canvas.likes == 9000 && state.mode == .pushOnly)
    world.canvas.likes = 1
    world.exchange()
    #expect(client.canvas.likes == 9000)
    setMode(.realtime)
    setMode(.paused)
    setMode(.realtime)
    world.exchange()
    expectEqual()
  }

  @Test("One that comes in parts is held back as a whole, also if the mode changes between them")
  func parts() throws {
    let server = ScriptedServer()
    server.joinAtPosition(ScopePosition(epoch: "e", sequence: 1))
    func setMode(_ mode: SyncMode) {
      server.engine.setMode(mode, of: server.scope, now: server.now)
    }
    func fetch() throws -> ScopeFetch {
      try #require(
        server.takeSent().compactMap { message in
          if case .scopeFetch(let fetch) = message { fetch } else { nil }
        }.last)
    }
    func part(_ properties: JSONObject, more: Bool) -> Message {
      let root = server.canvas.uuid
      let shape = UUID()
      let fragment =
        more
        ? SyncFragment(.change, uuid: root, className: "Canvas", properties: properties)
        : SyncFragment(.add, uuid: shape, className: "Shape", properties: properties)
      var state = ScopeState(scopeIndex: 0, rootUUID: root, fragments: [fragment])
      state.more = more
      return .scopeState(state)
    }
    func grant(_ sequence: Int, resumes: Bool = false) throws {
      let position = ScopePosition(epoch: "e", sequence: sequence)
      let standing = ScopeStanding(position: position, resumes: resumes)
      let index = try fetch().index
      server.deliver([
        .scopeFetchReply(ScopeFetchReply(replyTo: index, scopeIndex: 0, standing: standing))
      ])
    }
    setMode(.paused)
    try grant(1, resumes: true)
    setMode(.realtime)
    try grant(9000)
    server.deliver([part(["name": "theirs", "shapes": [], "hidden": []], more: true)])
    setMode(.paused)
    server.deliver([part(["label": "x"], more: false)])
    #expect(server.canvas.name == nil)
    #expect(server.engine.state(of: server.scope)?.position?.sequence == 1)
    #expect(server.engine.restingTables["stateParts"] == 0)
    // The server is told of the mode, and then, once it is another one, asked for everything again.
    let quiet = try fetch()
    #expect(quiet.tell == .nothing)
    setMode(.realtime)
    let now = ScopeStanding(position: ScopePosition(epoch: "e", sequence: 9000), resumes: true)
    server.deliver([
      .scopeFetchReply(ScopeFetchReply(replyTo: quiet.index, scopeIndex: 0, standing: now))
    ])
    let again = try fetch()
    #expect(again.tell == .everything && again.since?.sequence == 1)
  }
}
