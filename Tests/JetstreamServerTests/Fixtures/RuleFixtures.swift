import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

final class Shop: ModelObject {
  @Property(.length(1...20)) var name = "Shop"
  @Property(.immutable) var owner = ""
  @Property([.counter, .range(0...100)]) var visits = 0
  @Property var products: ModelArray<Product> = []
  @Property var archive: ModelArray<Product> = []
  @Property var shelf: ModelDictionary<String, Product> = [:]
  @Property var notes: ModelArray<Remark> = []
  @Property var chosen: Product?
}

final class Product: ModelObject {
  @Property(.range(0...100)) var quantity = 1
  @Property(.length(1...10)) var text = "new"
  @Property(.pattern("[a-z0-9-]+")) var slug = "new"
  @Property(.immutable) var author = ""
  @Property(.unique) var sku: String?
  @Property([.merge(.union), .length(...3)]) var tags: [String] = []
  @Property([.merge(.max), .range(...10)]) var best = 0
}

/// A class whose default breaks the rule.
final class Remark: ModelObject {
  @Property(.length(1...500)) var text = ""
}

/// The ways in which a server knows the rules.
enum RuleHosting: CaseIterable {
  case classes, schema
}

/// A host of a shop, which judges what one session submits.
struct RuleWorld {
  let host: ScopeOrder
  /// The shop of the server's app, if it has the classes.
  let shop: Shop?
  let root: UUID
  private let scope: Scope?

  init(_ hosting: RuleHosting) throws {
    let content: any HostedContent
    switch hosting {
    case .classes:
      let shop = Shop()
      let scope = Scope(name: "Shop", root: shop, ticker: .manual())
      content = ModelContent(scope)
      (self.shop, self.scope, root) = (shop, scope, shop.uuid)
    case .schema:
      let schema = try ScopeSchema(JSONValue(parsing: ScopeSchema(of: Shop.self).json.text))
      root = UUID()
      content = RowsContent(name: "Shop", Document(schema: schema.schema, root: root))
      (shop, scope) = (nil, nil)
    }
    host = ScopeOrder(content: content, epoch: "e", streamLimit: .init(sets: 100, bytes: 100_000))
  }

  /// Submits fragments, as a session of version 2 or 1. Returns the errors, nil for each fragment that is accepted.
  @discardableResult
  func submit(
    _ fragments: [SyncFragment], isAtomic: Bool = false, version: Int = 2
  ) -> [WireError?] {
    scope?.sealChanges()
    var submitter = ScopeOrder.Submitter(
      session: 1, proven: host.sequence, rebases: version > 1, missed: .init())
    submitter.usesOperations = version > 1
    return host.submit(fragments, isAtomic: isAtomic, by: submitter).replies.map(\.error)
  }

  func add(_ uuid: UUID, _ properties: JSONObject = [:], _ name: String = "Product") -> SyncFragment
  {
    SyncFragment(.add, uuid: uuid, className: name, properties: properties)
  }

  func change(
    _ uuid: UUID, _ properties: JSONObject, _ operations: PropertyOperations = [:],
    bases: JSONObject = [:]
  ) -> SyncFragment {
    var fragment = SyncFragment(
      .change, uuid: uuid, className: uuid == root ? "Shop" : "Product", properties: properties,
      operations: operations)
    fragment.bases = bases
    return fragment
  }

  func insert(_ uuids: UUID..., into collection: String = "products") -> SyncFragment {
    change(root, [:], [collection: uuids.map { .insert($0, .end) }])
  }

  func remove(_ uuid: UUID, from collection: String = "products") -> SyncFragment {
    change(root, [:], [collection: [.remove(uuid)]])
  }

  /// Adds a product, which is accepted, and returns it.
  func product(_ properties: JSONObject = [:], in collection: String = "products") -> UUID {
    let uuid = UUID()
    #expect(submit([add(uuid, properties), insert(uuid, into: collection)]) == [nil, nil])
    return uuid
  }

  /// Returns the value of a property of a model.
  func value(_ name: String, of uuid: UUID) -> JSONValue? {
    host.content.model(uuid).flatMap { model in
      model.classSchema[wireName: name].map { model.currentJSON(of: $0) }
    }
  }

  /// Returns the models of a collection.
  func models(_ collection: String) -> JSONValue? { value(collection, of: root) }
}

extension JSONValue {
  static func models(_ uuids: UUID...) -> JSONValue { .array(uuids.map { .string($0.wireText) }) }
}

extension TentativeScope {
  /// Returns a scope that has read its change set, in slices of a size.
  static func after(
    _ fragments: [SyncFragment], in content: any HostedContent, memory: any ContentMemory,
    slices: Int = .max
  ) -> TentativeScope {
    let scope = TentativeScope(of: fragments, in: content, memory: memory)
    var budget = WorkBudget(slices)
    while !scope.read(&budget) { budget = WorkBudget(slices) }
    return scope
  }
}

extension Differences {
  /// Returns the differences that were found in a scope, in slices of a size.
  static func found(in scope: TentativeScope, slices: Int = .max) -> Differences {
    var differences = Differences(in: scope)
    var budget = WorkBudget(slices)
    while !differences.find(&budget) { budget = WorkBudget(slices) }
    return differences
  }

  /// All differences, also those of the models that leave.
  static func every(in scope: TentativeScope, slices: Int = .max) -> [Difference] {
    var differences = found(in: scope, slices: slices)
    var result = differences.all
    while let departure = differences.nextDeparture() { result.append(departure) }
    return result
  }
}

/// The memory of a host that has forgotten everything.
final class NoMemory: ContentMemory {
  func departed(_ uuid: UUID) -> (any HostedModel)? { nil }
  func wasRejected(_ uuid: UUID) -> Bool { false }
}
