import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// Everything that a property can be, for hosts of objects and of rows.
final class Plot: ModelObject {
  @Property var title = ""
  @Property var crops: ModelArray<Crop> = []
  @Property var shed: ModelArray<Crop> = []
  @Property var chosen: Crop?
  @Property var rare: RareCrop?
  @Property var marks: ModelDictionary<String, Crop> = [:]
  @Property var any: ModelObject?
  @WeakReference var pick: Crop?
  @Property(.counter) var sown: Int8 = 0
  @Property(.merge(.max)) var best = 0
  @Property(.merge(.union)) var tags: [String] = []
  @Property(.wireName("hue")) var color = RGBAColor.red
  @Property var ids: Set<UUID> = []
  @Property(.local) var isOpen = false
}

class Crop: ModelObject {
  @Property var name = "crop"
  @Property var water: Float = 0
  @Property var date: Date?
  @Property var parts: ModelArray<Crop> = []
  @Property var next: Crop?
  @Property var sides: ModelDictionary<Int, RareCrop> = [:]
}

final class RareCrop: Crop {
  @Property var price: [String: Decimal] = [:]
}

/// Makes fragments of all kinds, most of them valid.
struct FragmentSource {
  var generator: SeededGenerator
  let root: UUID
  let pool: [UUID]
  /// The models that may be named without an error, most of the time.
  var present: [UUID] = []
  /// True for sets that name a property more than once, and in which models come and go.
  var repeatsProperties = false

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    let uuids = (0..<11).map { n in
      UUID(uuidString: "00000000-0000-4000-8000-0000000000\(n < 10 ? "0" : "")\(n)")!
    }
    root = uuids[0]
    pool = Array(uuids.dropFirst())
  }

  mutating func chance(_ rate: Double) -> Bool {
    Double.random(in: 0..<1, using: &generator) < rate
  }

  mutating func one<Element>(of elements: [Element]) -> Element {
    elements.randomElement(using: &generator)!
  }

  func className(_ uuid: UUID) -> String {
    uuid == root ? "Plot" : pool.firstIndex(of: uuid)! % 3 == 0 ? "RareCrop" : "Crop"
  }

  /// Returns the next fragments, for a scope that has `models`.
  mutating func set(_ models: [UUID]) -> [SyncFragment] {
    present = models.filter { $0 != root }
    var result: [SyncFragment] = []
    for _ in 0..<Int.random(in: 0...2, using: &generator) {
      let uuid = one(of: pool)
      result.append(fragment(.add, uuid))
      let holder = chance(0.5) || present.isEmpty ? root : one(of: present)
      var change = SyncFragment(
        .change, uuid: holder, className: className(holder), properties: [:])
      change.operations[holder == root ? one(of: ["crops", "shed"]) : "parts"] = [
        .insert(uuid, .end)
      ]
      result.append(change)
      if !present.contains(uuid) { present.append(uuid) }
    }
    for _ in 0..<Int.random(in: 0...2, using: &generator) {
      let kind: SyncFragment.Kind = chance(0.05) ? .add : .change
      result.append(fragment(kind, chance(0.4) ? root : someone()))
    }
    if repeatsProperties, chance(0.4) { repeatProperties(in: &result) }
    return result
  }

  /// Adds fragments for the properties that others have operations for: values, and operations of the opposite.
  private mutating func repeatProperties(in fragments: inout [SyncFragment]) {
    for fragment in fragments where chance(0.7) {
      var again = SyncFragment(
        .change, uuid: fragment.uuid, className: fragment.className, properties: [:])
      for entry in fragment.operations {
        if chance(0.2) {
          again.properties[entry.key] = value(of: entry.key)
        } else if entry.key == "sown" {
          again.operations[entry.key] = [.add(3)]
        } else {
          again.operations[entry.key] = entry.operations.compactMap { operation in
            operation.model.map { chance(0.6) ? .remove($0) : .insert(someone(), .after([$0])) }
          }
        }
      }
      for key in ["crops", "shed", "parts", "sown"] where fragment.properties[key] != nil {
        again.operations[key] = key == "sown" ? [.add(3)] : [operation(), operation()]
      }
      if again.properties.isEmpty, again.operations.isEmpty { continue }
      fragments.insert(again, at: chance(0.2) ? 0 : fragments.count)
    }
  }

  /// Returns a model that is there, most of the time.
  private mutating func someone() -> UUID {
    present.isEmpty || chance(0.05) ? one(of: pool) : one(of: present)
  }

  private mutating func fragment(_ kind: SyncFragment.Kind, _ uuid: UUID) -> SyncFragment {
    let name = chance(0.01) ? one(of: ["Plot", "Crop", "RareCrop", "Weed"]) : className(uuid)
    var fragment = SyncFragment(kind, uuid: uuid, className: name, properties: [:])
    let keys =
      name == "Plot"
      ? [
        "title", "crops", "shed", "chosen", "rare", "any", "pick", "sown", "best", "tags", "hue",
        "ids", "marks/a", "marks/b", "marks/e\u{301}",
      ]
      : name == "Crop"
        ? ["name", "water", "date", "parts", "next", "sides/1", "sides/2"]
        : ["name", "water", "date", "parts", "next", "sides/1", "sides/2", "price"]
    for key in keys where chance(0.2) {
      if chance(0.4), ["crops", "shed", "parts"].contains(key) {
        fragment.operations[key] = (0..<Int.random(in: 1...3, using: &generator)).map { _ in
          operation()
        }
      } else if chance(0.7), key == "sown" {
        fragment.operations[key] = [.add(Int64.random(in: -90...90, using: &generator))]
      } else {
        fragment.properties[key] = chance(0.005) ? ["odd"] : value(of: key)
        if chance(0.5) { fragment.bases[key] = value(of: key) }
      }
    }
    if chance(0.005) { fragment.properties["unheardOf"] = 1 }
    return fragment
  }

  private mutating func operation() -> PropertyOperation {
    let place: PropertyOperation.Place =
      switch Int.random(in: 0..<3, using: &generator) {
      case 0: .start
      case 1: .end
      default: .after((0..<2).map { _ in someone() })
      }
    return switch Int.random(in: 0..<3, using: &generator) {
    case 0: .insert(someone(), place)
    case 1: .move(someone(), place)
    default: .remove(someone())
    }
  }

  private mutating func value(of key: String) -> JSONValue {
    let uuid = JSONValue.string(someone().wireText)
    switch key {
    case "title", "name": return .string(one(of: ["", "a", "\u{e9}", "e\u{301}"]))
    case "crops", "shed", "parts":
      let count = Int.random(in: 0...3, using: &generator)
      return .array(present.shuffled(using: &generator).prefix(count).map { .string($0.wireText) })
    case "rare", "sides/1", "sides/2":
      let rare = present.filter { className($0) == "RareCrop" }
      return rare.isEmpty || chance(0.3) ? .null : .string(one(of: rare).wireText)
    case "pick" where chance(0.3): return .string(someone().wireText.uppercased())
    case "chosen", "any", "pick", "next", "marks/a", "marks/b", "marks/e\u{301}":
      return chance(0.3) ? .null : uuid
    case "sown": return .integer(Int64.random(in: -128...127, using: &generator))
    case "best":
      return chance(0.3) ? .double(3) : .integer(Int64.random(in: 0...5, using: &generator))
    case "tags": return .array((0..<2).map { _ in .string(one(of: ["x", "y", "z"])) })
    case "hue": return .integer(Int64.random(in: 0...3, using: &generator))
    case "ids": return .array([uuid, .string(one(of: pool).wireText.uppercased())])
    case "water": return one(of: [0, .double(0.1), .double(-0.0), "NaN", .integer(7)])
    case "date": return one(of: [.null, 5, "1970-01-01T00:00:05Z"])
    default: return ["a": .string(one(of: ["1.50", "2"]))]
    }
  }
}

@Suite("Hosts of rows", .paced) struct RowsHostTests {
  /// Returns the schema as a file has it or, with the classes, as they give it.
  private static func schema(withClasses: Bool = false) throws -> ScopeSchema {
    let schema = ScopeSchema(of: Plot.self)
    return withClasses ? schema : try ScopeSchema(JSONValue(parsing: schema.json.text))
  }

  @Test("A weak reference is kept as all write it, or not at all", arguments: [false, true])
  func weakReference(withClasses: Bool) throws {
    let document = Document(
      schema: try Self.schema(withClasses: withClasses).schema, root: UUID())
    let crop = UUID()
    func pick(_ value: JSONValue) -> [ScopeError] {
      let change = SyncFragment(
        .change, uuid: document.root.uuid, className: "Plot", properties: ["pick": value])
      return document.apply([change]).errors.map(\.error)
    }
    #expect(pick(.string(crop.wireText.uppercased())) == [])
    #expect(document.root.properties["pick"] == .string(crop.wireText))
    #expect(document.checkInvariants() == [])
    #expect(pick(5).count == 1)
    #expect(document.root.properties["pick"] == .null)
  }

  @Test("A model of an unknown class is kept where any model can be")
  func unknownModelAnywhere() {
    let plot = Plot()
    let scope = Scope(name: "Plot", root: plot, ticker: .manual())
    let host = ScopeOrder(
      content: ModelContent(scope), epoch: "e", policy: .init(unknown: .keep),
      streamLimit: .init(sets: 100, bytes: 100_000))
    let weed = UUID()
    var submitter = ScopeOrder.Submitter(session: 1, proven: 0, rebases: true, missed: .init())
    submitter.usesOperations = true
    let result = host.submit(
      [
        SyncFragment(.add, uuid: weed, className: "Weed", properties: ["size": 3]),
        SyncFragment(
          .change, uuid: plot.uuid, className: "Plot",
          properties: ["any": .string(weed.wireText)]),
      ], isAtomic: true, by: submitter)
    #expect(result.replies.compactMap(\.error) == [])
    #expect(plot.any?.uuid == weed)
    #expect(scope.canonicalJSON.contains(#""clsName":"Weed","properties":{"size":3}"#))
  }

  @Test(
    "A model that a history has brought back and removed again is new to sessions when it comes")
  func backInHistory() throws {
    let plot = Plot()
    let scope = Scope(name: "Plot", root: plot, ticker: .manual())
    let crop = UUID()
    let addition = SyncFragment(
      .add, uuid: crop, className: "Crop", properties: ["name": "back"])
    func choose(_ value: JSONValue) -> SyncFragment {
      SyncFragment(.change, uuid: plot.uuid, className: "Plot", properties: ["chosen": value])
    }
    let coming = [addition, choose(.string(crop.wireText))]
    let steps = [coming, [choose(.null)], coming, [choose(.null)]]
    var history = ScopeHistory(epoch: "e", sequence: 0, state: scope.fullState(), clients: [:])
    history.records = steps.enumerated().map {
      ScopeRecord(sequence: $0 + 1, fragments: $1)
    }
    let document = Document(schema: try Self.schema().schema, root: plot.uuid)
    let contents: [any HostedContent] = [
      ModelContent(scope), RowsContent(name: "Plot", document),
    ]
    for content in contents {
      let host = ScopeOrder(
        content: content, epoch: "e", streamLimit: .init(sets: 100, bytes: 100_000))
      try host.restore(history)
      host.needsValues = true
      let result = host.submit(
        coming, isAtomic: false,
        by: ScopeOrder.Submitter(session: 1, proven: 4, rebases: false, missed: .init()))
      #expect(result.item?.newcomers == [crop])
    }
  }

  @Test("They decide, tell and keep what hosts of objects do", arguments: UInt64(1)...30)
  func sameAsObjects(seed: UInt64) throws {
    var source = FragmentSource(seed: seed)
    source.repeatsProperties = seed % 4 > 1
    let plot = Plot()
    let scope = Scope(name: "Plot", root: plot, ticker: .manual())
    let document = Document(
      schema: try Self.schema(withClasses: seed % 3 == 0).schema, root: source.root)
    // The rows that a server has which begins anew with what was told.
    let repeated = Document(schema: document.schema, root: source.root)
    let state = [
      SyncFragment(
        .change, uuid: source.root, className: "Plot", properties: document.root.properties)
    ]
    let contents: [any HostedContent] = [
      ModelContent(scope), RowsContent(name: "Plot", document),
    ]
    let hosts = contents.map {
      ScopeOrder(content: $0, epoch: "e", streamLimit: .init(sets: 100, bytes: 100_000))
    }
    for host in hosts {
      _ = try host.content.restore(state)
      host.needsValues = seed % 2 == 0
    }
    _ = try repeated.restore(state)
    for step in 0..<120 {
      let fragments = source.set(Array(document.uuids).sorted())
      let usesOperations = seed % 2 == 1 || source.chance(0.6)
      let proven = Int.random(in: 0...hosts[0].sequence, using: &source.generator)
      let missed = Set(
        ["crops", "chosen", "title"].filter { _ in source.chance(0.2) }.map {
          PropertyKey(uuid: source.root, name: $0)
        })
      var submitter = ScopeOrder.Submitter(
        session: Int.random(in: 1...3, using: &source.generator), proven: proven,
        rebases: usesOperations || source.chance(0.3), missed: .init())
      if !usesOperations { submitter.missed.wait(for: missed) }
      submitter.usesOperations = usesOperations
      let isAtomic = source.chance(0.3)
      let isInitial = source.chance(0.05)
      let results = hosts.map {
        isInitial
          ? $0.submitInitial(fragments, by: submitter)
          : $0.submit(fragments, isAtomic: isAtomic, by: submitter)
      }
      let place: Comment = "seed \(seed), step \(step): \(fragments.map(\.json.text))"
      try #require(results[0].replies == results[1].replies, place)
      #expect(
        results[0].item?.fragments.map(\.json.text) == results[1].item?.fragments.map(\.json.text),
        place)
      #expect(
        results[0].item?.whole?.map(\.json.text) == results[1].item?.whole?.map(\.json.text), place)
      #expect(results[0].item?.newcomers == results[1].item?.newcomers, place)
      #expect(
        results[0].correction.map(\.json.text) == results[1].correction.map(\.json.text), place)
      #expect(
        results[0].effective?.map(\.json.text) == results[1].effective?.map(\.json.text), place)
      try #require(scope.canonicalJSON == document.canonicalJSON, place)
      if let item = results[0].item {
        #expect(repeated.apply(item.fragments).errors.map(\.error) == [], place)
        try #require(repeated.canonicalJSON == document.canonicalJSON, place)
      }
      #expect(hosts[0].sequence == hosts[1].sequence)
      #expect(document.checkInvariants() == [], place)
      #expect(hosts[0].content.digest(budget: .max) == hosts[1].content.digest(budget: .max), place)
      if source.chance(0.1) {
        let horizon = Int.random(in: 0...hosts[0].sequence, using: &source.generator)
        for host in hosts { host.forget(upTo: horizon) }
      }
    }
    #expect(hosts[0].sequence > 40, "seed \(seed) accepts too little")
  }
}
