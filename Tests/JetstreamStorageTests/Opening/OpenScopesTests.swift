import Foundation
import Jetstream
import JetstreamServer
import Testing

@Suite("Scopes that are opened when they are fetched")
struct OpenScopesTests {
  @Test("A fetch that is refused does not give another fetch of the scope more rights than it has")
  func refusedBeside() {
    let world = OpeningWorld(access: .readOnly)
    world.connect(1)
    world.fetch("A", on: 1)
    world.fetch("A", on: 1, schema: "no schema")
    let scope = world.open("A")
    _ = world.take(1)
    for round in 1...2 {
      world.send(
        .scopeSync(
          ScopeSync(
            scopeIndex: 0,
            fragments: [
              SyncFragment(
                .change, uuid: scope.root!.uuid, className: "Canvas",
                properties: ["name": .string("\(round)")])
            ])), on: 1)
      #expect((scope.root as? Canvas)?.name == nil)
      // It may have had to ask once more.
      world.fetch("A", on: 1)
      #expect(world.take(1).last == "granted")
    }
  }

  @Test("Rights that are taken while a scope is being opened are not given once it is open")
  func takenRights() {
    let world = OpeningWorld(access: .readWrite)
    for id in 1...2 {
      world.connect(id)
      world.fetch("A", on: id)
    }
    #expect(world.takeSteps() == ["open A"])
    world.engine.changeAccess("token1", "A", .failure(.rejected("no")), now: world.now)
    _ = world.open("A")
    #expect(world.take(1) == ["rejected"])
    #expect(world.take(2) == ["granted"])
    // It is asked about again with the next fetch.
    world.fetch("A", on: 1)
    #expect(world.take(1) == ["granted"])
  }

  private let world = OpeningWorld()

  @Test("All who fetch a scope meanwhile wait for the same opening", arguments: [1, 2])
  func share(version: Int) {
    for id in 1...1_000 {
      world.connect(id, version: version)
      world.fetch("A", on: id)
    }
    #expect(world.takeSteps() == ["open A"])
    #expect((1...1_000).allSatisfy { world.take($0).isEmpty })
    _ = world.open("A")
    #expect((1...1_000).allSatisfy { world.take($0) == ["granted"] })
    world.connect(1_001, version: version)
    world.fetch("A", on: 1_001)
    #expect(world.take(1_001) == ["granted"] && world.takeSteps().isEmpty)
  }

  @Test(
    "All who wait for an opening that fails are refused with its error, and the next one opens again"
  )
  func failure() {
    for id in 1...3 {
      world.connect(id)
      world.fetch("A", on: id)
    }
    _ = world.takeSteps()
    world.fail("A", .notThere("no such document"))
    #expect((1...3).allSatisfy { world.take($0) == ["not-there"] })
    world.fetch("A", on: 2)
    #expect(world.takeSteps() == ["open A"])
    _ = world.open("A")
    #expect(world.take(2) == ["granted"])
  }

  @Test(
    "A fetch that waits for too long is refused, the opening given up, and a later fetch gets another one"
  )
  func slow() {
    world.connect(1)
    world.connect(2)
    world.fetch("A", on: 1)
    world.pass(.seconds(29))
    #expect(world.take(1).isEmpty && world.takeSteps() == ["open A"])
    world.pass(.seconds(1))
    #expect(world.take(1) == ["not-now"] && world.takeSteps() == ["give up A"])
    world.fetch("A", on: 2)
    #expect(world.takeSteps().isEmpty)
    world.fail("A", .notNow("given up", retryAfter: .seconds(1)))
    #expect(world.takeSteps() == ["open A"] && world.take(2).isEmpty)
    _ = world.open("A")
    #expect(world.take(2) == ["granted"])
  }

  @Test("A scope that was opened in spite of being given up is there for those who wait by then")
  func openedLate() {
    world.connect(1)
    world.connect(2)
    world.fetch("A", on: 1)
    world.pass(.seconds(30))
    world.fetch("A", on: 2)
    _ = world.open("A")
    #expect(world.take(1) == ["not-now"] && world.take(2) == ["granted"])
  }

  @Test("An opening for which only sessions wait that have ended is given up")
  func ended() {
    world.connect(1)
    world.fetch("A", on: 1)
    world.disconnect(1)
    world.pass(.seconds(29))
    // The session is there, and may come back.
    #expect(world.takeSteps() == ["open A"] && world.engine.sessionCount == 1)
    world.engine.stop()
    #expect(world.engine.sessionCount == 0 && world.engine.openScopeCount == 0)
    // The end of the opening comes too late.
    world.engine.opened("A", .failure(.rejected("too late")), now: world.now)
    #expect(world.take(1).isEmpty)
  }

  @Test("A client that comes back to its session gets the scope that it has waited for")
  func comesBack() {
    world.connect(1)
    world.fetch("A", on: 1)
    world.disconnect(1)
    _ = world.open("A")
    world.resume(2, token: 1)
    #expect(world.take(2) == ["granted"])
  }

  @Test("An idle scope is closed after a while; one that a session with a connection has is not")
  func idle() {
    world.connect(1)
    world.fetch("A", on: 1)
    _ = world.open("A")
    world.pass(.seconds(300))
    world.send(.scopeLeave(ScopeLeave(scopeIndex: 0)), on: 1)
    _ = world.takeSteps()
    world.pass(.seconds(1))
    world.pass(.seconds(59))
    #expect(world.takeSteps().isEmpty)
    world.pass(.seconds(1))
    #expect(world.takeSteps() == ["close A"])
    world.close("A")
    #expect(world.engine.openScopeCount == 0)
  }

  @Test("A fetch of a scope that is being closed waits, and has it opened again")
  func fetchWhileClosing() {
    world.connect(1)
    world.fetch("A", on: 1)
    _ = world.open("A")
    #expect(world.engine.closeScope("A"))
    #expect(world.take(1) == ["granted", "left: not-now"])
    world.fetch("A", on: 1)
    #expect(world.takeSteps() == ["open A", "close A"] && world.take(1).isEmpty)
    world.close("A")
    #expect(world.takeSteps() == ["open A"])
    _ = world.open("A")
    #expect(world.take(1) == ["granted"])
  }

  @Test(
    "Change sets that were under way when a scope was closed are dropped, and later ones rejected")
  func underWay() {
    world.connect(1)
    world.fetch("A", on: 1)
    _ = world.open("A")
    world.engine.closeScope("A")
    world.close("A")
    _ = world.take(1)
    func submit(_ index: Int) -> [String] {
      world.receive(
        #"{"type":"ScopeSync","index":\#(index),"scopeIndex":0,"atomic":false,"fragments":[]}"#,
        on: 1)
      return world.take(1)
    }
    func acknowledge(sent: Int?, resend: Bool = false) {
      let sent = sent.map { #""sent":\#($0),"# } ?? ""
      world.receive(
        #"{"type":"Ping","index":0,"ack":\#(world.lastIndex),\#(sent)"resendMissing":\#(resend)}"#,
        on: 1)
    }
    #expect(submit(2).isEmpty)
    // The client knows by now, and change sets that it has made before were lost.
    acknowledge(sent: 4)
    #expect(submit(3).isEmpty)
    acknowledge(sent: nil, resend: true)
    #expect(submit(4).isEmpty)
    acknowledge(sent: 4)
    #expect(submit(5) == ["answered"])
  }

  @Test(
    "A scope that only a session without a connection has is closed, and the client is told when it comes back"
  )
  func absent() {
    world.connect(1)
    world.fetch("A", on: 1)
    _ = world.open("A")
    world.disconnect(1)
    world.pass(.seconds(1))
    world.pass(.seconds(60))
    #expect(world.takeSteps() == ["open A", "close A"])
    world.close("A")
    #expect(world.engine.sessionCount == 1)
    _ = world.take(1)
    world.resume(2, token: 1)
    // It is told in place of the state, which it has not acknowledged, too.
    #expect(world.take(2) == ["granted", "left: not-now", "left: not-now"])
  }

  @Test(
    "A session of version 1 keeps its scope open, since its protocol has no message to fetch it again"
  )
  func oldSession() {
    world.connect(1, version: 1)
    world.fetch("A", on: 1)
    _ = world.open("A")
    world.disconnect(1)
    world.pass(.seconds(1))
    world.pass(.seconds(300))
    #expect(world.takeSteps() == ["open A"])
  }

  @Test(
    "When as many are open as may be, the idle one is closed that was used the longest time ago")
  func room() {
    world.connect(1)
    for name in ["A", "B"] {
      world.fetch(name, on: 1)
      _ = world.open(name)
      world.pass(.milliseconds(10))
    }
    for index in [0, 1] { world.send(.scopeLeave(ScopeLeave(scopeIndex: index)), on: 1) }
    _ = world.takeSteps()
    world.fetch("C", on: 1)
    #expect(world.takeSteps() == ["close A"])
    world.fetch("D", on: 1)
    #expect(world.takeSteps() == ["close B"])
    _ = world.take(1)
    world.close("A")
    world.close("B")
    #expect(world.takeSteps() == ["open C", "open D"])
    _ = world.open("D")
    _ = world.open("C")
    #expect(world.take(1) == ["granted", "granted"])
  }

  @Test("A scope counts as used for as long as a session has it, not only when it is fetched")
  func roomAfterLongUse() {
    world.connect(1)
    for name in ["A", "B"] {
      world.fetch(name, on: 1)
      _ = world.open(name)
      world.pass(.milliseconds(10))
    }
    world.send(.scopeLeave(ScopeLeave(scopeIndex: 1)), on: 1)
    for _ in 0..<5 { world.pass(.seconds(1)) }
    world.send(.scopeLeave(ScopeLeave(scopeIndex: 0)), on: 1)
    _ = world.takeSteps()
    world.fetch("C", on: 1)
    #expect(world.takeSteps() == ["close B"])
  }

  @Test("A scope that was used since idle ones were searched for is not closed for that search")
  func roomAfterUse() {
    world.connect(1)
    for name in ["A", "B"] {
      world.fetch(name, on: 1)
      _ = world.open(name)
      world.pass(.milliseconds(10))
    }
    for index in [0, 1] { world.send(.scopeLeave(ScopeLeave(scopeIndex: index)), on: 1) }
    world.fetch("C", on: 1)
    world.close("A")
    _ = world.open("C")
    world.send(.scopeLeave(ScopeLeave(scopeIndex: 2)), on: 1)
    world.pass(.milliseconds(10))
    world.fetch("B", on: 1)
    #expect(world.take(1) == ["granted", "granted", "granted", "granted"])
    world.send(.scopeLeave(ScopeLeave(scopeIndex: 1)), on: 1)
    world.pass(.milliseconds(200))
    _ = world.takeSteps()
    world.fetch("D", on: 1)
    #expect(world.takeSteps() == ["close C"])
  }

  @Test(
    "When all open scopes are in use, another one is refused for now, and opened once one is idle")
  func full() {
    world.connect(1)
    for name in ["A", "B"] {
      world.fetch(name, on: 1)
      _ = world.open(name)
    }
    _ = world.take(1)
    world.connect(2)
    world.fetch("C", on: 2)
    #expect(world.take(2) == ["not-now"])
    world.pass(.milliseconds(200))
    world.send(.scopeLeave(ScopeLeave(scopeIndex: 0)), on: 1)
    _ = world.takeSteps()
    world.fetch("C", on: 2)
    #expect(world.takeSteps() == ["close A"])
    world.close("A")
    #expect(world.takeSteps() == ["open C"])
  }

  @Test(
    "A scope that is fetched again while it closes gives its room to the one for which it was closed"
  )
  func fetchedAgain() {
    world.connect(1)
    for name in ["A", "B"] {
      world.fetch(name, on: 1)
      _ = world.open(name)
      world.pass(.milliseconds(10))
    }
    world.send(.scopeLeave(ScopeLeave(scopeIndex: 0)), on: 1)
    world.fetch("C", on: 1)
    world.fetch("A", on: 1)
    _ = (world.takeSteps(), world.take(1))
    world.close("A")
    // B is in use, so that there is no room for A.
    #expect(world.takeSteps() == ["open C"] && world.take(1) == ["not-now"])
    _ = world.open("C")
    #expect(world.take(1) == ["granted"])
  }

  @Test(
    "Those who bring no schema are told that one is wanted; an opening with one serves all who come then"
  )
  func schema() {
    let schema = ScopeSchema(of: Canvas.self).json
    for id in 1...3 { world.connect(id) }
    world.fetch("A", on: 1)
    world.fetch("A", on: 2, schema: schema)
    _ = world.takeSteps()
    world.fail("A", .schemaWanted)
    #expect(world.take(1) == ["schema-wanted"] && world.take(2).isEmpty)
    #expect(world.takeSteps() == ["open A"])
    #expect(world.schemas["A"]??.canonicalText == schema.canonicalText)
    world.fetch("A", on: 3)
    _ = world.open("A")
    #expect(world.take(2) == ["granted"] && world.take(3) == ["granted"])
  }

  @Test("The schema of a client that may only read does not become the scope's")
  func readersSchema() {
    let world = OpeningWorld(access: .readOnly)
    world.connect(1)
    world.fetch("A", on: 1, schema: ScopeSchema(of: Canvas.self).json)
    #expect(world.takeSteps() == ["open A"] && world.schemas["A"] == .some(nil))
    world.fail("A", .schemaWanted)
    #expect(world.take(1) == ["not-now"] && world.takeSteps().isEmpty)
  }

  @Test("The schema that is brought to an open scope is not read")
  func needlessSchema() {
    world.connect(1)
    world.fetch("A", on: 1)
    _ = world.open("A")
    world.fetch("A", on: 1, schema: ["root": "Canvas"])
    #expect(world.take(1) == ["granted", "granted"])
  }

  @Test(
    "A scope that is removed while it closes, or waits for room, is not opened for those who wait")
  func withdrawn() {
    for id in 1...4 { world.connect(id) }
    world.fetch("A", on: 1)
    world.fetch("B", on: 2)
    _ = (world.open("A"), world.open("B"))
    #expect(world.engine.closeScope("A"))
    world.fetch("A", on: 3)
    world.fetch("C", on: 4)
    for id in 1...4 { _ = world.take(id) }
    let gone = WireError.gone("It is removed")
    #expect(!world.engine.closeScope("A", telling: gone))
    #expect(world.take(3) == [gone.type])
    _ = world.takeSteps()
    world.close("A")
    #expect(world.engine.openScope(named: "A") == nil && !world.takeSteps().contains("open A"))
  }

  @Test("A schema that is not valid is refused without an opening")
  func badSchema() {
    world.connect(1)
    world.fetch("A", on: 1, schema: ["root": "Canvas"])
    #expect(world.take(1) == ["rejected"] && world.takeSteps().isEmpty)
  }

  @Test("Only the first schema for a scope that is being opened is read")
  func laterSchema() {
    for id in 1...3 { world.connect(id) }
    world.fetch("A", on: 1)
    world.fetch("A", on: 2, schema: ScopeSchema(of: Canvas.self).json)
    world.fetch("A", on: 3, schema: ["root": "Canvas"])
    #expect((1...3).allSatisfy { world.take($0).isEmpty })
    world.fail("A", .schemaWanted)
    _ = world.open("A")
    #expect(world.take(2) == ["granted"] && world.take(3) == ["granted"])
  }

  @Test("The schema for an opening that was given up is not that for the next one")
  func laterOpening() {
    for id in 1...2 { world.connect(id) }
    world.fetch("A", on: 1, schema: ScopeSchema(of: Canvas.self).json)
    #expect(world.takeSteps() == ["open A"])
    world.pass(.seconds(30))
    #expect(world.take(1) == ["not-now"] && world.takeSteps() == ["give up A"])
    // Its client has learned more classes meanwhile.
    let schema = ScopeSchema(of: NewCanvas.self, and: [Circle.self]).json
    world.fetch("A", on: 1, schema: schema)
    world.fail("A", .notNow("The scope could not be opened", retryAfter: .seconds(5)))
    #expect(world.takeSteps() == ["open A"] && world.take(1).isEmpty)
    #expect(world.schemas["A"]??.canonicalText == schema.canonicalText)
    // Nor is it that for those who bring none.
    world.pass(.seconds(30))
    #expect(world.take(1) == ["not-now"] && world.takeSteps() == ["give up A"])
    world.fetch("A", on: 2)
    world.fail("A", .notNow("The scope could not be opened", retryAfter: .seconds(5)))
    #expect(world.takeSteps() == ["open A"] && world.schemas["A"] == .some(nil))
  }

  @Test("The schema of a client that waits no more is not that of the others")
  func schemaOfLateFetch() {
    for id in 1...2 { world.connect(id) }
    world.fetch("A", on: 1)
    world.pass(.seconds(30))
    #expect(world.takeSteps() == ["open A", "give up A"] && world.take(1) == ["not-now"])
    world.fetch("A", on: 2, schema: ScopeSchema(of: Canvas.self).json)
    world.pass(.seconds(20))
    world.fetch("A", on: 1)
    world.pass(.seconds(10))
    #expect(world.take(2) == ["not-now"] && world.take(1).isEmpty)
    world.fail("A", .notNow("The scope could not be opened", retryAfter: .seconds(5)))
    #expect(world.takeSteps() == ["open A"] && world.schemas["A"] == .some(nil))
  }

  @Test("A scope that is closed while something waits for its log is released")
  func released() {
    weak var closed: Scope?
    world.connect(1)
    world.fetch("A", on: 1)
    do {
      let scope = world.open("A", isStored: true)
      closed = scope
      (scope.root as! Canvas).name = "not durable"
      scope.sealChanges()
    }
    // Its answer waits for the record of the change.
    world.fetch("A", on: 1)
    #expect(world.take(1) == ["granted"] && closed != nil)
    #expect(world.engine.closeScope("A"))
    world.close("A")
    #expect(world.take(1) == ["not-now", "left: not-now"] && closed == nil)
  }

  @Test("A name that no scope can have is refused without an opening", arguments: [0, 513])
  func badName(bytes: Int) {
    world.connect(1)
    world.fetch(String(repeating: "x", count: bytes), on: 1)
    #expect(world.take(1) == ["not-there"] && world.takeSteps().isEmpty)
    #expect(world.engine.openScopeCount == 0)
  }

  @Test(
    "A scope stays open for a fetch of version 1 in a frame of which only a part has come",
    arguments: [true, false])
  func partOfFrame(ends: Bool) {
    let world = OpeningWorld(stateBytes: 1)
    world.connect(1)
    for name in ["A", "B"] {
      world.fetch(name, on: 1)
      let canvas = world.open(name).root as! Canvas
      canvas.shapes.append(contentsOf: (0..<10).map { _ in Shape() })
    }
    world.send(.scopeLeave(ScopeLeave(scopeIndex: 0)), on: 1)
    world.pass(.seconds(1))
    _ = world.takeSteps()
    world.connect(2, version: 1)
    world.send(.scopeFetch(ScopeFetch(name: "A")), on: 2, endsFrame: false)
    world.pass(.milliseconds(200))
    world.connect(3)
    world.fetch("C", on: 3)
    #expect(world.take(3) == ["not-now"] && world.takeSteps().isEmpty)
    guard ends else {
      // The session ends without the rest of the frame, and the scope is idle.
      world.disconnect(2)
      world.pass(.seconds(5))
      world.pass(.seconds(600))
      #expect(world.engine.sessionCount == 0)
      world.pass(.seconds(60))
      #expect(world.takeSteps().contains("close A"))
      return
    }
    world.fetch("B", on: 2)
    #expect(world.take(2) == ["granted", "granted"])
  }
}
