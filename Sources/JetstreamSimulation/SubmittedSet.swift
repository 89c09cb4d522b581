import Foundation
import Jetstream

/// A change set that a client or the server has made, in plain JSON: what was meant by it.
final class SubmittedSet: CustomStringConvertible {
  /// What was meant by one fragment. What it assigns is read from what is sent.
  struct Intent {
    let uuid: String
    /// The same, as scopes call it.
    let model: UUID
    let className: String
    let isAddition: Bool
    /// Values by property.
    let values: [String: PlainJSON]
    /// In the addition of a model that is put back, the values that its maker knew, by property.
    let known: [String: PlainJSON]
    /// Steps of collections and counters by property.
    var operations: [String: PlainJSON]

    /// The models that are put into collections, moved there or taken out.
    var elements: Set<String> {
      Set(operations.values.flatMap { $0.elements.compactMap(\.element) })
    }

    /// The models that are taken out of collections.
    var removed: [String] {
      operations.values.flatMap { $0.elements.compactMap { $0["remove"]?.text } }
    }

    /// The models that one property's steps are about.
    func elements(of property: String) -> Set<String> {
      Set((operations[property]?.elements ?? []).compactMap(\.element))
    }

    /// Keeps the steps that the server has done: a change has no others than these.
    mutating func leaveOut(what effective: [PlainJSON], root: String, ownRoot: String) {
      if isAddition { return }
      let name = uuid == ownRoot ? root : uuid
      let done = effective.filter { $0["uuid"]?.text == name }
      for (property, steps) in operations {
        let kept = done.flatMap { $0["operations"]?[property]?.elements ?? [] }
        operations[property] = .array(
          steps.elements.filter { step in
            step.element == nil || kept.contains { $0.element == step.element }
          })
      }
    }
  }

  /// Who has made it; nil for the server.
  let client: Int?
  /// How many its maker has made before.
  let place: Int
  /// What the change set calls itself.
  let id: UUID
  /// True if the server has to do all of it or nothing.
  let isAtomic: Bool
  let intents: [Intent]
  /// The models that it adds.
  let additions: Set<String>
  /// When it was made, or brought back, on the clock of the client's process.
  var madeAt: Duration = .zero
  /// The session that it was sent in last.
  var session: String?
  /// The fragments that were sent then.
  var sent: [PlainJSON] = []
  /// Which part of the server's order its client had taken in when it was made; nil if none.
  var basis: ScopePosition?
  /// Whether it has steps of collections or counters, of which the server may do a part.
  var hasSteps: Bool { intents.contains { !$0.isAddition && !$0.operations.isEmpty } }
  /// True if an observer has made it while its client's log was read: only the client knows how much was read by
  /// then.
  var isMadeInRestart = false
  /// True after a server of version 1 has dropped a message with it.
  var isDropped = false
  /// What the server was told of that.
  var toldSeen: Int?
  /// What the server has said of each fragment; nil before it has said anything.
  private(set) var verdicts: [Bool]?
  /// In how many sessions the server has accepted something of it.
  private(set) var acceptances = 0
  /// What the server has not done, although somebody has to hear of it.
  private(set) var losses: [Loss] = []
  /// Whether the server has lost the history that says so.
  private var isForgotten = false

  /// Whether there is no more to be said of it by the server, as far as the server knows.
  var isDecided: Bool { verdicts != nil && !isForgotten }

  /// A part of the set that does not count.
  struct Loss: Hashable {
    let uuid: String
    /// Nil for an addition.
    let property: String?
    let isRejected: Bool
    /// The fragment that it is a part of, and the one whose rejection has led to its own.
    var position: Int?
    var cause: Int?
  }

  /// The server has accepted some of it, or nothing.
  func decide(_ verdicts: [Bool], losing losses: [Loss]) {
    (self.verdicts, self.losses, isForgotten) = (verdicts, losses, false)
    if verdicts.contains(true) { acceptances += 1 }
  }

  /// What has to be said of it to a server, in whose history `epoch` its client is: what it had seen when it was
  /// made, if it overwrites something.
  func seen(in epoch: String?) -> Int? {
    guard intents.contains(where: { $0.isAddition ? !$0.known.isEmpty : !$0.values.isEmpty }) else {
      return nil
    }
    guard let basis else { return 0 }
    return basis.epoch == epoch ? basis.sequence : nil
  }

  /// All of it, as what was rejected.
  var allLosses: [Loss] {
    intents.flatMap { intent -> [Loss] in
      let properties: [String?] =
        intent.isAddition ? [nil] : Array(intent.values.keys) + Array(intent.operations.keys)
      return properties.map { Loss(uuid: intent.uuid, property: $0, isRejected: true) }
    }
  }

  /// The server has lost the history in which it was decided. Its client may know of it all the same.
  func forget() { (acceptances, isForgotten) = (0, true) }

  init(client: Int?, place: Int, id: UUID, isAtomic: Bool, fragments: [SyncFragment]) {
    self.isAtomic = isAtomic
    self.client = client
    self.place = place
    self.id = id
    intents = fragments.map { fragment in
      let json = PlainJSON(fragment)
      return Intent(
        uuid: json["uuid"]?.text ?? "", model: fragment.uuid,
        className: json["clsName"]?.text ?? "",
        isAddition: json["type"]?.text == "add", values: json["properties"]?.members ?? [:],
        known: json["known"]?.members ?? [:],
        operations: json["operations"]?.members ?? [:])
    }
    additions = Set(intents.lazy.filter(\.isAddition).map(\.uuid))
  }

  /// Whether the set takes a model out of one collection and puts it where another property holds it. That has no
  /// effect when another client has moved the model before, or when the server rejects what was to hold it.
  func moves(_ element: String, _ kinds: (String) -> [String: PropertyKind]) -> Bool {
    let steps = intents.flatMap { $0.operations.values.flatMap(\.elements) }
    guard steps.contains(where: { $0["remove"]?.text == element }) else { return false }
    return steps.contains { $0["insert"]?.text == element }
      || intents.contains { intent in
        intent.values.contains { name, value in
          switch kinds(intent.className)[name] {
          case .reference: value.text == element
          case .collection: value.texts.contains(element)
          default: false
          }
        }
      }
  }

  /// Whether a message with these fragments carries the set. `root` may stand for `ownRoot`.
  func isCarried(by fragments: [PlainJSON], ownRoot: String) -> Bool {
    guard fragments.count == intents.count else { return false }
    return zip(fragments, intents).allSatisfy { fragment, intent in
      guard fragment["uuid"]?.text == intent.uuid || intent.uuid == ownRoot,
        (fragment["type"]?.text == "add") == intent.isAddition
      else { return false }
      let written = [fragment["properties"], fragment["operations"]].flatMap {
        $0?.members.keys.map(\.self) ?? []
      }
      return Set(written) == Set(intent.values.keys).union(intent.operations.keys)
    }
  }

  var description: String {
    (client.map { "set \(place) of client \($0)" } ?? "set \(place) of the server")
  }
}

extension PlainJSON {
  /// Reads a fragment as it is written.
  init(_ fragment: SyncFragment) {
    var bytes: [UInt8] = []
    fragment.write(to: &bytes)
    self = PlainJSON(bytes) ?? .null
  }

  /// The model that a step of a collection is about.
  var element: String? { (self["insert"] ?? self["remove"] ?? self["move"])?.text }
}
