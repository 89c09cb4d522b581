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
}
