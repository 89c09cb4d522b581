import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// Calls by clients that say what they should not, and by sessions that come and go.
@Suite("Procedures that are misused")
struct ProcedureAbuseTests {
  private let world: InMemoryWorld
  private final class Open {
    var requests: [ProcedureRequest] = []
  }
  private let open = Open()
  private let ann = UUID()

  init() {
    var configuration = ServerEngine.Configuration()
    configuration.keptLimit = .init(messages: 1000, bytes: 200_000)
    world = InMemoryWorld(configuration: configuration)
    world.procedures[Like.name] = ServedProcedure(takesArguments: true) { [open] in
      open.requests.append($0)
    }
  }

  private func peer(as client: UUID?) -> RawPeer {
    let peer = RawPeer(world)
    peer.createSession()
    peer.fetch(as: client)
    return peer
  }

  private func named(_ text: String) -> [SyncFragment] {
    [
      SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": .string(text)])
    ]
  }

  @Test("Another call with the number of one that is running does not take its place")
  func sameNumber() throws {
    let peer = peer(as: ann)
    let first = peer.call(number: 1, ["count": 1, "limit": 10])
    let second = peer.call(number: 1, ["count": 5, "limit": 10])
    #expect(peer.reply(to: second)?.outcome?.error?.type == "set-number-reused")
    #expect(open.requests.count == 1)
    #expect(try open.requests[0].commit(Like(count: 1)) == 1)
    peer.take()
    #expect(peer.reply(to: first)?.outcome == .output(1))
  }

  @Test("A call with a lower number than one that is running is not begun")
  func lowerNumber() throws {
    let peer = peer(as: ann)
    peer.call(number: 5)
    let lower = peer.call(number: 3)
    #expect(peer.reply(to: lower)?.outcome?.error?.type == "set-number-reused")
    #expect(open.requests.count == 1 && open.requests[0].isOpen)
    try open.requests[0].commit(Like())
    #expect(world.canvas.likes == 1)
  }

  @Test("A session that leaves its calls behind, each under another identity, begins only some")
  func leftBehind() throws {
    let peer = peer(as: ann)
    var last = 0
    for _ in 0..<40 {
      peer.fetch(as: UUID())
      last = peer.call(number: 1)
      peer.send(peer.stamp(.scopeLeave(ScopeLeave(scopeIndex: peer.scopeIndex))))
    }
    #expect(open.requests.count == 16 && open.requests.allSatisfy(\.isOpen))
    #expect(peer.reply(to: last)?.outcome?.error?.denial == .notNow)
    for request in open.requests.prefix(5) { try request.commit(Like()) }
    #expect(world.canvas.likes == 5)
    peer.fetch(as: UUID())
    peer.call(number: 1)
    #expect(open.requests.count == 17)
  }

  @Test("A session that gives its calls up, each for another identity, begins only some")
  func givenUp() {
    let peer = peer(as: ann)
    var last = 0
    for _ in 0..<40 {
      peer.fetch(as: UUID())
      last = peer.call(number: 1)
    }
    // None comes again under the identity that the client has given up.
    #expect(open.requests.count == 16)
    #expect(open.requests.allSatisfy { !$0.isOpen && !$0.comesAgain })
    #expect(peer.reply(to: last)?.outcome?.error?.denial == .notNow)
    for request in open.requests.prefix(5) { world.server.ended(request) }
    for _ in 0..<10 {
      peer.fetch(as: UUID())
      peer.call(number: 1)
    }
    #expect(open.requests.count == 21)
  }

  @Test("A call that is dropped by the report of its handler's end is counted no longer")
  func droppedByReport() throws {
    let peer = peer(as: ann)
    peer.call(number: 1)
    let token = try #require(world.server.sessionInfos.first?.token)
    world.onReport = { [unowned world] in
      world.onReport = nil
      _ = world.server.endSession(token, telling: .gone("The app has ended it"))
    }
    world.server.ended(open.requests[0])
    let host = world.server.hostedScope(world.scope)
    #expect(host.undecided.dropped { _ in true }.isEmpty && world.server.sessionCount == 0)
  }

  @Test("Calls of a session that has not said which client it is follow each other, too")
  func noClient() throws {
    let peer = peer(as: nil)
    let first = peer.call(number: 1)
    let second = peer.call(number: 1)
    #expect(open.requests.count == 1)
    try open.requests[0].commit(Like())
    #expect(open.requests.count == 2)
    try open.requests[1].commit(Like())
    peer.take()
    #expect(peer.reply(to: first)?.outcome == .output(1))
    #expect(peer.reply(to: second)?.outcome == .output(2))
  }

  @Test("Another call has another identity, though it has the number of one that was not decided")
  func identity() throws {
    world.access = { _, _ in .decided(.success(.readWrite)) }
    let peer = peer(as: ann)
    for count in [1, 1, 9] as [JSONValue] {
      peer.call(number: 1, ["count": count, "limit": 10])
      world.server.changeAccess(
        try #require(peer.token), "Canvas", .failure(.rejected("Not now")), now: world.now)
      peer.take()
      peer.acknowledge()
      peer.fetch(as: ann)
    }
    let ids = open.requests.map(\.id)
    #expect(ids.count == 3 && Set(ids).count == 2 && ids[0] == ids[1])
  }

  @Test("A rejected call is answered with less than its name for each of its fragments")
  func longName() throws {
    let world = InMemoryWorld()
    let peer = RawPeer.joined(world, protocol: 2)
    let long = "Canvas." + String(repeating: "x", count: 10_000)
    let fragment = SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "n"])
    let fragments = Array(repeating: fragment, count: 500)
    let sync = ScopeSync(
      scopeIndex: peer.scopeIndex, fragments: fragments, atomic: true, procedure: long)
    let message = peer.stamp(.scopeSync(sync))
    peer.send(message)
    let reply = try #require(peer.reply(to: message.index))
    #expect(reply.fragmentReplies.count == 500)
    #expect(reply.fragmentReplies.allSatisfy { $0.error != nil })
    #expect(reply.fragmentReplies.reduce(0) { $0 + $1.error!.message.utf8.count } < 150_000)
  }

  @Test("A fragment is judged by the class of its model, and not by the one that it names")
  func claimedClass() throws {
    let shape = Shape()
    world.canvas.shapes.append(shape)
    world.scope.flush()
    let constraint = Constraint(.change, "Canvas", allowsAdditionalProperties: true)
    world.procedures["Canvas.edit"] = ServedProcedure(
      takesArguments: false, constraints: [constraint]
    ) { try? $0.commit { (_: Canvas) in } }
    let peer = peer(as: ann)
    let message = peer.stamp(
      .scopeSync(
        ScopeSync(
          scopeIndex: peer.scopeIndex,
          fragments: [
            SyncFragment(
              .change, uuid: shape.uuid, className: "Canvas", properties: ["label": "taken"])
          ], atomic: true, procedure: "Canvas.edit")))
    peer.send(message)
    #expect(shape.label == "")
    #expect(peer.replies(to: message.index)?.first?.error != nil)
  }

  @Test("An addition of a model that the scope has is judged as the change that it makes")
  func claimedAddition() throws {
    let shape = Shape()
    world.canvas.shapes.append(shape)
    world.scope.flush()
    let constraint = Constraint(.add, "Shape", allowsAdditionalProperties: true)
    world.procedures["Canvas.draw"] = ServedProcedure(
      takesArguments: false, constraints: [constraint]
    ) { try? $0.commit { (_: Canvas) in } }
    let peer = peer(as: ann)
    func draw(_ uuid: UUID, _ label: JSONValue) -> WireError? {
      let fragment = SyncFragment(
        .add, uuid: uuid, className: "Shape", properties: ["label": label])
      let message = peer.stamp(
        .scopeSync(
          ScopeSync(
            scopeIndex: peer.scopeIndex, fragments: [fragment], atomic: true,
            procedure: "Canvas.draw")))
      peer.send(message)
      return peer.replies(to: message.index)?.first?.error
    }
    #expect(draw(shape.uuid, "taken") != nil && shape.label == "")
    // One that says what its client knew is judged by what it would take out.
    let removal = SyncFragment(
      .add, uuid: world.canvas.uuid, className: "Canvas", properties: ["shapes": []],
      bases: ["shapes": [.string(shape.uuid.wireText)]])
    #expect(
      try #require(world.server.hosts.values.first).order
        .changes(of: [removal], asOperations: true).fragments.map(\.properties)
        == [["shapes": []]])
    // Said once more, it changes nothing.
    #expect(draw(shape.uuid, .string(shape.label)) == nil)
  }

  @Test("Constraints are judged by what all changes of a call do, and not by what each says")
  func effects() {
    let shapes = (0..<4).map { _ in Shape() }
    let part = Shape()
    shapes[0].parts = [part]
    world.canvas.shapes = ModelArray(shapes)
    world.scope.flush()
    let peer = peer(as: ann)
    func call(
      _ name: String, _ rule: Constraint.Rule, _ edits: [[PropertyOperation]]
    ) -> String? {
      call(
        [Constraint(.change, "Canvas", [name: rule])],
        edits.map {
          SyncFragment(
            .change, uuid: world.canvas.uuid, className: "Canvas", properties: [:],
            operations: [name: $0])
        })
    }
    func call(_ constraints: [Constraint], _ fragments: [SyncFragment]) -> String? {
      world.procedures["Canvas.edit"] = ServedProcedure(
        takesArguments: false, constraints: constraints
      ) { try? $0.commit { (_: Canvas) in } }
      let message = peer.stamp(
        .scopeSync(
          ScopeSync(
            scopeIndex: peer.scopeIndex, fragments: fragments, atomic: true,
            procedure: "Canvas.edit")))
      peer.send(message)
      let errors = (peer.replies(to: message.index) ?? []).compactMap { $0.error.map { "\($0)" } }
      return errors.first { $0.contains("the procedure does not allow change of") }
        ?? errors.first
    }
    func isForbidden(_ error: String?) -> Bool { error?.contains("does not allow") == true }
    let (first, second, third) = (shapes[0].uuid, shapes[1].uuid, shapes[2].uuid)

    let growing: [PropertyOperation] = [
      .insert(part.uuid, .end), .remove(UUID()), .remove(UUID()),
    ]
    #expect(isForbidden(call("shapes", .removes, [growing])))
    #expect(world.canvas.shapes.map(\.uuid) == shapes.map(\.uuid))
    let shrinking: [PropertyOperation] = [
      .insert(first, .end), .insert(second, .end), .remove(third),
    ]
    #expect(isForbidden(call("shapes", .inserts, [shrinking])))
    #expect(world.canvas.shapes.map(\.uuid) == shapes.map(\.uuid))
    // The second removal has no effect behind the first one.
    let twice: [[PropertyOperation]] = [
      [.remove(third)], [.remove(third), .remove(UUID()), .insert(part.uuid, .end)],
    ]
    #expect(isForbidden(call("shapes", .removes, twice)))
    #expect(world.canvas.shapes.map(\.uuid) == shapes.map(\.uuid))
    // A model that the call adds begins with what its addition names.
    let new = UUID()
    let added = call(
      [
        Constraint(.add, "Shape", ["label": .newValue]),
        Constraint(.change, "Shape", ["parts": .removes]),
        Constraint(.change, "Canvas", ["shapes": .inserts]),
      ],
      [
        SyncFragment(.add, uuid: new, className: "Shape", properties: ["label": "new"]),
        SyncFragment(
          .change, uuid: new, className: "Shape", properties: [:], operations: ["parts": growing]),
        SyncFragment(
          .change, uuid: world.canvas.uuid, className: "Canvas", properties: [:],
          operations: ["shapes": [.insert(new, .end)]]),
      ])
    #expect(isForbidden(added))
    #expect(world.canvas.shapes.map(\.uuid) == shapes.map(\.uuid))
    let range = Constraint.Rule.meets(.range(0...90))
    #expect(isForbidden(call("likes", range, [[.add(60)], [.add(60)]])))
    #expect(world.canvas.likes == 0)

    #expect(call("likes", range, [[.add(60)], [.add(30)]]) == nil && world.canvas.likes == 90)
    #expect(call("shapes", .removes, [[.remove(third), .remove(UUID())]]) == nil)
    // Another client may have done the same.
    #expect(call("shapes", .removes, [[.remove(third)]]) == nil)
    #expect(call("shapes", .inserts, [[.insert(part.uuid, .end)]]) == nil)
    #expect(
      world.canvas.shapes.map(\.uuid) == [first, second, shapes[3].uuid, part.uuid])
  }

  @Test("The operator is told why a rule could not judge the changes of a call")
  func unjudged() {
    struct Oops: Error {}
    var configuration = ServerEngine.Configuration()
    configuration.rules = { _ in
      var rules = ScopeRules()
      rules.review { _ in throw Oops() }
      return rules
    }
    let world = InMemoryWorld(configuration: configuration)
    world.procedures["Canvas.edit"] = ServedProcedure(takesArguments: false) { [world] request in
      do {
        try request.commit { (_: Canvas) in }
      } catch {
        world.server.ended(request, after: error, Never.self)
      }
    }
    let peer = RawPeer.joined(world, protocol: 2)
    let sync = ScopeSync(
      scopeIndex: peer.scopeIndex,
      fragments: [
        SyncFragment(
          .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "n"])
      ], atomic: true, procedure: "Canvas.edit")
    peer.send(peer.stamp(.scopeSync(sync)))
    #expect(world.canvas.name == nil)
    #expect(world.log.contains { $0.contains("Oops") })
  }

  @Test("A client that sends too many bytes behind a call is sent away")
  func queue() throws {
    let peer = peer(as: ann)
    peer.call(number: 1)
    let text = String(repeating: "x", count: 20_000)
    for number in 2...9 { peer.submit(named(text), number: number) }
    #expect(peer.close == nil)
    for number in 10...12 where peer.close == nil { peer.submit(named(text), number: number) }
    #expect(peer.close?.code == 4097)
  }

  @Test("A change set that waits behind a call of an ended subscription goes on with its decision")
  func leaving() throws {
    let peer = peer(as: nil)
    peer.call(number: nil)
    peer.send(peer.stamp(.scopeLeave(ScopeLeave(scopeIndex: peer.scopeIndex))))
    peer.fetch(as: nil)
    let behind = peer.submit(named("behind"), number: nil)
    #expect(peer.replies(to: behind) == nil)
    try open.requests[0].commit(Like())
    peer.take()
    #expect(peer.replies(to: behind) == [FragmentReply()] && world.canvas.name == "behind")
    let next = peer.submit(named("next"), number: nil)
    #expect(peer.replies(to: next) == [FragmentReply()] && world.canvas.name == "next")
  }

  @Test("A call, and what waits behind it, end when the client takes another name")
  func renamed() throws {
    let peer = peer(as: ann)
    peer.call(number: 1)
    peer.submit(named("old"), number: 2)
    peer.fetch(as: UUID())
    // The client sends the call again under the new name, too.
    #expect(!open.requests[0].isOpen)
    #expect(throws: CancellationError.self) { try open.requests[0].commit(Like()) }
    let first = peer.submit(named("new"), number: 1)
    #expect(peer.replies(to: first) == [FragmentReply()] && world.canvas.name == "new")
    let second = peer.submit(named("newer"), number: 2)
    #expect(peer.replies(to: second) == [FragmentReply()] && world.canvas.name == "newer")
  }

  @Test("A call that comes late from an earlier session leaves the answer to the later one")
  func late() throws {
    let old = peer(as: ann)
    old.call(number: 1)
    let new = peer(as: ann)
    let call = new.call(number: 1)
    old.call(number: 1)
    #expect(open.requests.count == 1)
    try open.requests[0].commit(Like())
    new.take()
    #expect(new.reply(to: call)?.outcome == .output(1))
  }

  @Test("A call whose session has expired, with a change set behind it, can commit and fail")
  func expired() throws {
    var configuration = ServerEngine.Configuration()
    configuration.expiry = .seconds(5)
    let world = InMemoryWorld(configuration: configuration)
    world.procedures[Like.name] = ServedProcedure(takesArguments: true) { [open] in
      open.requests.append($0)
    }
    for client in [ann, UUID()] {
      let peer = RawPeer(world)
      peer.createSession()
      peer.fetch(as: client)
      peer.call(number: 1)
      let fragment = SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "behind"])
      peer.submit([fragment], number: 2)
      world.cut(peer.link)
    }
    world.pass(6)
    #expect(world.server.sessionCount == 0)
    try open.requests[0].commit(Like())
    world.pass(30)
    #expect(!open.requests[1].isOpen)
    #expect(world.canvas.likes == 1 && world.canvas.name == "liked")
  }

  @Test("A call goes on without its session in a scope that the app does not host itself")
  func notHosted() throws {
    let canvas = Canvas()
    let scope = Scope(name: "Other", root: canvas, ticker: world.serverTicker)
    world.moreScopes["Other"] = scope
    let peer = RawPeer(world)
    peer.createSession()
    peer.fetch(as: ann, "Other")
    peer.call(number: 1)
    world.server.endSession(try #require(peer.token), now: world.now)
    world.pass(3)
    #expect(open.requests[0].isOpen)
    try open.requests[0].commit(Like())
    #expect(canvas.likes == 1)
  }

  @Test("A client that loses its rights loses the call that its earlier session has begun, too")
  func takenFromLaterSession() throws {
    world.access = { _, _ in .decided(.success(.readWrite)) }
    let old = peer(as: ann)
    old.call(number: 1)
    old.send(old.stamp(.scopeLeave(ScopeLeave(scopeIndex: old.scopeIndex))))
    let new = peer(as: ann)
    world.server.changeAccess(
      try #require(new.token), "Canvas", .failure(.rejected("Go")), now: world.now)
    #expect(!open.requests[0].isOpen)
    #expect(throws: CancellationError.self) { try open.requests[0].commit(Like()) }
    #expect(world.canvas.likes == 0)
  }
}
