import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamSimulation

@Suite("The simulation's reference knows what accepted change sets mean")
struct IntentReferenceTests {
  private let bed = UUID()
  private let plant = UUID()
  private var reference = IntentReference([.countersAddUp, .collectionsKeepIntents])
  private let kinds: [String: PropertyKind] = ["plants": .collection]

  private mutating func accept(_ fragment: SyncFragment) {
    let set = SubmittedSet(client: 0, place: 0, id: UUID(), isAtomic: false, fragments: [fragment])
    let intent = set.intents[0]
    reference.accept(
      intent, sent: intent.values, bases: [:], of: set, name: { $0 }, kinds)
  }

  /// Another client plants something, and a client that has not seen that puts the bed back, without a plant.
  private mutating func problems(known: JSONObject) -> [String] {
    accept(
      SyncFragment(
        .change, uuid: bed, className: "Bed", properties: [:],
        operations: ["plants": [.insert(plant, .end)]]))
    let addition = SyncFragment(
      .add, uuid: bed, className: "Bed", properties: ["plants": []], bases: known)
    accept(addition)
    var stream = StreamReference()
    stream.begin(root: bed.wireText, [PlainJSON(addition)])
    return reference.problems(in: stream, reachable: [bed.wireText])
  }

  @Test("A bed that was gone, and that is added anew, has the plants that the addition names")
  mutating func addedAnew() {
    #expect(problems(known: [:]) == [])
  }

  @Test("A bed that is put back by a client that says what it knew keeps the plants of others")
  mutating func putBack() {
    #expect(problems(known: ["plants": []]).count == 1)
  }

  @Test("A property that the server does not know may hold what a set takes out of a collection")
  func unknownHolder() {
    let removal = SyncFragment(
      .change, uuid: bed, className: "Bed", properties: [:],
      operations: ["plants": [.remove(plant)]])
    func moves(to name: String) -> Bool {
      let holder = SyncFragment(
        .change, uuid: UUID(), className: "Pot", properties: [name: .string(plant.wireText)])
      let set = SubmittedSet(
        client: 0, place: 0, id: UUID(), isAtomic: false, fragments: [removal, holder])
      return set.moves(plant.wireText) { $0 == "Bed" ? kinds : ["note": .plain] }
    }
    #expect(moves(to: "seedling"))
    #expect(!moves(to: "note"))
  }
}
