import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("Unique properties at the server", .paced)
struct UniqueRuleTests {
  private func isAccepted(_ replies: [WireError?]) -> [Bool] { replies.map { $0 == nil } }

  @Test("Two models of a collection cannot have the same value", arguments: RuleHosting.allCases)
  func collection(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let (one, two) = (world.product(["sku": "a"]), world.product(["sku": "b"]))
    for version in [1, 2] {
      let reply = world.submit([world.change(two, ["sku": "a"])], version: version)[0]
      #expect(
        reply
          == WireError(
            message: "sku has to be unique in products, where another model has \"a\" "
              + "(Product \(two.wireText))", type: "field-rule"))
    }
    let new = UUID()
    let replies = world.submit([world.add(new, ["sku": "b"]), world.insert(new)])
    #expect(replies[0]?.type == "field-rule" && replies[1] != nil)
    #expect(world.models("products") == .models(one, two))
    // Null is no value, and another collection is another matter.
    _ = (world.product(), world.product())
    let other = world.product(["sku": "a"], in: "archive")
    #expect(
      isAccepted(world.submit([world.insert(other)])) == [false]
        && isAccepted(world.submit([world.insert(other, into: "archive")])) == [true])
  }

  @Test("The state after the change set counts", arguments: RuleHosting.allCases)
  func swap(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let (one, two) = (world.product(["sku": "a"]), world.product(["sku": "b"]))
    let swap = [world.change(one, ["sku": "b"]), world.change(two, ["sku": "a"])]
    #expect(isAccepted(world.submit(swap)) == [true, true])
    #expect(world.value("sku", of: one) == "b" && world.value("sku", of: two) == "a")
    // One goes, and another takes its value.
    let new = UUID()
    let replace = [world.remove(one), world.add(new, ["sku": "b"]), world.insert(new)]
    #expect(isAccepted(world.submit(replace)) == [true, true, true])
    // The first of two in one change set is accepted.
    let (third, fourth) = (UUID(), UUID())
    let both = [
      world.add(third, ["sku": "c"]), world.insert(third), world.add(fourth, ["sku": "c"]),
      world.insert(fourth),
    ]
    #expect(isAccepted(world.submit(both)) == [true, true, false, false])
    #expect(world.models("products") == .models(two, new, third))
    #expect(isAccepted(world.submit(both, isAtomic: true)) == [false, false, false, false])
  }

  @Test(
    "A fragment that counts on one that is rejected is judged again",
    arguments: RuleHosting.allCases)
  func rejectedSwap(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let (one, two) = (world.product(["sku": "a"]), world.product(["sku": "b"]))
    let third = world.product(["sku": "c"])
    // The first would make room for the second, but takes the value of the third.
    let replies = world.submit([world.change(one, ["sku": "c"]), world.change(two, ["sku": "a"])])
    #expect(isAccepted(replies) == [false, false])
    // The model that would leave stays, since the fragment that removes it refers to a model that is not there.
    let broken = world.change(
      world.root, [:], ["products": [.remove(one), .insert(UUID(), .end)]])
    #expect(isAccepted(world.submit([broken, world.change(two, ["sku": "a"])])) == [false, false])
    #expect([one, two, third].map { world.value("sku", of: $0) } == ["a", "b", "c"])
  }

  @Test("A chain of any length is decided in a few judgements", arguments: RuleHosting.allCases)
  func chain(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let products = (0..<300).map { world.product(["sku": .string("\($0)")]) }
    let untouched = world.product(["sku": "300"])
    let shift = products.enumerated().map { world.change($1, ["sku": .string("\($0 + 1)")]) }
    #expect(world.submit(shift).allSatisfy { $0?.type == "field-rule" })
    #expect(world.value("sku", of: products[299]) == "299")
    // Without the one that stands in the way, all of it is accepted.
    #expect(world.submit([world.remove(untouched)] + shift).allSatisfy { $0 == nil })
    #expect(world.value("sku", of: products[0]) == "1")
  }

  @Test("The entries of a dictionary are judged like a collection", arguments: RuleHosting.allCases)
  func dictionary(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let (one, two) = (UUID(), UUID())
    func put(_ uuid: UUID?, _ key: String) -> SyncFragment {
      world.change(world.root, ["shelf/\(key)": uuid.map { .string($0.wireText) } ?? .null])
    }
    #expect(
      isAccepted(world.submit([world.add(one, ["sku": "a"]), put(one, "x"), put(one, "y")]))
        == [true, true, true])
    let add = world.add(two, ["sku": "a"])
    #expect(isAccepted(world.submit([add, put(two, "z")])) == [false, false])
    // The other key still holds the first.
    #expect(isAccepted(world.submit([add, put(two, "x")])) == [false, false])
    #expect(isAccepted(world.submit([add, put(two, "x"), put(nil, "y")])) == [true, true, true])
    #expect(
      isAccepted(world.submit([world.change(two, ["sku": "b"])])) == [true])
  }

  @Test(
    "A client that does not know a model cannot insert another one with its value",
    arguments: RuleHosting.allCases, [1, 2])
  func race(_ hosting: RuleHosting, version: Int) throws {
    let world = try RuleWorld(hosting)
    let known = world.product(["sku": "a"])
    let unknown = world.product(["sku": "b"])
    let new = UUID()
    // Its whole collection, as an old peer writes it, without the model that it does not know.
    let replies = world.submit(
      [
        world.add(new, ["sku": "b"]),
        world.change(world.root, ["products": .models(known, new)]),
      ], version: version)
    #expect(isAccepted(replies) == [false, false])
    #expect(world.models("products") == .models(known, unknown))
  }

  @Test(
    "A model that comes back is judged with the value that it had", arguments: RuleHosting.allCases)
  func comesBack(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let gone = world.product(["sku": "a"])
    #expect(isAccepted(world.submit([world.remove(gone)])) == [true])
    _ = world.product(["sku": "a"])
    let back = [world.add(gone, ["text": "back"]), world.insert(gone)]
    #expect(isAccepted(world.submit(back)) == [false, false])
  }

  @Test(
    "An addition of a model that the scope has is judged in its place among the changes",
    arguments: RuleHosting.allCases)
  func addedAgain(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let (one, two) = (world.product(["sku": "a"]), world.product(["sku": "b"]))
    // The addition is applied behind the change.
    let replies = world.submit([world.change(two, ["sku": "c"]), world.add(two, ["sku": "a"])])
    #expect(replies[1]?.type == "field-rule")
    #expect([one, two].map { world.value("sku", of: $0) } == ["a", "c"])
  }

  @Test("Equal values of the server's own app stay, and others are judged")
  func ownWrites() throws {
    let world = try RuleWorld(.classes)
    let shop = try #require(world.shop)
    for _ in 0..<2 {
      let product = Product()
      product.sku = "a"
      shop.products.append(product)
    }
    let first = shop.products[0].uuid
    #expect(isAccepted(world.submit([world.change(first, ["text": "ok", "sku": "a"])])) == [true])
    let third = world.product(["sku": "b"])
    #expect(isAccepted(world.submit([world.change(third, ["sku": "a"])])) == [false])
  }

  @Test("Other fragments in a scope with unique properties are not judged")
  func others() throws {
    let world = try RuleWorld(.schema)
    let product = world.product(["sku": "a"])
    let replies = world.submit([
      world.change(world.root, ["chosen": .string(product.wireText)]),
      world.change(world.root, [:], ["products": [.move(product, .start)]]),
      world.change(product, ["text": "ok"]),
    ])
    #expect(isAccepted(replies) == [true, true, true])
  }

  @Test(
    "A model whose move has no effect keeps its value where it stays",
    arguments: RuleHosting.allCases)
  func lostMove(_ hosting: RuleHosting) throws {
    let world = try RuleWorld(hosting)
    let (one, new) = (world.product(["sku": "a"]), UUID())
    let broken = world.change(
      world.root, [:], ["archive": [.insert(one, .end), .insert(UUID(), .end)]])
    let replies = world.submit([
      world.remove(one), broken, world.add(new, ["sku": "a"]), world.insert(new),
    ])
    #expect(isAccepted(replies) == [true, false, false, false])
    #expect(world.models("products") == .models(one))
    // The move counts, and makes room for the value.
    let move = [world.remove(one), world.insert(one, into: "archive")]
    let replacement = [world.add(new, ["sku": "a"]), world.insert(new)]
    #expect(isAccepted(world.submit(move + replacement)) == [true, true, true, true])
    #expect(world.models("products") == .models(new) && world.models("archive") == .models(one))
    // Another client has moved it meanwhile: the second move puts it nowhere, and so takes no value.
    #expect(isAccepted(world.submit([world.remove(new)])) == [true])
    let back = [world.remove(one), world.insert(one)]
    let third = UUID()
    let late = back + [world.add(third, ["sku": "a"]), world.insert(third)]
    #expect(isAccepted(world.submit(late)) == [true, true, true, true])
    #expect(world.models("products") == .models(third) && world.models("archive") == .models(one))
  }
}
