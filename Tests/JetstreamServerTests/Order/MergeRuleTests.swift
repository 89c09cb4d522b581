import Foundation
import Jetstream
import JetstreamServer
import Testing

final class Score: ModelObject {
  @Property(.merge(.max)) var best = 0
  @Property(.merge(.min)) var first: Double?
  @Property(.merge(.union)) var tags: [String] = []
  @Property(.merge(.union)) var notes: [String: Int] = [:]
  @Property([.merge(.rule("longer", Score.longer)), .wireName("headline")]) var title = ""
  @Property var name = ""

  @Sendable static func longer(_ conflict: MergeRule.Conflict) -> JSONValue {
    guard case .string(let mine) = conflict.mine, case .string(let theirs) = conflict.theirs else {
      return conflict.mine
    }
    return mine.count > theirs.count ? conflict.mine : conflict.theirs
  }
}

/// What several clients make of one property at the same time.
@Suite("Merge rules of properties")
struct MergeRuleTests {
  private let world = InMemoryWorld()
  private let served = Score()
  private let one: WorldClient
  private let two: WorldClient

  init() { (one, two) = Self.join(world, served) }

  private static func join(
    _ world: InMemoryWorld, _ served: Score, version: Int = 2
  ) -> (WorldClient, WorldClient) {
    let scope = Scope(name: "Canvas", root: served, ticker: world.serverTicker)
    world.replaced = scope
    let clients = (0..<2).map { _ in
      var configuration = ClientEngine.Configuration()
      configuration.highestVersion = version
      return world.addClient(configuration: configuration, root: Score())
    }
    for client in clients { client.join() }
    world.settle()
    return (clients[0], clients[1])
  }

  private func score(_ client: WorldClient) -> Score { client.scope.root as! Score }

  /// The second client changes something without knowing what the first one has done before, and is told.
  private func cross(_ first: (Score) -> Void, _ second: (Score) -> Void) {
    first(score(one))
    one.flush()
    second(score(two))
    two.flush()
    while !one.link!.toServer.isEmpty { world.deliver(one.link!, toServer: true) }
    // What comes of it is seen before the server has decided it.
    while !two.link!.toClient.isEmpty { world.deliver(two.link!, toServer: false) }
  }

  private func expectEqual() {
    world.settle()
    let state = world.replaced!.canonicalJSON
    for client in [one, two] {
      #expect(client.scope.canonicalJSON == state && client.engine.checkInvariants() == [])
      #expect(client.scope.conflicts.items.isEmpty, "nothing was lost")
    }
  }

  @Test("The larger of two numbers counts, and is seen at once")
  func max() {
    cross({ $0.best = 9 }, { $0.best = 4 })
    #expect(score(two).best == 9 && two.engine.pendingCount == 1)
    expectEqual()
    #expect(served.best == 9)
    cross({ $0.best = 10 }, { $0.best = 14 })
    #expect(score(two).best == 14)
    expectEqual()
    #expect(served.best == 14)
    // Nobody else has changed it.
    score(one).best = 2
    expectEqual()
    #expect(served.best == 2 && score(two).best == 2)
  }

  @Test("The smaller of two numbers counts; none is not a number")
  func min() {
    cross({ $0.first = 3 }, { $0.first = 5.5 })
    expectEqual()
    #expect(served.first == 3)
    cross({ $0.first = 2 }, { $0.first = nil })
    expectEqual()
    #expect(served.first == 2)
    cross({ $0.first = nil }, { $0.first = 1 })
    expectEqual()
    #expect(served.first == 1)
  }

  @Test("What was put into an array or a dictionary is there, and what was taken out is not")
  func union() {
    score(one).tags = ["a", "b", "c"]
    score(one).notes = ["a": 1, "b": 2, "c": 3]
    expectEqual()
    cross(
      { score in
        score.tags = ["b", "c", "x"]
        score.notes = ["b": 2, "c": 33, "x": 4]
      },
      { score in
        score.tags = ["a", "b", "y", "x"]
        score.notes = ["a": 1, "b": 22, "y": 5]
      })
    #expect(score(two).tags == ["b", "x", "y"])
    #expect(score(two).notes == ["b": 22, "c": 33, "x": 4, "y": 5])
    expectEqual()
    #expect(served.tags == ["b", "x", "y"])
    #expect(served.notes == ["b": 22, "c": 33, "x": 4, "y": 5])
  }

  @Test("A rule of the app's own, on a property with another name on the wire")
  func custom() {
    cross({ $0.title = "long enough" }, { $0.title = "short" })
    #expect(score(two).title == "long enough")
    expectEqual()
    #expect(served.title == "long enough")
  }

  @Test("Sets that build on each other are merged one after the other")
  func chain() {
    cross({ $0.tags = ["theirs"] }) { score in
      for number in 0..<5 {
        score.tags.append("\(number)")
        score.best += 1
        two.scope.flush()
      }
      score.tags.removeFirst()
      two.scope.flush()
    }
    #expect(two.engine.pendingCount == 6)
    #expect(score(two).tags == ["theirs", "1", "2", "3", "4"])
    expectEqual()
    #expect(served.tags == ["theirs", "1", "2", "3", "4"] && served.best == 5)
  }

  @Test("Without a rule, the last write counts")
  func lastWrite() {
    cross({ $0.name = "one" }, { $0.name = "two" })
    world.settle()
    #expect(served.name == "two" && score(one).name == "two")
    #expect(one.scope.conflicts.items.map(\.mine) == [.value("one")], "which is seen")
    for conflict in one.scope.conflicts.items { one.scope.conflicts.discard(conflict.id) }
    expectEqual()
  }

  @Test("A rejected set takes its part of a merge with it")
  func rejected() throws {
    cross(
      { $0.best = 5 },
      { score in
        _ = try? two.scope.modify(procedure: "none") { score.best = 9 }
        score.tags = ["kept"]
      })
    #expect(score(two).best == 9)
    world.settle()
    #expect(score(two).best == 5 && served.best == 5 && served.tags == ["kept"])
    #expect(two.scope.conflicts.items.count == 1)
  }

  @Test("Only changes of a property with a rule say what was there before")
  func bases() throws {
    score(one).best = 3
    score(one).name = "n"
    let fragment = try #require(one.scope.takeFragments().first)
    #expect(fragment.bases == ["best": 0] && fragment.properties.count == 2)
    #expect(try SyncFragment(json: fragment.json) == fragment)
    var bytes: [UInt8] = []
    fragment.write(to: &bytes)
    #expect(try JSONValue(parsing: bytes) == fragment.json)
    #expect(
      throws: FragmentError.invalid(field: "bases", problem: "should be an object, in a change")
    ) {
      try SyncFragment(
        json: [
          "type": "add", "uuid": .string(fragment.uuid.uuidString), "clsName": "Score",
          "properties": [:], "bases": [:],
        ])
    }
  }

  @Test("A value that a rule makes and the property cannot have rejects the change")
  func wrongRule() {
    final class Odd: ModelObject {
      @Property(.merge(.rule("odd") { _ in "no number" })) var number = 0
    }
    let world = InMemoryWorld()
    let served = Odd()
    world.replaced = Scope(name: "Canvas", root: served, ticker: world.serverTicker)
    let client = world.addClient(root: Odd())
    client.join()
    world.settle()
    served.number = 4
    world.replaced?.flush()
    (client.scope.root as? Odd)?.number = 7
    world.settle()
    #expect(served.number == 4 && (client.scope.root as? Odd)?.number == 4)
    #expect(client.rejections.count == 1)
  }

  @Test("A rule is not asked about a base that the property cannot have", arguments: [true, false])
  func badBase(isAtomic: Bool) {
    let peer = RawPeer(world)
    peer.send(#"{"type":"SessionCreate","index":0,"version":"0.2.0","protocol":2,"params":{}}"#)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    served.best = 4
    world.replaced?.flush()
    var change = SyncFragment(
      .change, uuid: served.uuid, className: "Score", properties: ["best": 9, "name": "no"])
    change.bases = ["best": "none"]
    let other = SyncFragment(
      .change, uuid: served.uuid, className: "Score", properties: ["first": 1.5])
    let replies = peer.submit([change, other], atomic: isAtomic)
    #expect(replies.map { $0.error == nil } == [false, !isAtomic])
    #expect(replies[0].error?.message.contains("Invalid base at 'best'") == true)
    #expect(served.best == 4 && served.name == "" && served.first == (isAtomic ? nil : 1.5))
  }

  @Test("An atomic set with a change that a rule makes nothing of is rejected whole")
  func wrongRuleInAtomicSet() {
    final class Odd: ModelObject {
      @Property(.merge(.rule("odd") { _ in "no number" })) var number = 0
      @Property var name = ""
    }
    let world = InMemoryWorld()
    let served = Odd()
    let scope = Scope(name: "Canvas", root: served, ticker: world.serverTicker)
    world.replaced = scope
    let peer = RawPeer(world)
    peer.send(#"{"type":"SessionCreate","index":0,"version":"0.2.0","protocol":2,"params":{}}"#)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    served.number = 4
    scope.flush()
    var change = SyncFragment(
      .change, uuid: served.uuid, className: "Odd", properties: ["name": "no", "number": 7])
    change.bases = ["number": 0]
    let replies = peer.submit([change], atomic: true)
    #expect(replies.first?.error?.message.contains("merge rule 'odd'") == true)
    #expect(served.number == 4 && served.name == "")
  }

  @Test("Towards a server of version 1, the client merges as well as it can")
  func oldServer() {
    let world = InMemoryWorld()
    let served = Score()
    let (one, two) = Self.join(world, served, version: 1)
    (one.scope.root as? Score)?.best = 9
    world.settle()
    (two.scope.root as? Score)?.best = 12
    world.settle()
    #expect(served.best == 12)
    #expect(one.scope.canonicalJSON == two.scope.canonicalJSON)
  }
}

/// What the rules make of values of all kinds.
@Suite("Merge rules")
struct MergeRuleValueTests {
  private func value(
    _ rule: MergeRule, _ base: JSONValue, _ theirs: JSONValue, _ mine: JSONValue,
    of type: _PropertyType = .json
  ) -> JSONValue {
    rule.value(.init(base: base, theirs: theirs, mine: mine), of: type)
  }

  @Test("The larger and the smaller one, of all that can be compared")
  func comparing() {
    let pairs: [(JSONValue, JSONValue)] = [
      (.integer(-3), .integer(4)), (.integer(4), .unsigned(.max)), (.double(0.5), .integer(1)),
      (.unsigned(.max - 1), .unsigned(.max)), ("a", "b"), (.bool(false), .bool(true)),
      (.double(1.5), .integer(2)),
    ]
    for (small, large) in pairs {
      #expect(value(.max, .null, small, large) == large)
      #expect(value(.max, .null, large, small) == large)
      #expect(value(.min, .null, small, large) == small)
      #expect(value(.min, .null, large, small) == small)
    }
    let decimals: [(JSONValue, JSONValue)] = [
      ("9", "10"), ("-10", "-9"), ("0.5", "1"), ("99999999999999999.01", "99999999999999999.02"),
    ]
    for (small, large) in decimals {
      for type in [_PropertyType.decimal, .optional(.decimal)] {
        #expect(value(.max, "0", small, large, of: type) == large)
        #expect(value(.max, "0", large, small, of: type) == large)
        #expect(value(.min, "0", small, large, of: type) == small)
        #expect(value(.min, "0", large, small, of: type) == small)
      }
    }
    for (small, large) in [(5, "Infinity"), ("-Infinity", 5), ("-Infinity", "Infinity")]
      as [(JSONValue, JSONValue)]
    {
      #expect(value(.max, 0, large, small, of: .number("Double")) == large)
      #expect(value(.min, 0, small, large, of: .number("Double")) == small)
    }
    #expect(value(.max, 1, .null, 2) == 2 && value(.max, 1, 2, .null) == 2)
    #expect(value(.min, 1, .null, 2) == 2 && value(.min, 1, 2, .null) == 2)
    // What nobody can compare is what was written last.
    #expect(value(.max, 1, "text", 2) == 2 && value(.min, 1, [1], 2) == 2)
  }

  @Test("It makes no difference whether a number has come over the wire")
  func forms() {
    final class Marks: ModelObject {
      @Property(.merge(.union)) var numbers: [Double] = []
      @Property(.merge(.max)) var last: Date?
    }
    let schema = Marks().schema
    let (numbers, last) = (schema[wireName: "numbers"]!, schema[wireName: "last"]!)
    #expect(numbers.merged(.array([]), onto: [.double(1), 2], base: [1]) == [.double(2)])
    #expect(numbers.merged([3], onto: [.double(1)], base: [1]) == [3], "nobody else has changed it")
    // Dates are read in two forms.
    let (early, late) = ("2026-01-01T00:00:00Z" as JSONValue, 1_800_000_000 as JSONValue)
    #expect(last.areSame(last.merged(early, onto: late, base: .null), late))
    #expect(last.areSame(last.merged(late, onto: early, base: .null), late))
  }

  @Test("Texts of different bytes are merged as different values")
  func texts() {
    final class Note: ModelObject {
      @Property(.merge(.rule("theirs") { $0.theirs })) var text = ""
      @Property(.merge(.union)) var names: [String: String] = [:]
    }
    func bytes(_ value: JSONValue) -> [UInt8] { Array(value.text.utf8) }
    let (composed, decomposed) = ("\u{E9}" as JSONValue, "e\u{301}" as JSONValue)
    let schema = Note().schema
    let (text, names) = (schema[wireName: "text"]!, schema[wireName: "names"]!)
    #expect(!text.areSame(composed, decomposed) && text.areSame(composed, composed))
    #expect(bytes(text.merged("mine", onto: composed, base: decomposed)) == bytes(composed))
    #expect(bytes(text.putBack(composed, onto: "x", base: decomposed)) == bytes("x"))
    #expect(bytes(text.putBack(composed, onto: decomposed, base: decomposed)) == bytes(composed))
    let merged = names.merged(
      ["a": composed], onto: ["a": decomposed, "b": "x"], base: ["a": decomposed])
    #expect(bytes(merged) == bytes(["a": composed, "b": "x"]))
  }

  @Test("Unions of what has another form are what was written last")
  func oddUnions() {
    #expect(value(.union, .null, ["a"], ["b"]) == ["a", "b"])
    #expect(value(.union, ["a"], .null, ["a", "b"]) == ["a", "b"])
    #expect(value(.union, ["a"], ["a", "c"], .null) == ["a", "c"])
    #expect(value(.union, ["a"], 3, ["b"]) == ["b"])
    #expect(
      value(.union, ["a", "a"], ["a", "a", "b"], ["a", "a", "c", "c"]) == ["a", "a", "b", "c"])
    #expect(value(.union, ["k": 1], ["k": 2], [:]) == ["k": 2], "they have changed it since")
    #expect(value(.union, ["k": 1], ["k": 1], [:]) == [:])
  }
}
