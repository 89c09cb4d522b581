import Foundation

@testable import Jetstream

/// What others do while calls are open.
extension Thicket {
  /// Others change one property of a model that they have.
  func others() {
    let known = twigs.filter { replica.model($0.uuid) != nil }
    let twig = known[random(known.count)]
    func someUUID() -> UUID { known[random(known.count)].uuid }
    var (properties, operations): (JSONObject, PropertyOperations) = ([:], [:])
    let key = chance(50) ? "items" : "parts"
    let uuids = (0..<random(4)).map { _ in someUUID() }
    switch random(9) {
    case 0, 1: properties["text"] = .string("o\(random(4))")
    case 2: operations = ["count": [.add(Int64(random(5)) - 2)]]
    case 3: properties["heat"] = .integer(Int64(random(4)))
    case 4:
      properties[chance(50) ? "one" : "other"] = chance(60) ? .string(someUUID().wireText) : .null
    case 5:
      var seen: Set<UUID> = []
      properties[key] = .array(
        uuids.filter { seen.insert($0).inserted }.map { .string($0.wireText) })
    case 6: operations[key] = [.insert(someUUID(), place(uuids))]
    case 7: operations[key] = [.move(someUUID(), place(uuids))]
    default: operations[key] = uuids.map { .remove($0) }
    }
    let change = SyncFragment(
      .change, uuid: twig.uuid, className: twig.wireClassName, properties: properties,
      operations: operations)
    let edits = properties.map { "\($0.0) = \(name($0.1))" }
    let steps = operations.map { "\($0.key) \($0.operations)" }
    history.append("others: \(number(twig)) \(edits) \(steps)")
    let ours = scope.apply([change])
    expect(ours.isComplete, "the scope refused \(ours.errors)")
    let theirs = replica.apply([change], alsoKnown: { [keeper] in keeper.find($0) })
    expect(theirs.isComplete, "the replica refused \(theirs.errors)")
  }

  private func place(_ others: [UUID]) -> PropertyOperation.Place {
    switch random(3) {
    case 0: .start
    case 1: .end
    default: others.isEmpty ? .end : .after(others)
    }
  }

  /// A value with the numbers of the models that it names.
  private func name(_ value: JSONValue) -> String {
    var text = value.canonicalText
    for twig in twigs {
      text = text.replacingOccurrences(of: twig.uuid.wireText, with: number(twig))
    }
    return text
  }
}
