import Foundation
import Jetstream

/// The models of unknown classes in the full state of a scope, in parts that one copy shares with the next.
///
/// A model is among them while something refers to it. The scope does not tell when that begins or ends, so each copy
/// compares the models that there are with those that were read. Only models that have changed, come or gone are read, and
/// only their parts are made anew.
struct UnknownParts {
  private let bytes: Int
  private var parts: [StatePart] = []
  /// The part that contains each model.
  private var places: [UUID: Int] = [:]

  /// - Parameter bytes: the approximate size of a part, which has at least one model.
  init(bytes: Int) { self.bytes = bytes }

  /// Returns the parts with all models of unknown classes that `content` has by now.
  ///
  /// - Parameter changed: the models that were noted since the last time, among others.
  mutating func parts(of content: any HostedContent, changed: [UUID]) -> [StatePart] {
    if places.isEmpty, !content.hasUnknownModels { return [] }
    let models = content.unknownModelUUIDs()
    // For each part, the fragments that take the place of earlier ones; nil for models that have gone.
    var updates: [Int: [UUID: SyncFragment?]] = [:]
    for uuid in changed where models.contains(uuid) {
      guard let place = places[uuid] else { continue }
      updates[place, default: [:]].updateValue(content.unknownModel(uuid), forKey: uuid)
    }
    for (uuid, place) in places where !models.contains(uuid) {
      places[uuid] = nil
      updates[place, default: [:]].updateValue(nil, forKey: uuid)
    }
    var added: [SyncFragment] = []
    for (place, fragments) in updates.sorted(by: { $0.key < $1.key }) {
      added += replace(place, by: fragments)
    }
    if models.count > places.count {
      added += models.filter { places[$0] == nil }.sorted(by: <).compactMap(content.unknownModel)
    }
    add(added)
    // Those that were emptied, and many small ones, would cost each copy that follows.
    if parts.count > 8 + 4 * parts.reduce(0, { $0 + $1.bytes }) / max(bytes, 1) { join() }
    return parts.filter { !$0.fragments.isEmpty }
  }

  /// Describes what was read and is out of date without a note of it, a line for each; for tests.
  func checkInvariants(_ content: any HostedContent, isChanged: (UUID) -> Bool) -> [String] {
    let read = parts.flatMap(\.fragments)
    var problems = read.compactMap { fragment -> String? in
      guard !isChanged(fragment.uuid), let known = content.unknownModel(fragment.uuid),
        known != fragment
      else { return nil }
      return "an unknown model was read with \(fragment.json.text), which is out of date"
    }
    if Set(read.map(\.uuid)) != Set(places.keys) || read.count != places.count {
      problems.append("\(read.count) unknown models were read, at \(places.count) places")
    }
    return problems
  }

  /// Replaces fragments of a part. Returns those for which it has become too small.
  private mutating func replace(_ place: Int, by updates: [UUID: SyncFragment?]) -> [SyncFragment] {
    var (kept, more, size): ([SyncFragment], [SyncFragment], Int) = ([], [], 0)
    for fragment in parts[place].fragments {
      guard let fragment = updates[fragment.uuid] ?? fragment else { continue }
      size += fragment.roughSize
      if kept.isEmpty || size <= 2 * bytes {
        kept.append(fragment)
      } else {
        more.append(fragment)
        places[fragment.uuid] = nil
      }
    }
    parts[place] = StatePart(kept)
    return more
  }

  /// Adds models in parts of their own. The first ones become a part of the last one if there is room.
  private mutating func add(_ models: [SyncFragment]) {
    var (building, size): ([SyncFragment], Int) = ([], 0)
    func seal() {
      if building.isEmpty { return }
      if let last = parts.last, last.bytes + size <= bytes {
        parts[parts.count - 1] = StatePart(last.fragments + building)
      } else {
        parts.append(StatePart(building))
      }
      for fragment in building { places[fragment.uuid] = parts.count - 1 }
      (building, size) = ([], 0)
    }
    for model in models {
      if size + model.roughSize > bytes { seal() }
      building.append(model)
      size += model.roughSize
    }
    seal()
  }

  /// Makes all parts anew, as few as there can be.
  private mutating func join() {
    let all = parts.flatMap(\.fragments)
    (parts, places) = ([], [:])
    add(all)
  }
}
