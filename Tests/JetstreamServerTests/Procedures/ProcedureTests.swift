import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("Procedures")
struct ProcedureTests {
  private let world = InMemoryWorld()
  private final class Open {
    var requests: [ProcedureRequest] = []
  }
  private let open = Open()
  private struct Oops: Error {}

  init() {
    serve(Like.self)
    serve(Draw.self)
  }

  /// Runs the calls of a procedure as they come.
  private func serve<P: Procedure>(_: P.Type) {
    world.procedures[P.name] = ServedProcedure(takesArguments: true) { [unowned world] request in
      do {
        try request.commit(try request.arguments(of: P.self))
      } catch {
        world.server.ended(request, after: error, P.Failure.self)
      }
    }
  }

  /// Leaves the calls of a procedure to the test.
  private func hold<P: Procedure>(_: P.Type) {
    world.procedures[P.name] = ServedProcedure(takesArguments: true) { [open] in
      open.requests.append($0)
    }
  }

  private func client() -> WorldClient {
    let client = world.addClient()
    client.join()
    world.settle()
    return client
  }

  private func expectSame() {
    world.settle()
    for client in world.clients {
      #expect(client.scope.canonicalJSON == world.scope.canonicalJSON)
      #expect(client.scope.conflicts.items.isEmpty)
    }
    #expect(world.server.checkInvariants() == [])
  }

  @Test("A call shows its changes at once, and returns what the server returns")
  func call() async throws {
    let (ann, ben) = (client(), client())
    world.canvas.likes = 3
    let call = try ann.scope.call(Like(count: 2))
    #expect(ann.canvas.likes == 2 && world.canvas.likes == 3)
    #expect(call.changeSet.state == .pending)
    expectSame()
    #expect(world.canvas.likes == 5 && ben.canvas.likes == 5)
    #expect(try await call.output() == 5)
    #expect(call.changeSet.state == .accepted)
  }

  @Test("A call that fails on the client changes and sends nothing")
  func failsHere() throws {
    let ann = client()
    let sent = ann.sent.count
    #expect(throws: Like.Failure.full(at: 0)) { try ann.scope.call(Like(count: 11)) }
    ann.flush()
    #expect(ann.canvas.likes == 0 && ann.canvas.name == nil && ann.sent.count == sent)
  }

  @Test("A call that fails on the server is taken back, with the procedure's own error")
  func failsThere() async throws {
    let (ann, ben) = (client(), client())
    world.canvas.likes = 9
    let call = try ann.scope.call(Like(count: 2))
    #expect(ann.canvas.likes == 2 && ann.canvas.name == "liked")
    expectSame()
    #expect(world.canvas.likes == 9 && world.canvas.name == nil && ben.canvas.name == nil)
    await #expect(throws: Like.Failure.full(at: 9)) { try await call.output() }
    #expect(call.changeSet.state == .rejected)
    #expect(call.changeSet.error == .procedureFailed(.rejected("full(at: 9)")))
  }

  @Test(
    "A call without an effect on the client is sent, and one without an effect on the server is answered"
  )
  func nothing() async throws {
    let ann = client()
    var sets = 0
    let token = ann.scope.onChanges.listen { _ in sets += 1 }
    defer { token.cancel() }
    ann.canvas.name = "liked"
    expectSame()
    #expect(sets == 1)
    let call = try ann.scope.call(Like(count: 0))
    #expect(sets == 1)
    expectSame()
    #expect(try await call.output() == 0)
    world.canvas.likes = 10
    world.canvas.name = "x"
    world.scope.flush()
    let failing = try ann.scope.call(Like(count: 0, limit: 5))
    expectSame()
    await #expect(throws: Like.Failure.full(at: 10)) { try await failing.output() }
  }

  @Test(
    "The server's model takes the place of the client's; with a UUID in the arguments, it is the same"
  )
  func identity() async throws {
    let (ann, ben) = (client(), client())
    let call = try ann.scope.call(Draw())
    let guess = ann.canvas.shapes[0]
    expectSame()
    #expect(try await call.output() == world.canvas.shapes[0].uuid)
    #expect(ann.canvas.shapes.map(\.uuid) == ben.canvas.shapes.map(\.uuid))
    #expect(guess.scope == nil && ann.canvas.shapes[0] !== guess)
    let named = UUID()
    try ann.scope.call(Draw(shape: named, label: "named"))
    let model = ann.canvas.shapes[1]
    expectSame()
    #expect(ann.canvas.shapes[1] === model && model.uuid == named)
    #expect(ben.canvas.shapes[1].label == "named")
  }

  @Test(
    "The result comes when the server has run the call, also while its changes are held back",
    .timeLimit(.minutes(5)), arguments: [false, true])
  func heldBack(isPaused: Bool) async throws {
    let (ann, ben) = (client(), client())
    if isPaused {
      ann.scope.pauseIncoming()
    } else {
      ann.engine.setMode(.pushOnly, of: ann.scope, now: world.now)
    }
    world.exchange()
    ben.canvas.shapes.append(Shape())
    world.exchange()
    let call = try ann.scope.call(Like(count: 2))
    world.exchange()
    #expect(ann.canvas.shapes.isEmpty && ann.engine.pendingCount == 1)
    #expect(try await call.output() == 2)
    #expect(call.changeSet.state == .pending)
    if isPaused {
      ann.scope.resumeIncoming()
    } else {
      ann.engine.setMode(.realtime, of: ann.scope, now: world.now)
    }
    expectSame()
    #expect(call.changeSet.state == .accepted)
  }

  @Test(
    "A call that waits lets the scope go on, is judged on what is there then, and holds back what is behind it"
  )
  func waiting() async throws {
    hold(Like.self)
    let (ann, ben) = (client(), client())
    let call = try ann.scope.call(Like(count: 4))
    ann.canvas.name = "after"
    ann.flush()
    world.exchange()
    let request = try #require(open.requests.first)
    #expect(request.scope == "Canvas" && request.name == "Canvas.like" && !request.changes.isEmpty)
    ben.canvas.likes += 3
    ben.flush()
    world.exchange()
    // The second set of the caller waits, the one of another client does not.
    #expect(world.canvas.likes == 3 && world.canvas.name == nil)
    #expect(try request.read { (canvas: Canvas) in canvas.likes } == 3)
    #expect(try request.commit(Like(count: 4)) == 7)
    #expect(world.canvas.likes == 7)
    #expect(throws: CancellationError.self) { try request.commit(Like(count: 4)) }
    expectSame()
    #expect(world.canvas.name == "after" && ann.canvas.likes == 7 && open.requests.count == 1)
    #expect(try await call.output() == 7)
  }

  @Test(
    "A call takes place once, however often it is sent, and in whichever session",
    arguments: [false, true])
  func once(commitsBefore: Bool) async throws {
    hold(Like.self)
    let ann = client()
    let call = try ann.scope.call(Like())
    let behind = try ann.scope.call(Draw())
    world.exchange()
    #expect(open.requests.count == 1)
    // The session is lost, and so is the reply.
    for link in world.links { world.cut(link) }
    if commitsBefore { try open.requests[0].commit(Like()) }
    world.server.endSession(world.server.sessionInfos[0].token, now: world.now)
    world.pass(5)
    if !commitsBefore { try open.requests[0].commit(Like()) }
    expectSame()
    #expect(open.requests.count == 1 && world.canvas.likes == 1 && world.canvas.shapes.count == 1)
    #expect(try await call.output() == 1)
    #expect(try await behind.output() == world.canvas.shapes[0].uuid)
  }

  @Test("A procedure that takes too long has failed, and can commit no more")
  func tooLong() async throws {
    hold(Like.self)
    let ann = client()
    let call = try ann.scope.call(Like())
    var wasCancelled = false
    world.exchange()
    let request = try #require(open.requests.first)
    request.onCancel = { wasCancelled = true }
    world.settle()
    expectSame()
    #expect(ann.canvas.likes == 0 && wasCancelled)
    #expect(
      call.changeSet.error
        == .procedureFailed(.rejected("Procedure Canvas.like has taken too long")))
    #expect(throws: CancellationError.self) { try request.commit(Like()) }
    #expect(world.log.contains { $0.contains("Canvas.like: it has taken too long") })
    world.server.ended(request, after: Oops(), Like.Failure.self)
    #expect(world.log.last?.contains("Canvas.like: thrown after it was cancelled: Oops") == true)
  }

  @Test(
    "The operator is told of an error behind a commit, and of one behind a dropped call, as such")
  func thrownLate() throws {
    hold(Like.self)
    let peer = RawPeer.joined(world, protocol: 2)
    peer.call(number: nil)
    let first = try #require(open.requests.first)
    try first.commit(Like())
    world.server.ended(first, after: Oops(), Like.Failure.self)
    #expect(world.log.last?.contains("Canvas.like: thrown behind its commit: Oops") == true)
    peer.call(number: nil)
    let second = try #require(open.requests.last)
    let token = try #require(peer.token)
    world.server.endSession(token, telling: .gone("The app has ended it"))
    #expect(!second.isOpen && second.comesAgain)
    world.server.ended(second, after: Oops(), Like.Failure.self)
    #expect(world.log.last?.contains("Canvas.like: thrown after it was cancelled: Oops") == true)
  }

  @Test("A late call whose session the app ends when it hears of that is made again")
  func endedWhenLate() async throws {
    hold(Like.self)
    let ann = client()
    let call = try ann.scope.call(Like())
    world.exchange()
    world.onReport = { [unowned world] in
      guard world.log.last?.contains("it has taken too long") == true else { return }
      world.onReport = nil
      for session in world.server.sessionInfos {
        _ = world.server.endSession(
          session.token, telling: .notNow("Wait", retryAfter: .seconds(1)))
      }
    }
    for _ in 0..<600 where open.requests.count < 2 { world.pass(1) }
    #expect(world.onReport == nil && open.requests.count == 2)
    try open.requests.last?.commit(Like())
    expectSame()
    #expect(world.canvas.likes == 1)
    #expect(try await call.output() == 1)
  }

  @Test(
    "A client whose scope is taken away makes no more calls, and makes them again when it has it again"
  )
  func takenAway() async throws {
    hold(Like.self)
    world.access = { _, _ in .decided(.success(.readWrite)) }
    let ann = client()
    let call = try ann.scope.call(Like())
    ann.canvas.name = "behind"
    ann.flush()
    world.exchange()
    let token = world.server.sessionInfos[0].token
    world.server.changeAccess(
      token, "Canvas", .failure(.notNow("Wait", retryAfter: .seconds(1))), now: world.now)
    #expect(throws: CancellationError.self) { try open.requests[0].commit(Like()) }
    #expect(world.canvas.likes == 0)
    world.pass(5)
    #expect(open.requests.count == 2 && open.requests[0].id == open.requests[1].id)
    try open.requests[1].commit(Like())
    expectSame()
    #expect(world.canvas.likes == 1 && world.canvas.name == "behind")
    #expect(try await call.output() == 1)
  }

  @Test("A client that may only read cannot call")
  func readOnly() async throws {
    world.access = { _, _ in .decided(.success(.readOnly)) }
    let ann = client()
    let call = try ann.scope.call(Like())
    expectSame()
    #expect(world.canvas.likes == 0)
    #expect(call.changeSet.error == .procedureFailed(.readOnly))
  }

  @Test(
    "A handler that ends without a commit, or with an error of its own, has failed; the operator is told"
  )
  func ended() async throws {
    hold(Like.self)
    let ann = client()
    for attempt in 0..<2 {
      let call = try ann.scope.call(Like())
      world.exchange()
      let request = open.requests[attempt]
      if attempt == 0 {
        world.server.ended(request)
      } else {
        world.server.ended(request, after: Oops(), Like.Failure.self)
      }
      expectSame()
      #expect(
        call.changeSet.error == .procedureFailed(.rejected("Procedure Canvas.like has failed")))
    }
    #expect(world.log.contains { $0.contains("returned without a commit") })
    #expect(world.log.contains { $0.contains("Oops") })
  }

  @Test("A procedure of which the scope refuses a part changes nothing, here or on the server")
  func refused() async throws {
    let ann = client()
    #expect(throws: ScopeError.self) { try ann.scope.call(Draw(shape: world.canvas.uuid)) }
    #expect(ann.canvas.shapes.isEmpty)
    let peer = RawPeer.joined(world, protocol: 2)
    let arguments: JSONValue = ["shape": .string(world.canvas.uuid.uuidString), "label": "x"]
    let outcome = peer.call("Canvas.draw", arguments, by: UUID(), number: nil)
    #expect(outcome.contains("Procedure Canvas.draw has failed"), "\(outcome)")
    expectSame()
    #expect(world.canvas.shapes.isEmpty && world.log.contains { $0.contains("Canvas.draw") })
  }

  @Test(
    "An undo on the client leaves calls alone, and one on the server takes them for the client's")
  func undo() throws {
    let ann = client()
    let (own, server) = (UndoHistory(of: ann.scope), UndoHistory(of: world.scope))
    let all = UndoHistory(of: world.scope, includingOthers: true)
    ann.canvas.name = "before"
    expectSame()
    try ann.scope.call(Like(count: 2))
    expectSame()
    #expect(own.undoStack.count == 1 && server.undoStack.isEmpty && all.undoStack.count == 2)
    own.undo()
    expectSame()
    #expect(world.canvas.likes == 2)
    _ = all.undo()
    _ = all.undo()
    expectSame()
    #expect(world.canvas.likes == 0 && ann.canvas.likes == 0)
  }

  @Test("A call that cannot be made is rejected with the reason")
  func impossible() async throws {
    struct Unknown: Procedure {
      static let name = "Canvas.unknown"
      func run(on canvas: Canvas) -> Int { 0 }
    }
    let ann = client()
    let call = try ann.scope.call(Unknown())
    expectSame()
    #expect("\(call.changeSet.error!)".contains("there is no procedure Canvas.unknown"))
    let peer = RawPeer.joined(world, protocol: 2)
    for (arguments, reason) in [
      ([:], "the arguments of procedure Canvas.like are not valid"),
      (nil, "the procedure needs arguments"),
    ] as [(JSONValue?, String)] {
      let outcome = peer.call("Canvas.like", arguments, by: UUID(), number: nil)
      #expect("\(outcome)".contains(reason), "\(outcome)")
    }
    // The scope has another root than the procedure.
    world.procedures["Canvas.unknown"] = ServedProcedure(takesArguments: true) { [world] request in
      do {
        try request.commit { (_: Shape) in }
      } catch {
        world.server.ended(request, after: error, Never.self)
      }
    }
    let mismatch = try ann.scope.call(Unknown())
    expectSame()
    #expect("\(mismatch.changeSet.error!)".contains("is not for scope Canvas"))
  }
}

extension RawPeer {
  /// Calls a procedure without changes. Returns its outcome, or the first error of its reply.
  func call(_ name: String, _ arguments: JSONValue?, by client: UUID, number: Int?) -> String {
    var sync = ScopeSync(
      scopeIndex: scopeIndex,
      fragments: [
        SyncFragment(
          .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "n"])
      ], atomic: true, procedure: name)
    sync.arguments = arguments
    sync.number = number
    let message = stamp(.scopeSync(sync))
    send(message)
    for case .scopeSyncReply(let reply) in messages where reply.replyTo == message.index {
      return reply.outcome.map { "\($0)" } ?? "\(reply.fragmentReplies.map { "\($0.error!)" })"
    }
    return "nothing"
  }
}
