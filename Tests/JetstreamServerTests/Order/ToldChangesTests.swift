import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

private final class Bed: ModelObject {
  @Property var plants: ModelArray<Plant> = []
  @Property(.counter) var visits = 0
}

private final class Plant: ModelObject {
  @Property(.counter) var leaves = 0
  @Property var shoots: ModelArray<Plant> = []
}

/// A change set of several fragments for one property, or with models that come and go.
private struct Case: CustomTestStringConvertible {
  let testDescription: String
  /// The change sets that come first.
  var before: [[SyncFragment]] = []
  let fragments: [SyncFragment]

  static let root = UUID()
  /// The plants of the bed at the beginning.
  static let plants = (0..<4).map { _ in UUID() }
  static let (a, b, c) = (plants[0], plants[1], plants[2])
  static let (new, other) = (UUID(), UUID())

  static func add(_ uuid: UUID, _ properties: JSONObject = [:]) -> SyncFragment {
    SyncFragment(.add, uuid: uuid, className: "Plant", properties: properties)
  }

  static func change(_ uuid: UUID, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(
      .change, uuid: uuid, className: uuid == root ? "Bed" : "Plant", properties: properties)
  }

  static func edit(
    _ uuid: UUID, _ key: String, _ operations: PropertyOperation...
  ) -> SyncFragment {
    var fragment = change(uuid, [:])
    fragment.operations[key] = operations
    return fragment
  }

  static func list(_ uuids: [UUID]) -> JSONValue { .array(uuids.map { .string($0.wireText) }) }

  static let all: [Case] = [
    Case(
      testDescription: "an addition to the counter of a model that is added",
      fragments: [
        add(new, ["leaves": 1]), edit(new, "leaves", .add(2)),
        edit(root, "plants", .insert(new, .end)),
      ]),
    Case(
      testDescription: "an addition to a counter in front of the addition of its model",
      fragments: [
        edit(new, "leaves", .add(2)), edit(root, "plants", .insert(new, .end)),
        add(new, ["leaves": 1]),
      ]),
    Case(
      testDescription: "an addition to a counter behind its value",
      fragments: [change(root, ["visits": 5]), edit(root, "visits", .add(2))]),
    Case(
      testDescription: "a value between two additions to a counter",
      fragments: [
        edit(root, "visits", .add(4)), change(root, ["visits": 5]), edit(root, "visits", .add(2)),
      ]),
    Case(
      testDescription: "an addition to the counter of a model that is there and is added again",
      fragments: [add(a, ["leaves": 5]), edit(a, "leaves", .add(2))]),
    Case(
      testDescription: "an addition to the counter of a model that is put back and added",
      before: [[edit(root, "plants", .remove(a))]],
      fragments: [
        add(a, ["leaves": 5]), edit(a, "leaves", .add(2)),
        edit(root, "plants", .insert(a, .end)),
      ]),
    Case(
      testDescription: "an addition to the counter of a model that comes back with its values",
      before: [[add(new, ["leaves": 1]), edit(root, "plants", .insert(new, .end))]]
        + [[edit(root, "plants", .remove(new))]],
      fragments: [
        add(new), edit(new, "leaves", .add(2)), edit(root, "plants", .insert(new, .end)),
      ]),
    Case(
      testDescription: "an addition to the counter of a model that is moved",
      fragments: [
        edit(root, "plants", .remove(a)), edit(a, "leaves", .add(2)),
        edit(b, "shoots", .insert(a, .end)),
      ]),
    Case(
      testDescription: "operations behind the value of a collection",
      fragments: [
        change(root, ["plants": list(plants)]),
        edit(root, "plants", .move(a, .after([c])), .remove(c)),
      ]),
    Case(
      testDescription: "a model that is added, is an anchor, and is removed again",
      fragments: [
        add(new), add(other),
        edit(
          root, "plants", .insert(new, .start), .insert(other, .after([new])), .remove(new)),
      ]),
    Case(
      testDescription: "a model that two fragments insert and remove again",
      fragments: [
        add(new), add(other),
        edit(root, "plants", .insert(new, .start), .insert(other, .after([new]))),
        edit(root, "plants", .remove(new)), edit(root, "plants", .move(b, .start)),
      ]),
    Case(
      testDescription: "a model that is put back, is an anchor, and is removed again",
      before: [[edit(root, "plants", .remove(a))]],
      fragments: [
        edit(root, "plants", .insert(a, .start), .move(c, .after([a])), .remove(a))
      ]),
    Case(
      testDescription: "a model that is added to one that leaves",
      fragments: [
        add(new), edit(a, "shoots", .insert(new, .end)), edit(root, "plants", .remove(a)),
        edit(b, "shoots", .insert(other, .after([new]))), add(other),
      ]),
  ]
}

/// Clients that are told a change set, and a server that begins anew with its record, have what the server has.
@Suite("Change sets as they are told") struct ToldChangesTests {
  private static func order(
    asRows: Bool, _ state: [SyncFragment]
  ) throws -> ScopeOrder {
    let content: any HostedContent =
      asRows
      ? RowsContent(name: "Bed", Document(schema: ScopeSchema(of: Bed.self).schema, root: UUID()))
      : ModelContent(Scope(name: "Bed", root: Bed(), ticker: .manual()))
    let order = ScopeOrder(
      content: content, epoch: "e", streamLimit: .init(sets: 100, bytes: 100_000))
    #expect(try content.restore(state).isEmpty)
    return order
  }

  private static let state: [SyncFragment] =
    [Case.change(Case.root, ["plants": Case.list(Case.plants), "visits": 0])]
    + Case.plants.map { Case.add($0, ["leaves": 0, "shoots": []]) }

  @Test("Its record leads to what the submission has led to", arguments: Case.all, [false, true])
  private func record(_ form: Case, asRows: Bool) throws {
    let order = try Self.order(asRows: asRows, Self.state)
    var submitter = ScopeOrder.Submitter(session: 1, proven: 0, rebases: true, missed: .init())
    submitter.usesOperations = true
    for fragments in form.before {
      let result = order.submit(fragments, isAtomic: true, by: submitter)
      #expect(result.replies.compactMap(\.error) == [])
    }
    let before = order.content.sharedState()
    let result = order.submit(form.fragments, isAtomic: true, by: submitter)
    #expect(result.replies.compactMap(\.error) == [])
    let item = try #require(result.item)
    let after = order.content.sharedState().canonicalJSON
    // The server that begins anew knows no models that have left.
    for asRows in [false, true] {
      let copy = try Self.order(asRows: asRows, before).content
      #expect(copy.apply(item.fragments, known: { _ in nil }).map(\.error) == [])
      #expect(copy.sharedState().canonicalJSON == after, "\(item.fragments.map(\.json.text))")
    }
    #expect(result.effective ?? form.fragments == item.fragments)
  }

  @Test("Clients have what the server has, also with changes of their own", arguments: Case.all)
  private func clients(_ form: Case) throws {
    let world = InMemoryWorld()
    let scope = Scope(name: "Canvas", root: Bed(), ticker: world.serverTicker)
    try scope.applyFullState(Self.state, rootUUID: Case.root)
    world.replaced = scope
    world.server.host(scope)
    let clients = (0..<2).map { _ in world.addClient(root: Bed()) }
    var errors: [ScopeError] = []
    var tokens: [ObservationToken] = []
    for client in clients {
      client.join()
      tokens.append(client.scope.onError.listen { errors.append($0) })
    }
    world.settle()
    let peer = RawPeer.joined(world, protocol: 2)
    for fragments in form.before {
      #expect(peer.submit(fragments, atomic: true).compactMap(\.error) == [])
    }
    world.settle()
    // What one of the clients has changed itself stays in front of what it is told.
    let bed = try #require(clients[1].scope.root as? Bed)
    bed.plants.append(Plant())
    bed.visits += 1
    clients[1].scope.flush()
    #expect(peer.submit(form.fragments, atomic: true).compactMap(\.error) == [])
    peer.acknowledge()
    world.settle()
    for client in clients {
      #expect(client.scope.canonicalJSON == scope.canonicalJSON)
      #expect(client.engine.checkInvariants() == [])
    }
    #expect(errors == [])
    withExtendedLifetime(tokens) {}
  }
}
