import Foundation
import Jetstream

/// A change set of a client or of the server, in plain JSON: what it was meant to do, and what the server has
/// decided.
///
/// A client makes it, submits it in one session or in several, and learns of the decision. With version 2 of
/// the protocol, the server decides it at most once in one history; if it loses that history, ``forget()``
/// makes the change set undecided for the server, while its client may still know of the decision.
final class SubmittedSet: CustomStringConvertible {
  /// The meaning of one fragment. The values that it assigns are read from the message that is sent.
  struct Intent {
    let uuid: String
    /// The same UUID, as scopes use it.
    let model: UUID
    let className: String
    let isAddition: Bool
    /// The values that are assigned, by property.
    let values: [String: PlainJSON]
    /// In the addition of a model that its maker puts back, the values that the maker knew, by property.
    let known: [String: PlainJSON]
    /// The steps of collections and counters, by property.
    var operations: [String: PlainJSON]

    /// The models that are put into collections, moved there or taken out.
    var elements: Set<String> {
      Set(operations.values.flatMap { $0.elements.compactMap(\.element) })
    }

    /// The models that are taken out of collections.
    var removed: [String] {
      operations.values.flatMap { $0.elements.compactMap { $0["remove"]?.text } }
    }

    /// Returns the models that the steps of one property are about.
    func elements(of property: String) -> Set<String> {
      Set((operations[property]?.elements ?? []).compactMap(\.element))
    }

    /// Removes the steps of collections that the server has not applied. Leaves an addition as it is.
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

  /// The number of the client that has made it; nil for the server.
  let client: Int?
  /// The number of change sets that its maker has made before it.
  let place: Int
  /// The id of the change set.
  let id: UUID
  /// True if the server has to apply all of it or nothing.
  let isAtomic: Bool
  /// True if it calls a procedure: its changes are a guess then, and no intents.
  let isCall: Bool
  let intents: [Intent]
  /// The changes of a call, which are visible until it is decided.
  let guesses: [Intent]
  /// The UUIDs of the models that it adds.
  let additions: Set<String>
  /// The time at which it was made, or brought back, on the clock of the client's process.
  var madeAt: Duration = .zero
  /// The session in which it was sent last, with the index that the scope had there: a scope that was closed and opened
  /// again has another one.
  var grant: String?
  /// The fragments that were sent last.
  var sent: [PlainJSON] = []
  /// The epoch and sequence up to which its client had applied changes when it was made; nil if the client had
  /// no state.
  var basis: ScopePosition?
  /// True if it has steps of collections or counters, which the server may apply in part.
  var hasSteps: Bool { intents.contains { !$0.isAddition && !$0.operations.isEmpty } }
  /// True if an observer has made it while its client's log was read: only the client knows how much was read
  /// by then.
  var isMadeInRestart = false
  /// True after a message with it was dropped without an answer, in a session of version 1.
  var isDropped = false
  /// The sequence that its message has named as seen; nil if it has named none.
  var toldSeen: Int?
  /// The server's decision on each fragment, true if it was accepted; nil before there is one.
  private(set) var verdicts: [Bool]?
  /// The number of times that the server has accepted some of it.
  private(set) var acceptances = 0
  /// The parts without effect, which the ledger of its client has to contain.
  private(set) var losses: [Loss] = []
  /// The outcome of the procedure that it calls.
  private(set) var outcome: CallOutcome?
  /// True after the server has lost the history with its decision.
  private var isForgotten = false

  /// True if the server has decided it, in its present history.
  var isDecided: Bool { verdicts != nil && !isForgotten }

  /// A part of the change set that has no effect.
  struct Loss: Hashable {
    let uuid: String
    /// The property; nil if the part is an addition.
    let property: String?
    let isRejected: Bool
    /// The index of the fragment that it is a part of, and of the one whose rejection has led to its own.
    var position: Int?
    var cause: Int?
  }

  /// Takes the server's decision.
  func decide(_ verdicts: [Bool], losing losses: [Loss]) {
    (self.verdicts, self.losses, isForgotten) = (verdicts, losses, false)
    if verdicts.contains(true) { acceptances += 1 }
  }

  /// Takes the server's decision on a call.
  func decide(_ verdicts: [Bool], outcome: CallOutcome?, hasSucceeded: Bool) {
    (self.verdicts, self.outcome, isForgotten) = (verdicts, outcome, false)
    if hasSucceeded { acceptances += 1 }
  }

  /// Returns the sequence that its message has to name as seen, if its client knows the server's history `epoch`:
  /// the one that the client had reached when it made the change set, or 0 if it had no state. Nil if the change
  /// set overwrites nothing, or was made in another history.
  func seen(in epoch: String?) -> Int? {
    guard intents.contains(where: { $0.isAddition ? !$0.known.isEmpty : !$0.values.isEmpty }) else {
      return nil
    }
    guard let basis else { return 0 }
    return basis.epoch == epoch ? basis.sequence : nil
  }

  /// All parts of it, as rejected.
  var allLosses: [Loss] {
    intents.flatMap { intent -> [Loss] in
      let properties: [String?] =
        intent.isAddition ? [nil] : Array(intent.values.keys) + Array(intent.operations.keys)
      return properties.map { Loss(uuid: intent.uuid, property: $0, isRejected: true) }
    }
  }

  /// Forgets the server's decision, which is lost with its history. The client may still know of it.
  func forget() { (acceptances, isForgotten) = (0, true) }

  init(
    client: Int?, place: Int, id: UUID, isAtomic: Bool, isCall: Bool = false,
    fragments: [SyncFragment]
  ) {
    self.isAtomic = isAtomic
    self.isCall = isCall
    self.client = client
    self.place = place
    self.id = id
    let meanings = fragments.map { fragment in
      let json = PlainJSON(fragment)
      return Intent(
        uuid: json["uuid"]?.text ?? "", model: fragment.uuid,
        className: json["clsName"]?.text ?? "",
        isAddition: json["type"]?.text == "add", values: json["properties"]?.members ?? [:],
        known: json["known"]?.members ?? [:],
        operations: json["operations"]?.members ?? [:])
    }
    (intents, guesses) = isCall ? ([], meanings) : (meanings, [])
    additions = Set(intents.lazy.filter(\.isAddition).map(\.uuid))
  }

  /// Returns true if the change set takes a model out of one collection and puts it where another property
  /// holds it. That has no effect if another client has moved the model before, or if the server rejects the
  /// new holder. A property that the server does not know may hold each model that it names.
  func moves(_ element: String, _ kinds: (String) -> [String: PropertyKind]) -> Bool {
    let steps = intents.flatMap { $0.operations.values.flatMap(\.elements) }
    guard steps.contains(where: { $0["remove"]?.text == element }) else { return false }
    return steps.contains { $0["insert"]?.text == element }
      || intents.contains { intent in
        intent.values.contains { name, value in
          let kinds = kinds(intent.className)
          if kinds.contains(where: { $1 == .entries && PropertyKind.isEntry(name, of: $0) }) {
            return value.text == element
          }
          return switch kinds[name] {
          case .reference: value.text == element
          case .collection: value.texts.contains(element)
          case nil: value.text == element || value.texts.contains(element)
          default: false
          }
        }
      }
  }

  /// Returns true if a message with these fragments carries the change set. They may name the root by another
  /// UUID than `ownRoot`.
  func isCarried(by fragments: [PlainJSON], ownRoot: String) -> Bool {
    if isCall { return true }
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
  /// Creates the JSON of a fragment, as it is written.
  init(_ fragment: SyncFragment) {
    var bytes: [UInt8] = []
    fragment.write(to: &bytes)
    self = PlainJSON(bytes) ?? .null
  }

  /// The model that a step of a collection is about; nil for other steps.
  var element: String? { (self["insert"] ?? self["remove"] ?? self["move"])?.text }
}
