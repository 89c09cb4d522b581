import Jetstream
import JetstreamServer
import Testing

private final class Desk: ModelObject {
  @Property var lamp: Lamp? = Lamp()
  @Property var drawers: ModelArray<Lamp> = [Lamp()]
}

private final class Lamp: ModelObject {
  @Property(.counter) var uses = 0
  @Property var label = "new"
}

/// Logs without a state of a scope whose root begins with models.
@Suite("Logs of scopes whose root makes models")
struct MadeModelLogTests {
  private let desk = Desk()
  private let server: ScriptedServer
  private var scope: Scope { server.scope }

  init() { server = ScriptedServer(root: desk) }

  /// Fetches the scope with a log, which it then leaves as often as the log is used again.
  private func fetch(times: Int, between change: (Int) -> Void) throws {
    var records: [ReplicaRecord] = []
    for time in 0..<times {
      if time > 0 { _ = server.engine.leave(scope, now: server.now) }
      var history: ReplicaHistory?
      if case .named(let client, let root)? = records.first {
        history = ReplicaHistory(client: client, root: root, records: records)
      }
      try server.engine.fetch(
        scope, params: [:], history: history, now: server.now, store: { records.append($0) },
        completion: { _ in })
      change(time)
    }
  }

  @Test("What is added to their counters counts once, however often the scope is fetched again")
  func counters() throws {
    let (lamp, drawn) = (try #require(desk.lamp), try #require(desk.drawers.first))
    try fetch(times: 4) { time in
      lamp.uses += 1
      drawn.uses += 2
      drawn.label = "used"
      scope.flush()
      #expect(desk.lamp === lamp && desk.drawers.first === drawn)
      #expect(lamp.uses == time + 1 && drawn.uses == 2 * time + 2 && drawn.label == "used")
      #expect(server.engine.pendingCount == time + 1)
    }
    #expect(server.engine.checkInvariants() == [])
  }

  @Test("What was in a counter before the first fetch stays beneath them")
  func before() throws {
    let lamp = try #require(desk.lamp)
    lamp.uses = 10
    try fetch(times: 3) { time in
      if time == 0 { scope.modify { lamp.uses += 1 } }
      #expect(lamp.uses == 11 && server.engine.pendingCount == 1)
    }
  }
}
