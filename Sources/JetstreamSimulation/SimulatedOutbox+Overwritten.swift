import Foundation
import Jetstream

/// The writes that a client should report as overwritten, computed from its log: from the change sets that it
/// has made and from what the server has sent it, in order.
extension SimulatedOutbox {
  /// A property that a set writes.
  private struct Key: Hashable {
    let uuid: String
    let property: String
  }

  private struct Write {
    let set: SubmittedSet
    let uuid: String
    let value: PlainJSON
    let place: Int
  }

  /// Returns the writes that others have overwritten without having seen them, except those that are settled or
  /// discarded.
  ///
  /// - Parameters:
  ///   - root: the UUID of the root.
  ///   - sets: the client's change sets, by id.
  ///   - kinds: returns the kinds of the properties of a class.
  ///   - defaultValue: returns the value of a property of a class that a full state leaves out.
  func overwritten(
    root: String, _ sets: [UUID: SubmittedSet],
    kinds: (String) -> [String: PropertyKind], defaultValue: (String, String) -> PlainJSON?
  ) -> [KnownLoss] {
    let ownRoot = ownRoot ?? ""
    var made: [Int: SubmittedSet] = [:]
    var open: [Int: SubmittedSet] = [:]
    var written: [Key: Write] = [:]
    var unplaced: [(SubmittedSet, [Bool])] = []
    var losses: [KnownLoss] = []

    func key(_ uuid: String, _ property: String) -> Key {
      Key(uuid: uuid == ownRoot ? root : uuid, property: property)
    }
    func note(_ set: SubmittedSet, _ verdicts: [Bool], at place: Int, in writes: inout [Key: Write])
    {
      for (intent, isAccepted) in zip(set.intents, verdicts) where isAccepted && !intent.isAddition
      {
        for (property, value) in intent.values {
          if case .merged? = kinds(intent.className)[property] { continue }
          // The last write is the one of the last set, in whatever order the client has learned of the decisions.
          let key = key(intent.uuid, property)
          if let last = writes[key], last.set.place > set.place { continue }
          let named = value.text == ownRoot ? .string(root) : value
          writes[key] = Write(set: set, uuid: intent.uuid, value: named, place: place)
        }
      }
    }
    func isPending(_ key: Key) -> Bool {
      open.values.contains { set in
        set.intents.contains {
          let uuid = $0.uuid == ownRoot ? root : $0.uuid
          return uuid == key.uuid && $0.values[key.property] != nil
        }
      }
    }
    func lose(_ write: Write, _ key: Key) {
      let loss = SubmittedSet.Loss(uuid: write.uuid, property: key.property, isRejected: false)
      losses.append(KnownLoss(set: write.set, loss: loss, ownRoot: ownRoot))
    }

    for (kind, json) in lines {
      let fragments = json["fragments"]?.elements ?? []
      switch kind.rawValue {
      case "set":
        guard let number = json["number"]?.whole,
          let set = json["id"]?.text.flatMap({ UUID(uuidString: $0) }).flatMap({ sets[$0] })
        else { continue }
        (made[number], open[number]) = (set, set)
        losses.settle(by: set, root: root)
      case "decided":
        guard let number = json["number"]?.whole, let set = made[number] else { continue }
        open[number] = nil
        let replies = json["fragmentReplies"]?.elements ?? []
        let verdicts = set.intents.indices.map { at in
          at < replies.count && (replies[at]["error"] ?? .null) == .null
        }
        if let place = json["sequence"]?.whole {
          note(set, verdicts, at: place, in: &written)
        } else if json["effective"] != nil {
          unplaced.append((set, verdicts))
        }
      case "confirmed":
        unplaced = []
        for fragment in fragments {
          for (property, value) in fragment["properties"]?.members ?? [:] {
            let key = key(fragment["uuid"]?.text ?? "", property)
            guard let write = written.removeValue(forKey: key), let seen = json["seen"]?.whole,
              write.place > seen, write.value != value, !isPending(key)
            else { continue }
            lose(write, key)
          }
        }
      case "base":
        for (set, verdicts) in unplaced { note(set, verdicts, at: 0, in: &written) }
        // Only writes whose place is unknown may have been overwritten, and only if no later write of its own has done it.
        let last = written.filter { $0.value.place == 0 }
        (written, unplaced) = ([:], [])
        for (key, write) in last where !isPending(key) {
          guard let model = fragments.first(where: { $0["uuid"]?.text == key.uuid }) else {
            continue
          }
          let value =
            model["properties"]?[key.property]
            ?? defaultValue(model["clsName"]?.text ?? "", key.property)
          if let value, value != write.value { lose(write, key) }
        }
      case "discarded":
        for name in json["conflicts"]?.elements ?? [] {
          losses.discard(
            set: name["changeSet"]?.text, model: name["model"]?.text,
            property: name["property"]?.text, root: root)
        }
      default: break
      }
    }
    return losses
  }
}
