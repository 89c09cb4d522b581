import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamDocument

/// Documents whose models hold others by key.
@Suite("Rows with dictionaries", .paced)
struct DictionaryRowsTests {
  private static let root = UUID(uuidString: "00000000-0000-4000-8000-000000000000")!
  /// Models other than the root. The last one has another class.
  private static let pool = (1...8).map {
    UUID(uuidString: "00000000-0000-4000-8000-00000000000\($0)")!
  }
  private static let (one, two, three) = (pool[0], pool[1], pool[2])

  private static func className(_ uuid: UUID) -> String {
    uuid == root ? "Club" : uuid == pool.last ? "Dog" : "Person"
  }

  /// Accepts any JSON.
  private struct AnyJSON: ValueCodec {
    func normalized(_ json: JSONValue) -> JSONValue? { json }
    func accepts(_ json: JSONValue) -> Bool { true }
    func problem(with json: JSONValue) -> String? { nil }
    func areSame(_ a: JSONValue, _ b: JSONValue) -> Bool { a == b }
  }

  private static func makeClass(_ name: String, _ types: [(String, _PropertyType)]) -> ClassSchema {
    ClassSchema(
      name,
      properties: types.enumerated().map { index, type in
        PropertySchema(
          wireName: type.0, type: type.1, index: index, isSynced: true, isCounter: false,
          mergeRule: nil, counterRange: nil, defaultValue: .null, codec: AnyJSON())
      })
  }

  private static let schema: Schema = {
    let person = _PropertyType.reference("Person")
    let club = makeClass(
      "Club",
      [
        ("name", .json), ("members", .dictionary(person)), ("chair", person),
        ("guests", .dictionary(person)),
      ])
    let persons = makeClass("Person", [("friends", .dictionary(person)), ("next", person)])
    return Schema(root: club, classes: [club, persons, makeClass("Dog", [])])
  }()

  private static func add(_ uuid: UUID, _ values: [String: UUID?] = [:]) -> SyncFragment {
    fragment(.add, uuid, values)
  }

  private static func change(_ uuid: UUID, _ values: [String: UUID?]) -> SyncFragment {
    fragment(.change, uuid, values)
  }

  private static func fragment(
    _ kind: SyncFragment.Kind, _ uuid: UUID, _ values: [String: UUID?]
  ) -> SyncFragment {
    let properties = values.sorted { $0.key < $1.key }.map { key, value in
      (key, value.map { JSONValue.string($0.wireText) } ?? .null)
    }
    return SyncFragment(
      kind, uuid: uuid, className: className(uuid), properties: JSONObject(properties))
  }

  /// A document with the rows that have left it, as a host keeps them.
  private struct Hosted {
    let document = Document(schema: schema, root: root)
    private(set) var left: [UUID: Row] = [:]

    mutating func apply(_ fragments: [SyncFragment]) -> Document.Outcome {
      let left = left
      let outcome = document.apply(fragments) { left[$0] }
      for row in outcome.left + outcome.entered {
        self.left[row.uuid] = document.has(row) ? nil : row
      }
      // A host refuses changes of rows that stay away; so these hold no model that nothing else has.
      for row in self.left.values {
        let values = row.properties.filter { _, value in
          guard case .string(let text) = value, let uuid = UUID(uuidString: text) else {
            return true
          }
          return document[uuid] != nil || self.left[uuid] != nil
        }
        if values.count == row.properties.count { continue }
        let names = row.properties.map { ($0.key, JSONValue.null) }
        var properties = JSONObject(names)
        for (name, value) in values { properties[name] = value }
        document.setValues(of: row, to: properties)
      }
      return outcome
    }

    func holders(_ uuid: UUID) -> Set<PropertyKey> {
      Set(document[uuid].map { document.holders(of: $0) } ?? [])
    }
  }

  private static func key(_ uuid: UUID, _ name: String) -> PropertyKey {
    PropertyKey(uuid: uuid, name: name)
  }

  private func hosted(_ fragments: SyncFragment...) -> Hosted {
    var hosted = Hosted()
    let outcome = hosted.apply(fragments)
    #expect(outcome.errors.isEmpty)
    #expect(hosted.document.checkInvariants() == [])
    return hosted
  }

  @Test("A chain whose members lead back is let go of as a whole, and what is held elsewhere stays")
  func chain() {
    let link = Self.makeClass("Link", [("next", .reference("Link")), ("back", .reference("Link"))])
    let board = Self.makeClass(
      "Board", [("first", .reference("Link")), ("kept", .reference("Link"))])
    let document = Document(schema: Schema(root: board, classes: [board, link]), root: UUID())
    let links = (0..<20_000).map { _ in UUID() }
    var fragments = links.enumerated().map { at, uuid in
      var values: JSONObject = [:]
      if at + 1 < links.count { values["next"] = .string(links[at + 1].wireText) }
      if at > 0 { values["back"] = .string(links[at - 1].wireText) }
      return SyncFragment(.add, uuid: uuid, className: "Link", properties: values)
    }
    func change(_ values: JSONObject) -> SyncFragment {
      SyncFragment(.change, uuid: document.root.uuid, className: "Board", properties: values)
    }
    fragments.append(
      change(["first": .string(links[0].wireText), "kept": .string(links[15_000].wireText)]))
    #expect(document.apply(fragments).errors.isEmpty && document.count == 20_001)
    // The chain leads back from what is kept.
    #expect(document.apply([change(["first": .null])]).left.isEmpty)
    #expect(document.checkInvariants() == [])
    #expect(document.apply([change(["kept": .null])]).left.count == 20_000)
    #expect(document.count == 1 && document.checkInvariants() == [])
  }

  @Test("an entry is put, replaced and removed, and its model comes and goes with it")
  func oneEntry() throws {
    var hosted = hosted(Self.add(Self.one), Self.change(Self.root, ["members/Ada": Self.one]))
    #expect(hosted.holders(Self.one) == [Self.key(Self.root, "members/Ada")])
    #expect(
      hosted.document.root.properties == [
        "name": .null, "members/Ada": .string(Self.one.wireText), "chair": .null,
      ])
    var outcome = hosted.apply([
      Self.add(Self.two), Self.change(Self.root, ["members/Ada": Self.two]),
    ])
    #expect(outcome.entered.map(\.uuid) == [Self.two] && outcome.left.map(\.uuid) == [Self.one])
    #expect(hosted.document.checkInvariants() == [])
    outcome = hosted.apply([Self.change(Self.root, ["members/Ada": nil, "members/Bob": nil])])
    #expect(outcome.left.map(\.uuid) == [Self.two])
    #expect(hosted.document.root.properties == ["name": .null, "chair": .null])
    #expect(hosted.document.checkInvariants() == [])
  }

  @Test("a model under two keys stays until the last key lets go")
  func twoKeys() {
    var hosted = hosted(
      Self.add(Self.one),
      Self.change(
        Self.root, ["members/Ada": Self.one, "members/Bob": Self.one, "guests/Ada": Self.one]))
    for names in [["members/Bob", "guests/Ada"], ["guests/Ada"], []] {
      #expect(hosted.holders(Self.one).count == names.count + 1)
      let gone = names.count == 2 ? "members/Ada" : names.count == 1 ? "members/Bob" : "guests/Ada"
      let outcome = hosted.apply([Self.change(Self.root, [gone: nil])])
      #expect(outcome.left.isEmpty == !names.isEmpty)
      #expect(hosted.holders(Self.one) == Set(names.map { Self.key(Self.root, $0) }))
      #expect(hosted.document.checkInvariants() == [])
    }
    #expect(hosted.document.uuids == [Self.root])
  }

  @Test("a model that is moved to another key in one change set does not leave")
  func move() {
    var hosted = hosted(Self.add(Self.one), Self.change(Self.root, ["members/Ada": Self.one]))
    for (old, new) in [
      ("members/Ada", "members/Bob"), ("members/Bob", "members/Ada"), ("members/Ada", "guests/Ada"),
    ] {
      let outcome = hosted.apply([
        Self.change(Self.root, [old: nil]), Self.change(Self.root, [new: Self.one]),
      ])
      #expect(outcome.left.isEmpty && outcome.entered.isEmpty)
      #expect(hosted.holders(Self.one) == [Self.key(Self.root, new)])
      #expect(hosted.document.checkInvariants() == [])
    }
  }

  @Test("a model that loses its entry stays if the root leads to it elsewhere, and not in a circle")
  func otherHolders() {
    var hosted = hosted(
      Self.add(Self.one, ["friends/Bob": Self.two]), Self.add(Self.two, ["friends/Ada": Self.one]),
      Self.change(Self.root, ["members/Ada": Self.one, "chair": Self.two]))
    #expect(hosted.apply([Self.change(Self.root, ["members/Ada": nil])]).left.isEmpty)
    #expect(hosted.holders(Self.one) == [Self.key(Self.two, "friends/Ada")])
    let outcome = hosted.apply([Self.change(Self.root, ["chair": nil])])
    #expect(Set(outcome.left.map(\.uuid)) == [Self.one, Self.two])
    #expect(hosted.document.checkInvariants() == [])
    // One comes back, and brings the other.
    let back = hosted.apply([Self.change(Self.root, ["guests/": Self.one])])
    #expect(back.entered.map(\.uuid) == [Self.one, Self.two])
    #expect(hosted.document.checkInvariants() == [])
  }

  @Test("a value that is no model of the class, an operation and the dictionary itself are refused")
  func refused() throws {
    var hosted = hosted(Self.add(Self.one), Self.change(Self.root, ["members/Ada": Self.one]))
    let before = hosted.document.canonicalJSON
    func refused(_ properties: JSONObject, _ operations: PropertyOperations = [:]) -> ScopeError? {
      var fragment = SyncFragment(
        .change, uuid: Self.root, className: "Club", properties: properties)
      fragment.operations = operations
      let outcome = hosted.apply([fragment])
      #expect(hosted.document.canonicalJSON == before)
      return outcome.errors.first?.error
    }
    func invalid(_ name: String) -> ScopeError {
      .invalidValue(className: "Club", model: Self.root, property: name, expected: "UUID")
    }
    #expect(refused(["members/Ada": 5]) == invalid("members/Ada"))
    #expect(refused(["members/Ada": "Bob"]) == invalid("members/Ada"))
    #expect(refused(["members/Ada": [.string(Self.one.wireText)]]) == invalid("members/Ada"))
    #expect(refused([:], ["members/Ada": [.insert(Self.one, .end)]]) == invalid("members/Ada"))
    #expect(refused([:], ["members/Ada": [.add(1)]]) == invalid("members/Ada"))
    #expect(
      refused(["members/Ada": .string(Self.root.wireText)]) == invalid("members/Ada"), "a club")
    #expect(
      refused(["members/Bob": .string(Self.two.wireText)])
        == .unknownReference(
          className: "Club", model: Self.root, property: "members/Bob",
          missing: Self.two.wireText))
    for name in ["members", "chair/Ada"] {
      #expect(
        refused([name: .null])
          == .unknownProperty(className: "Club", model: Self.root, property: name))
    }
  }

  @Test("keys that Swift takes for the same are one key")
  func equivalentKeys() {
    var hosted = hosted(
      Self.add(Self.one), Self.change(Self.root, ["members/e\u{301}": Self.one]))
    #expect(hosted.document.root.properties.keys.last == "chair")
    #expect(Array(hosted.document.root.properties.keys[1].utf8) == Array("members/\u{e9}".utf8))
    let outcome = hosted.apply([Self.change(Self.root, ["members/\u{e9}": nil])])
    #expect(outcome.left.map(\.uuid) == [Self.one])
  }

  @Test("a model that is added again has the entries that the addition names")
  func addedAgain() throws {
    var hosted = hosted(
      Self.add(Self.two), Self.add(Self.three),
      Self.add(Self.one, ["friends/Bob": Self.two, "friends/Cy": Self.three]),
      Self.change(Self.root, ["members/Ada": Self.one]))
    _ = hosted.apply([Self.change(Self.root, ["members/Ada": nil])])
    let row = try #require(hosted.left[Self.one])
    #expect(row.properties.count == 3)
    _ = hosted.apply([
      Self.add(Self.one, ["friends/Cy": Self.three]),
      Self.change(Self.root, ["members/Ada": Self.one]),
    ])
    #expect(row.properties == ["friends/Cy": .string(Self.three.wireText), "next": .null])
    #expect(Set(hosted.document.uuids) == [Self.root, Self.one, Self.three])
    #expect(hosted.document.checkInvariants() == [])
    // A row that has left can be given other values.
    _ = hosted.apply([Self.change(Self.root, ["members/Ada": nil])])
    hosted.document.setValues(of: row, to: ["friends/Bob": .string(Self.two.wireText)])
    #expect(row.properties == ["friends/Bob": .string(Self.two.wireText), "next": .null])
  }

  // MARK: By chance

  /// The same as a document, in tables that are searched from the start for every question.
  private struct Reference {
    /// The values that are not null, by the names of references and entries.
    var models: [UUID: [String: UUID]] = [root: [:]]
    /// The models that have left.
    var left: [UUID: [String: UUID]] = [:]

    mutating func apply(_ fragments: [SyncFragment]) {
      var all = models.merging(left) { in_, _ in in_ }
      for fragment in fragments where fragment.kind == .add {
        if left[fragment.uuid] != nil {
          all[fragment.uuid] = all[fragment.uuid]?.filter {
            !$0.key.contains("/") || fragment.properties[$0.key] != nil
          }
        }
        all[fragment.uuid] = all[fragment.uuid] ?? [:]
      }
      for kind in [SyncFragment.Kind.add, .change] {
        for fragment in fragments where fragment.kind == kind && all[fragment.uuid] != nil {
          for (name, value) in fragment.properties {
            guard case .string(let text) = value else {
              all[fragment.uuid]![name] = nil
              continue
            }
            let uuid = UUID(uuidString: text)!
            if all[uuid] != nil, className(uuid) == "Person" { all[fragment.uuid]![name] = uuid }
          }
        }
      }
      var reached: Set<UUID> = []
      func reach(_ uuid: UUID) {
        if reached.insert(uuid).inserted { for next in all[uuid]!.values { reach(next) } }
      }
      reach(root)
      models = all.filter { reached.contains($0.key) }
      left = all.filter { !reached.contains($0.key) }
    }

    /// Drops the values of models that have left which name forgotten ones.
    mutating func dropForgotten() {
      let known = Set(models.keys).union(left.keys)
      left = left.mapValues { $0.filter { known.contains($0.value) } }
    }

    func holders(_ uuid: UUID) -> Set<PropertyKey> {
      Set(
        models.flatMap { holder, values in
          values.filter { $0.value == uuid }.map { key(holder, $0.key) }
        })
    }
  }

  /// Returns the first difference between a document and its reference; nil if there is none.
  private static func problem(with sets: [[SyncFragment]]) -> String? {
    var hosted = Hosted()
    var reference = Reference()
    for (step, set) in sets.enumerated() {
      let before = Set(reference.models.keys)
      let outcome = hosted.apply(set)
      reference.apply(set)
      // A new model that nothing has held is forgotten.
      for uuid in reference.left.keys where hosted.left[uuid] == nil {
        if before.contains(uuid) { return "\(step): \(uuid) is forgotten" }
        reference.left[uuid] = nil
      }
      reference.dropForgotten()
      func values(_ row: Row) -> [String: UUID] {
        Dictionary(
          uniqueKeysWithValues: row.properties.compactMap { name, value in
            if case .string(let text) = value { (name, UUID(uuidString: text)!) } else { nil }
          })
      }
      let broken = hosted.document.checkInvariants()
      if !broken.isEmpty { return "\(step): \(broken)" }
      if Set(hosted.document.uuids) != Set(reference.models.keys) {
        return "\(step): it has \(hosted.document.uuids)"
      }
      if !Set(outcome.left.map(\.uuid)).isSuperset(of: before.subtracting(reference.models.keys)) {
        return "\(step): it tells of \(outcome.left.map(\.uuid)) alone"
      }
      for (uuid, expected) in reference.models {
        if values(hosted.document[uuid]!) != expected { return "\(step): values of \(uuid)" }
        if hosted.holders(uuid) != reference.holders(uuid) { return "\(step): holders of \(uuid)" }
      }
      for (uuid, row) in hosted.left where reference.left[uuid] != values(row) {
        return "\(step): values of \(uuid), which has left"
      }
      let restored = Document(schema: schema, root: UUID())
      let errors = (try? restored.restore(hosted.document.fullState()))?.errors
      if errors?.isEmpty != true || restored.canonicalJSON != hosted.document.canonicalJSON
        || !restored.checkInvariants().isEmpty
      {
        return "\(step): it is restored as \(restored.canonicalJSON)"
      }
    }
    return nil
  }

  private static func set(_ generator: inout SeededGenerator) -> [SyncFragment] {
    (0..<Int.random(in: 1...4, using: &generator)).map { _ in
      let isRoot = Int.random(in: 0..<3, using: &generator) == 0
      let uuid = isRoot ? root : pool.randomElement(using: &generator)!
      let keys = ["Ada", "Bob", "", "a/b"]
      let names =
        switch className(uuid) {
        case "Club": keys.map { "members/" + $0 } + keys.map { "guests/" + $0 } + ["chair"]
        case "Person": keys.map { "friends/" + $0 } + ["next"]
        default: [String]()
        }
      var values: [String: UUID?] = [:]
      for name in names where Int.random(in: 0..<4, using: &generator) == 0 {
        let isRemoval = Int.random(in: 0..<3, using: &generator) == 0
        values.updateValue(isRemoval ? nil : pool.randomElement(using: &generator)!, forKey: name)
      }
      let isAddition = !isRoot && Int.random(in: 0..<2, using: &generator) == 0
      return isAddition ? add(uuid, values) : change(uuid, values)
    }.reduce(into: []) { set, fragment in
      // A change set adds a model once.
      if fragment.kind == .add, set.contains(where: { $0.kind == .add && $0.uuid == fragment.uuid })
      {
        return
      }
      set.append(fragment)
    }
  }

  private static func smaller(_ sets: [[SyncFragment]]) -> [[[SyncFragment]]] {
    withoutOne(sets)
      + sets.indices.flatMap { at in
        let less =
          withoutOne(sets[at])
          + sets[at].indices.flatMap { place in
            sets[at][place].properties.keys.map { name in
              var set = sets[at]
              set[place].properties[name] = nil
              return set
            }
          }
        return less.map { set in
          var sets = sets
          sets[at] = set
          return sets
        }
      }
  }

  @Test("a document has what a naive reference has after any change sets", arguments: 1...40)
  func random(seed: Int) {
    var generator = SeededGenerator(seed: UInt64(seed))
    let sets = (0..<120).map { _ in Self.set(&generator) }
    guard Self.problem(with: sets) != nil else { return }
    let least = minimal(
      sets, smaller: Self.smaller, fails: { Self.problem(with: $0) != nil })
    Issue.record(
      "seed \(seed): \(Self.problem(with: least) ?? "") \(least.map { $0.map(\.json.text) })")
  }
}
