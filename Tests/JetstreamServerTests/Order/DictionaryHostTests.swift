import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// Hosts of rows whose classes have dictionaries of models, which no class of this program has.
@Suite("Hosts of rows with dictionaries", .paced)
struct DictionaryHostTests {
  private static let schemaText = """
    {"version":1,"root":"Club","classes":[
      {"name":"Club","properties":[
        {"name":"members","type":"dictionary of reference to Person"},
        {"name":"line","type":"collection of Person"},
        {"name":"chair","type":"reference to Person"},
        {"name":"any","type":"dictionary of reference to ModelObject"}]},
      {"name":"Person","properties":[
        {"name":"name","type":"string","default":"?"},
        {"name":"friends","type":"dictionary of reference to Person"}]},
      {"name":"Dog","properties":[]}]}
    """

  private static func schema() throws -> ScopeSchema {
    try ScopeSchema(JSONValue(parsing: schemaText))
  }

  private static let uuids = (0..<9).map {
    UUID(uuidString: "00000000-0000-4000-8000-00000000000\($0)")!
  }
  private static let root = uuids[0]
  private static let (one, two, three) = (uuids[1], uuids[2], uuids[3])

  /// A host of rows, with the records that it would write.
  private final class World {
    let content: RowsContent
    let host: ScopeOrder
    var records: [ScopeRecord] = []
    private(set) var numbers: [Int: Int] = [:]

    init() throws {
      content = RowsContent(name: "Club", Document(schema: try schema().schema, root: root))
      host = ScopeOrder(
        content: content, epoch: "e", streamLimit: .init(sets: 100, bytes: 100_000))
      host.needsValues = true
      host.records.store = { [unowned self] in records.append($0) }
    }

    var document: Document { content.document }

    func submit(
      _ fragments: [SyncFragment], by session: Int = 1, isAtomic: Bool = false, version: Int = 2
    ) -> ScopeOrder.Result {
      var submitter = ScopeOrder.Submitter(
        session: session, proven: host.sequence, rebases: version > 1, missed: .init())
      submitter.usesOperations = version > 1
      let result = host.submit(fragments, isAtomic: isAtomic, by: submitter)
      host.keep(result.item, result.set)
      #expect(document.checkInvariants() == [])
      return result
    }

    /// Submits what is to be accepted.
    func accept(_ fragments: SyncFragment...) {
      #expect(submit(fragments).replies.compactMap(\.error) == [])
    }

    func names(_ uuid: UUID) -> [String] {
      (document[uuid]?.properties.keys ?? []).filter { $0.contains("/") }
    }
  }

  private static func className(_ uuid: UUID) -> String {
    uuid == root ? "Club" : uuid == uuids.last ? "Dog" : "Person"
  }

  private static func fragment(
    _ kind: SyncFragment.Kind, _ uuid: UUID, _ values: JSONObject
  ) -> SyncFragment {
    SyncFragment(kind, uuid: uuid, className: className(uuid), properties: values)
  }

  private static func add(_ uuid: UUID, _ values: JSONObject = [:]) -> SyncFragment {
    fragment(.add, uuid, values)
  }

  private static func change(_ uuid: UUID, _ values: JSONObject) -> SyncFragment {
    fragment(.change, uuid, values)
  }

  private static func value(_ uuid: UUID) -> JSONValue { .string(uuid.wireText) }

  // MARK: Schemas

  @Test("A schema with dictionaries is written as it is read")
  func schemaText() throws {
    let json = try JSONValue(parsing: Self.schemaText)
    let schema = try ScopeSchema(json)
    let again = try ScopeSchema(schema.json)
    #expect(again.json == schema.json)
    let members = try #require(schema.schema.root.properties.first)
    #expect(members.kind == .dictionary && members.heldClass == "Person")
    #expect(
      schema.json.text.contains(#"{"name":"members","type":"dictionary of reference to Person"}"#))
  }

  @Test(
    "A schema whose dictionary cannot be is refused, with the place",
    arguments: [
      (
        #"[{"name":"m","type":"dictionary of reference to Cat"}]"#,
        "classes[0].properties[0].type names the class Cat, which the schema does not have."
      ),
      (
        #"[{"name":"m","type":"dictionary of reference to A"},{"name":"m/x","type":"string","default":""}]"#,
        "classes[0].properties[1] is called m/x, which is the name of an entry of m."
      ),
      (
        #"[{"name":"m/x","type":"dictionary of reference to A"},{"name":"m","type":"dictionary of reference to A"}]"#,
        "classes[0].properties[0] is called m/x, which is the name of an entry of m."
      ),
      (
        #"[{"name":"m","type":"dictionary of reference to A","merge":"max"}]"#,
        "classes[0].properties[0] holds models, which need no merge rule."
      ),
      (
        #"[{"name":"m","type":"dictionary of reference to A","counter":true}]"#,
        "classes[0].properties[0].type is that of a counter, and no whole number."
      ),
      (
        #"[{"name":"m","type":"array of dictionary of reference to A"}]"#,
        "classes[0].properties[0].type holds models inside of a value; declare it as ModelArray<A> or ModelDictionary<String, A>."
      ),
    ])
  func wrongSchema(_ properties: String, _ expected: String) throws {
    let json = try JSONValue(
      parsing: #"{"version":1,"root":"A","classes":[{"name":"A","properties":\#(properties)}]}"#)
    #expect(throws: SchemaError.self) { try ScopeSchema(json) }
    do { _ = try ScopeSchema(json) } catch { #expect("\(error)" == expected) }
  }

  // MARK: Submissions

  @Test("Entries are accepted, told as they are, and removed with the models that only they held")
  func accepted() throws {
    let world = try World()
    let fragments = [
      Self.add(Self.one, ["name": "Ada"]), Self.add(Self.two, ["name": "Bob"]),
      Self.change(Self.one, ["friends/": Self.value(Self.two)]),
      Self.change(Self.root, ["members/Ada": Self.value(Self.one)]),
    ]
    let result = world.submit(fragments)
    #expect(result.replies.compactMap(\.error) == [])
    #expect(
      result.item?.fragments.last?.json == fragments.last?.json && result.item?.newcomers.count == 2
    )
    #expect(result.item?.fragments[0].properties["friends/"] == Self.value(Self.two))
    #expect(world.names(Self.root) == ["members/Ada"])
    let second = world.submit([Self.change(Self.root, ["members/Ada": .null])])
    #expect(second.item?.fragments.first?.properties == ["members/Ada": .null])
    #expect(world.document.uuids == [Self.root])
    #expect(Set(world.host.departedModels.keys) == [Self.one, Self.two])
    // Another client has put one of them under another key meanwhile: it comes back with what it holds.
    let third = world.submit([Self.change(Self.root, ["members/A": Self.value(Self.one)])], by: 2)
    #expect(third.item?.fragments.map(\.kind) == [.add, .add, .change])
    #expect(world.names(Self.one) == ["friends/"])
  }

  @Test(
    "What an entry cannot hold is rejected",
    arguments: [
      ("members/A", 5, "Cannot set property at 'members/A' as non-UUID"),
      ("members/A", "x", "Cannot set property at 'members/A' as non-UUID"),
      ("members/A", [], "Cannot set property at 'members/A' as non-UUID"),
      (
        "members/A", value(uuids[8]),
        "ModelObject '\(uuids[8].wireText)' at 'members/A' is a Dog, should be a Person"
      ),
      ("members/A", value(two), "No such ModelObject '\(two.wireText)' at 'members/A'"),
      ("members", .null, "No property at 'members'"),
      ("members", [:], "No property at 'members'"),
      ("chair/A", .null, "No property at 'chair/A'"),
    ] as [(String, JSONValue, String)])
  func rejected(_ key: String, _ value: JSONValue, _ text: String) throws {
    let world = try World()
    let dog = Self.uuids[8]
    world.accept(Self.add(dog), Self.change(Self.root, ["any/dog": Self.value(dog)]))
    let before = world.document.canonicalJSON
    for isAtomic in [false, true] {
      let result = world.submit([Self.change(Self.root, [key: value])], isAtomic: isAtomic)
      #expect(result.replies[0].error?.message.contains(text) == true, "\(result.replies)")
      #expect(result.item == nil && world.document.canonicalJSON == before)
    }
  }

  @Test("Operations on an entry are rejected")
  func operations() throws {
    let world = try World()
    world.accept(Self.add(Self.one), Self.change(Self.root, ["members/A": Self.value(Self.one)]))
    for operation in [PropertyOperation.remove(Self.one), .insert(Self.one, .end), .add(1)] {
      var fragment = Self.change(Self.root, [:])
      fragment.operations["members/A"] = [operation]
      #expect(world.submit([fragment]).replies[0].error != nil)
    }
    #expect(world.names(Self.root) == ["members/A"])
  }

  @Test("An addition needs a holder, which an entry can be, also of another addition")
  func parents() throws {
    let world = try World()
    let alone = world.submit([
      Self.add(Self.one), Self.add(Self.two, ["friends/a": Self.value(Self.one)]),
    ])
    #expect(alone.item == nil && alone.replies.allSatisfy { $0.error != nil })
    #expect(alone.replies[0].error?.message.hasPrefix("No parents") == true)
    // A circle that nothing holds.
    let circle = world.submit([
      Self.add(Self.one, ["friends/b": Self.value(Self.two)]),
      Self.add(Self.two, ["friends/a": Self.value(Self.one)]),
    ])
    #expect(circle.item == nil)
    // The last value of an entry counts.
    let replaced = world.submit([
      Self.add(Self.one), Self.add(Self.two),
      Self.change(Self.root, ["members/x": Self.value(Self.one)]),
      Self.change(Self.root, ["members/x": Self.value(Self.two)]),
    ])
    #expect(replaced.replies.map { $0.error != nil } == [true, false, true, false])
    world.accept(
      Self.add(Self.one), Self.add(Self.three, ["friends/a": Self.value(Self.one)]),
      Self.change(Self.root, ["members/y": Self.value(Self.three)]))
    #expect(Set(world.document.uuids) == [Self.root, Self.one, Self.two, Self.three])
  }

  @Test("A rejected addition takes with it the entry that would have held it")
  func causes() throws {
    let world = try World()
    let result = world.submit([
      Self.add(Self.one, ["name": 5]),
      Self.change(Self.root, ["members/x": Self.value(Self.one)]),
    ])
    #expect(result.replies[1].causedBy == 0 && result.item == nil)
    // Moved out of a collection into an entry that is rejected, a model stays where it is.
    var put = Self.change(Self.root, [:])
    put.operations["line"] = [.insert(Self.two, .end)]
    world.accept(Self.add(Self.two), put)
    var cut = Self.change(Self.root, [:])
    cut.operations["line"] = [.remove(Self.two)]
    let moved = world.submit([
      cut, Self.change(Self.uuids[5], ["friends/x": Self.value(Self.two)]),
    ])
    #expect(moved.replies[0].lost == ["line"] && moved.item == nil)
    // Into one that is accepted, it goes.
    world.accept(cut, Self.change(Self.root, ["members/x": Self.value(Self.two)]))
    #expect(
      world.document[Self.two].map { world.document.holders(of: $0) }
        == [PropertyKey(uuid: Self.root, name: "members/x")])
  }

  /// An entry as a client knew it, as the client has left it, as the server has it, and as it is to come out.
  @Test(
    "A model that is put back has each entry that either side has changed",
    arguments: [
      (nil, nil, nil, nil), (nil, nil, one, one), (nil, two, nil, two), (nil, two, one, two),
      (one, nil, one, nil), (one, nil, two, nil), (one, one, one, one), (one, one, nil, nil),
      (one, one, two, two), (one, two, one, two), (one, two, nil, two), (one, three, two, three),
    ] as [(UUID?, UUID?, UUID?, UUID?)], [false, true])
  func putBack(_ entry: (base: UUID?, mine: UUID?, theirs: UUID?, result: UUID?), isThere: Bool)
    throws
  {
    for isNamed in [false, true] where isNamed || entry.mine == nil {
      let world = try World()
      let holder = Self.uuids[4]
      let others = [Self.one, Self.two, Self.three]
      let entries = JSONObject(others.map { ("any/\($0.wireText)", Self.value($0)) })
      world.accept(
        Self.add(Self.one), Self.add(Self.two), Self.add(Self.three),
        Self.add(holder, entry.theirs.map { ["friends/x": Self.value($0)] } ?? [:]),
        Self.change(Self.root, entries),
        Self.change(Self.root, ["chair": Self.value(holder)]))
      if !isThere { world.accept(Self.change(Self.root, ["chair": .null])) }
      var back = Self.add(holder, ["name": "again"])
      if isNamed { back.properties["friends/x"] = entry.mine.map(Self.value) ?? .null }
      back.bases = ["name": "?"]
      // A client that knew of no entry may say so or not.
      back.bases["friends/x"] = entry.base.map(Self.value) ?? (isNamed ? .null : nil)
      let result = world.submit([back, Self.change(Self.root, ["members/h": Self.value(holder)])])
      #expect(result.replies.compactMap(\.error) == [])
      #expect(world.document[holder]?.properties["name"] == "again")
      #expect(
        world.document[holder]?.properties["friends/x"] == entry.result.map(Self.value),
        "\(entry), named: \(isNamed)")
    }
  }

  @Test("Initial content for a dictionary has an effect only if the dictionary was never written")
  func initialContent() throws {
    // The dictionary was never written, was written, or is the one with which the scope begins.
    for isFirst in [true, false, nil] {
      let world = try World()
      if isFirst == nil {
        _ = world.document.apply([
          Self.add(Self.two), Self.change(Self.root, ["members/b": Self.value(Self.two)]),
        ])
      } else if isFirst == false {
        world.accept(
          Self.add(Self.two), Self.change(Self.root, ["members/b": Self.value(Self.two)]))
        world.accept(Self.change(Self.root, ["members/b": .null]))
        #expect(world.host.written.names == ["members"])
      }
      var submitter = ScopeOrder.Submitter(session: 2, proven: 0, rebases: true, missed: .init())
      submitter.usesOperations = true
      let result = world.host.submitInitial(
        [
          Self.add(Self.one), Self.add(Self.three),
          Self.change(
            Self.root,
            ["members/a": Self.value(Self.one), "any/a": Self.value(Self.three)]),
        ], by: submitter)
      #expect(result.replies.compactMap(\.error) == [])
      let members = [true: ["members/a"], false: [], nil: ["members/b"]][isFirst]!
      #expect(world.names(Self.root) == members + ["any/a"])
    }
  }

  @Test("A peer of version 1 sends and gets entries as values")
  func oldPeer() throws {
    let world = try World()
    let first = world.submit(
      [
        Self.add(Self.one, ["name": "Ada", "friends/x": .null]),
        Self.change(Self.root, ["members/a": Self.value(Self.one), "members/b": .null]),
      ], version: 1)
    #expect(first.replies.compactMap(\.error) == [] && first.correction.isEmpty)
    #expect(
      first.item?.whole?.last?.properties == [
        "members/a": Self.value(Self.one), "members/b": .null,
      ])
    // It goes back from a rejected value to one that may be outdated, and is told which is right.
    let second = world.submit(
      [Self.change(Self.root, ["members/a": "no", "members/b": .null])], version: 1)
    #expect(second.replies[0].error != nil)
    #expect(
      second.correction.last?.properties == [
        "members/a": Self.value(Self.one), "members/b": .null,
      ])
  }

  @Test("Keys are told in the form in which every replica writes them")
  func equivalentKeys() throws {
    let world = try World()
    let result = world.submit([
      Self.add(Self.one), Self.change(Self.root, ["members/e\u{301}": Self.value(Self.one)]),
    ])
    let key = try #require(result.item?.fragments.last?.properties.keys.first)
    #expect(Array(key.utf8) == Array("members/\u{e9}".utf8))
  }

  // MARK: By chance

  private struct Source {
    var generator: SeededGenerator

    mutating func chance(_ rate: Double) -> Bool {
      Double.random(in: 0..<1, using: &generator) < rate
    }

    mutating func set(_ present: [UUID]) -> [SyncFragment] {
      var result: [SyncFragment] = []
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let isAddition = chance(0.4)
        let uuid =
          isAddition || chance(0.05)
          ? uuids.dropFirst().randomElement(using: &generator)!
          : present.randomElement(using: &generator)!
        var values: JSONObject = [:]
        for name in names(uuid) where chance(0.3) {
          values[name] = chance(0.01) ? 5 : value(present, result)
        }
        var fragment = DictionaryHostTests.fragment(isAddition ? .add : .change, uuid, values)
        if uuid == root, chance(0.3) {
          fragment.operations["line"] = [
            chance(0.5)
              ? .remove(present.randomElement(using: &generator)!)
              : .insert(uuids.dropFirst().randomElement(using: &generator)!, .end)
          ]
        }
        if chance(0.4) {
          for name in names(uuid) where chance(0.5) { fragment.bases[name] = value(present, []) }
        }
        result.append(fragment)
      }
      return result
    }

    private mutating func names(_ uuid: UUID) -> [String] {
      let keys = ["a", "b", "c/d"]
      switch className(uuid) {
      case "Club":
        return keys.map { "members/" + $0 } + keys.map { "any/" + $0 } + ["chair"]
      case "Person": return keys.map { "friends/" + $0 }
      default: return []
      }
    }

    /// Returns null, or a model that is there or being added, most of the time.
    private mutating func value(_ present: [UUID], _ set: [SyncFragment]) -> JSONValue {
      if chance(0.3) { return .null }
      let added = set.filter { $0.kind == .add }.map(\.uuid)
      let uuids = chance(0.05) ? uuids : added.isEmpty || chance(0.5) ? present : added
      return DictionaryHostTests.value(uuids.randomElement(using: &generator)!)
    }
  }

  /// A replica of rows that gets what is broadcast.
  private final class Follower {
    let document: Document
    private var left: [UUID: Row] = [:]

    init(_ schema: Schema) { document = Document(schema: schema, root: root) }

    func apply(_ fragments: [SyncFragment]) -> [ScopeError] {
      let outcome = document.apply(fragments) { [left] in left[$0] }
      for row in outcome.left + outcome.entered { left[row.uuid] = document.has(row) ? nil : row }
      return outcome.errors.map(\.error)
    }
  }

  @Test(
    "Replicas that are told each set, and those that replay the log, have what the server has",
    arguments: UInt64(1)...40)
  func random(seed: UInt64) throws {
    var source = Source(generator: SeededGenerator(seed: seed))
    let world = try World()
    let schema = try Self.schema().schema
    let followers = [Follower(schema), Follower(schema)]
    let state = world.host.history(of: [world.host.content.sharedState()])
    for step in 0..<120 {
      let set = source.set(world.document.uuids.sorted())
      let result = world.submit(
        set, by: 1, isAtomic: source.chance(0.2), version: source.chance(0.7) ? 2 : 1)
      let place: Comment = "seed \(seed), step \(step): \(set.map(\.json.text))"
      guard let item = result.item else { continue }
      #expect(followers[0].apply(item.fragments).isEmpty, place)
      #expect(followers[1].apply(try #require(item.whole)).isEmpty, place)
      for follower in followers {
        try #require(follower.document.canonicalJSON == world.document.canonicalJSON, place)
        #expect(follower.document.checkInvariants() == [], place)
      }
      if source.chance(0.1) { world.host.forget(upTo: world.host.sequence) }
    }
    #expect(world.host.sequence > 30, "seed \(seed) accepts too little")
    var history = state
    history.records = try world.records.map { record in
      var read = try ScopeRecord(json: JSONValue(parsing: record.json.text))
      read.sequence = record.sequence
      return read
    }
    let restored = try World()
    try restored.host.restore(history)
    #expect(restored.document.canonicalJSON == world.document.canonicalJSON, "seed \(seed)")
    #expect(restored.document.checkInvariants() == [], "seed \(seed)")
    #expect(restored.host.written.names == world.host.written.names, "seed \(seed)")
    #expect(
      restored.content.digest(budget: .max) == world.content.digest(budget: .max), "seed \(seed)")
  }
}
