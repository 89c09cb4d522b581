import Foundation
import Testing

@testable import Jetstream

@Suite("Digests of scopes", .paced(counting: Plant.self))
struct ScopeDigestTests {
  private let ticker = Ticker.manual()

  private func makeScope(_ root: Plant) -> Scope {
    Scope(name: "Garden", root: root, models: [Bush.self], ticker: ticker)
  }

  /// A copy that was made in another order.
  private func copy(of scope: Scope) throws -> Scope {
    let root = Plant(uuid: try #require(scope.root).uuid)
    let copy = makeScope(root)
    let state = scope.sharedState()
    try copy.applyFullState([state[0]] + state.dropFirst().reversed(), rootUUID: root.uuid)
    return copy
  }

  private func total(_ scope: Scope) throws -> StateDigest.Total {
    scope.flush()
    return try #require(ScopeDigest(scope).total())
  }

  @Test("Replicas that are equal come to the same, and no others")
  func equal() throws {
    let root = Plant()
    let scope = makeScope(root)
    root.items = [Plant(), Bush(), Plant()]
    root.left = root.items[1]
    root.title = "a"
    let before = try total(scope)
    let other = try copy(of: scope)
    #expect(try total(other) == before)
    // Each of these is noticed.
    let first = root.items[0]
    let changes: [() -> Void] = [
      { first.number = 3 }, { first.sizes["a"] = 1.5 }, { root.items.move(from: 0, to: 2) },
      { root.left = nil }, { root.friend = first }, { root.title = nil }, { root.count += 1 },
    ]
    var seen: Set<StateDigest.Total> = [before]
    for change in changes {
      change()
      let now = try total(scope)
      #expect(seen.insert(now).inserted && now.schema == before.schema)
    }
    // Local properties do not count, nor do models that nothing else holds.
    let last = try total(scope)
    root.note = 5
    root.picks.append(Plant())
    #expect(try total(scope) == last)
    // Of another class there was none.
    root.right = Tree()
    #expect(try total(scope).schema != last.schema)
  }

  @Test(
    "A digest that follows comes to what one does that is made anew",
    arguments: 1...20 as ClosedRange<UInt64>)
  func incremental(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let root = Plant()
    let scope = makeScope(root)
    scope.flush()
    let digest = ScopeDigest(scope)
    var plants = [root]
    for step in 0..<300 {
      let plant = plants.randomElement(using: &generator)!
      let other = plants.randomElement(using: &generator)!
      switch Int.random(in: 0..<10, using: &generator) {
      case 0, 1:
        plants.append(Bool.random(using: &generator) ? Plant() : Bush())
        plant.items.append(plants.last!)
      case 2: plant.number = step
      case 3: plant.picks = [other]
      case 4: plant.left = other
      case 5: if plant !== root { plant.detach() }
      case 6: plant.items.removeAll()
      case 7: plant.others = [other]
      case 8:
        let change = SyncFragment(
          .change, uuid: plant.uuid, className: plant.wireClassName,
          properties: ["heat": .integer(Int64(step)), "right": .string(other.uuid.wireText)])
        scope.apply([change])
      default: plant.heat = step
      }
      guard Int.random(in: 0..<4, using: &generator) == 0 else { continue }
      if Bool.random(using: &generator) { scope.flush() } else { scope.sealChanges() }
      let fresh = ScopeDigest(scope)
      #expect(digest.total() == fresh.total(), "seed \(seed), step \(step)")
      #expect(digest.parts == fresh.parts)
    }
    for plant in plants { plant.letGo() }
  }

  @Test("What there is to do is done in portions, and what differs is found by its part")
  func parts() throws {
    let root = Plant()
    let scope = makeScope(root)
    for _ in 0..<50 { root.items.append(Plant()) }
    scope.flush()
    let digest = ScopeDigest(scope)
    #expect(digest.total(budget: 20) == nil && digest.total(budget: 20) == nil)
    #expect(digest.total(budget: 20) != nil)
    let before = digest.parts
    #expect(digest.fragments(whereNot: before).isEmpty)
    let changed = root.items[9]
    changed.number = 4
    scope.flush()
    _ = digest.total()
    let found = digest.fragments(whereNot: before)
    #expect(found.contains { $0.uuid == changed.uuid && $0.properties["number"] == 4 })
    #expect(found.count < 10 && digest.differing(from: found).isEmpty)
    changed.number = 5
    scope.flush()
    _ = digest.total()
    #expect(digest.differing(from: found) == [changed.uuid])
  }

  @Test("Nothing is said of a scope with something unknown in it")
  func unknown() throws {
    let root = Plant()
    let scope = makeScope(root)
    let digest = ScopeDigest(scope)
    #expect(digest.total() != nil)
    scope.apply([
      SyncFragment(.change, uuid: root.uuid, className: "Plant", properties: ["newer": 1])
    ])
    #expect(digest.total() == nil)
  }
}

private final class Tree: Plant {
  @Property var rings = 0
}
