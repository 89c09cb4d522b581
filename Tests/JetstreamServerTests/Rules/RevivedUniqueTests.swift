import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

private final class Hall: ModelObject {
  @Property var shelves: ModelArray<Shelf> = []
  @Property var loose: ModelArray<Ware> = []
  @Property var chosen: Shelf?
}

private final class Shelf: ModelObject {
  @Property var wares: ModelArray<Ware> = []
  @Property var byName: ModelDictionary<String, Ware> = [:]
  @Property var below: ModelArray<Shelf> = []
  @Property var beside: Shelf?
}

private final class Ware: ModelObject {
  @Property(.unique) var sku: String?
}

/// A model that comes back brings its collections, whose models may have got other values.
@Suite("Unique properties in the collections of models that come back", .paced)
struct RevivedUniqueTests {
  /// A hall with a shelf of two wares, which has left.
  private struct World {
    let host: ScopeOrder
    let root: UUID
    let shelf = UUID()
    let one = UUID()
    let two = UUID()
    private let scope: Scope?

    init(_ hosting: RuleHosting, below: UUID? = nil, isDictionary: Bool = false) {
      let content: any HostedContent
      switch hosting {
      case .classes:
        let hall = Hall()
        let scope = Scope(name: "Hall", root: hall, ticker: .manual())
        content = ModelContent(scope)
        (self.scope, root) = (scope, hall.uuid)
      case .schema:
        root = UUID()
        content = RowsContent(
          name: "Hall", Document(schema: ScopeSchema(of: Hall.self).schema, root: root))
        scope = nil
      }
      host = ScopeOrder(content: content, epoch: "e", streamLimit: .init(sets: 100, bytes: 100_000))
      let held: JSONObject =
        isDictionary
        ? ["byName/x": .string(one.wireText), "byName/y": .string(two.wireText)]
        : ["wares": .models(one, two)]
      var fragments = [
        ware(one, "a"), ware(two, "b"),
        SyncFragment(.add, uuid: shelf, className: "Shelf", properties: held),
      ]
      if let below {
        fragments.append(
          SyncFragment(
            .add, uuid: below, className: "Shelf", properties: ["below": .models(shelf)]))
      }
      let top = below ?? shelf
      fragments.append(edit(root, "Hall", "shelves", .insert(top, .end)))
      #expect(submit(fragments).allSatisfy { $0 })
      #expect(submit([edit(root, "Hall", "shelves", .remove(top))]) == [true])
      #expect(host.content.sharedModel(one) == nil && host.content.sharedModel(shelf) == nil)
    }

    /// Submits fragments. Returns, for each of them, true if it is accepted.
    func submit(_ fragments: [SyncFragment], version: Int = 2) -> [Bool] {
      result(of: fragments, version: version).replies.map { $0.error == nil }
    }

    func result(of fragments: [SyncFragment], version: Int = 2) -> ScopeOrder.Result {
      scope?.sealChanges()
      var submitter = ScopeOrder.Submitter(
        session: 1, proven: host.sequence, rebases: version > 1, missed: .init())
      submitter.usesOperations = version > 1
      return host.submit(fragments, isAtomic: false, by: submitter)
    }

    func ware(_ uuid: UUID, _ sku: String) -> SyncFragment {
      SyncFragment(.add, uuid: uuid, className: "Ware", properties: ["sku": .string(sku)])
    }

    func edit(
      _ uuid: UUID, _ className: String, _ collection: String, _ operations: PropertyOperation...
    ) -> SyncFragment {
      SyncFragment(
        .change, uuid: uuid, className: className, properties: [:],
        operations: [collection: operations])
    }

    func insert(_ uuid: UUID, into collection: String) -> SyncFragment {
      edit(root, "Hall", collection, .insert(uuid, .end))
    }

    func choose(_ uuid: UUID) -> SyncFragment {
      SyncFragment(
        .change, uuid: root, className: "Hall", properties: ["chosen": .string(uuid.wireText)])
    }

    func again(_ properties: JSONObject = [:], known: JSONObject = [:]) -> SyncFragment {
      var fragment = SyncFragment(.add, uuid: shelf, className: "Shelf", properties: properties)
      fragment.bases = known
      return fragment
    }

    /// The values of the wares of the shelf; nil while it is not in the scope.
    var skus: [JSONValue]? {
      host.content.sharedModel(shelf).map { shelf in
        let schema = shelf.classSchema
        let held = ["wares", "byName"].flatMap { name in
          schema.properties.first { $0.wireName == name }.map { shelf.models(in: $0) } ?? []
        }
        return held.compactMap { uuid in
          host.content.sharedModel(uuid).flatMap { ware in
            ware.classSchema[wireName: "sku"].map { ware.currentJSON(of: $0) }
          }
        }.sorted { $0.text < $1.text }
      }
    }
  }

  @Test(
    "Models that are looked at count as effort, also if all is rejected",
    arguments: RuleHosting.allCases)
  func effort(_ hosting: RuleHosting) {
    let world = World(hosting)
    let elsewhere = [world.ware(world.one, "b"), world.insert(world.one, into: "loose")]
    #expect(world.submit(elsewhere) == [true, true])
    let result = world.result(of: [world.insert(world.shelf, into: "shelves")])
    #expect(result.replies.map { $0.error == nil } == [false] && result.effort >= 2)
  }

  @Test(
    "A former child that is added elsewhere with the value of another one keeps the model away",
    arguments: RuleHosting.allCases, [false, true])
  func child(_ hosting: RuleHosting, isDictionary: Bool) {
    let world = World(hosting, isDictionary: isDictionary)
    let elsewhere = [world.ware(world.one, "b"), world.insert(world.one, into: "loose")]
    let back = [world.insert(world.shelf, into: "shelves")]
    #expect(world.submit(elsewhere + back) == [true, true, false])
    #expect(world.skus == nil)
  }

  @Test(
    "The first of those that cannot both be is accepted", arguments: RuleHosting.allCases)
  func order(_ hosting: RuleHosting) {
    let world = World(hosting)
    let replies = world.submit([
      world.insert(world.shelf, into: "shelves"), world.ware(world.one, "b"),
      world.insert(world.one, into: "loose"),
    ])
    #expect(replies == [true, false, true])
    #expect(world.skus == ["a", "b"])
  }

  @Test(
    "A value that was changed while the model was away counts", arguments: RuleHosting.allCases)
  func meanwhile(_ hosting: RuleHosting) {
    let world = World(hosting)
    #expect(
      world.submit([world.ware(world.one, "b"), world.insert(world.one, into: "loose")])
        == [true, true])
    #expect(world.submit([world.insert(world.shelf, into: "shelves")]) == [false])
    #expect(world.submit([world.choose(world.shelf)]) == [false])
    let back = [world.again(), world.insert(world.shelf, into: "shelves")]
    #expect(world.submit(back) == [false, false] && world.skus == nil)
    // With another value it comes back.
    let other = SyncFragment(
      .change, uuid: world.one, className: "Ware", properties: ["sku": "c"])
    #expect(world.submit([other] + back) == [true, true, true])
    #expect(world.skus == ["b", "c"])
  }

  @Test(
    "A model below one that comes back brings its collections, too",
    arguments: RuleHosting.allCases, [1, 2])
  func below(_ hosting: RuleHosting, version: Int) {
    let top = UUID()
    let world = World(hosting, below: top)
    #expect(
      world.submit([world.ware(world.one, "b"), world.insert(world.one, into: "loose")])
        == [true, true])
    let whole = SyncFragment(
      .change, uuid: world.root, className: "Hall", properties: ["shelves": .models(top)])
    #expect(world.submit([whole], version: version) == [false])
    #expect(world.host.content.sharedModel(top) == nil)
  }

  @Test("A model without equal values comes back", arguments: RuleHosting.allCases)
  func unequal(_ hosting: RuleHosting) {
    let world = World(hosting)
    let replies = world.submit([
      world.ware(world.one, "b"), world.ware(world.two, "a"),
      world.insert(world.one, into: "loose"), world.insert(world.two, into: "loose"),
      world.choose(world.shelf),
    ])
    #expect(replies == [true, true, true, true, true])
    #expect(world.skus == ["a", "b"])
  }

  @Test(
    "An addition that leaves a former child out of its collection is judged without that",
    arguments: RuleHosting.allCases)
  func leftOut(_ hosting: RuleHosting) {
    let world = World(hosting)
    let elsewhere = [world.ware(world.one, "b"), world.insert(world.one, into: "loose")]
    let back = [
      world.again(["wares": .models(world.two)]), world.insert(world.shelf, into: "shelves"),
    ]
    #expect(world.submit(elsewhere + back) == [true, true, true, true])
    #expect(world.skus == ["b"])
  }

  @Test(
    "An addition that leaves out the entry of a former child is judged without that",
    arguments: RuleHosting.allCases, [true, false])
  func entryLeftOut(_ hosting: RuleHosting, isKnown: Bool) {
    let world = World(hosting, isDictionary: true)
    let elsewhere = [world.ware(world.one, "b"), world.insert(world.one, into: "loose")]
    let (x, y) = (JSONValue.string(world.one.wireText), JSONValue.string(world.two.wireText))
    // A client that did not know the entry has not left it out.
    let known: JSONObject = isKnown ? ["byName/x": x, "byName/y": y] : ["byName/y": y]
    let back = [
      world.again(["byName/y": y], known: known), world.insert(world.shelf, into: "shelves"),
    ]
    let replies = world.submit(elsewhere + back)
    #expect(replies == [true, true, isKnown, isKnown])
    #expect(world.skus == (isKnown ? ["b"] : nil))
  }
}
