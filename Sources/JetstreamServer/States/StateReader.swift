import Foundation
import Jetstream

/// Reads the full state of a scope, one part at a time, while the scope goes on changing.
///
/// Other work gets its turn between two parts. Models that change, come or go are noted, and read again when a copy is
/// made, so that all parts of a copy show the scope at one sequence. A reader that has read everything once keeps up
/// with the scope in the same way: a copy costs what has changed since the last one.
struct StateReader {
  let root: UUID
  private let content: any HostedContent
  private let partBytes: Int
  /// The parts that are full, or that a copy contains.
  private var parts: [StatePart] = []
  /// The models of the next part.
  private var building: [SyncFragment] = []
  private var buildingBytes = 0
  /// The parts that contain the models that were read, by UUID.
  private var places: [UUID: Int] = [:]
  /// The models whose turn comes, the last one first.
  private var open: [UUID]
  /// The models that were noted, each once.
  private var changed = UUIDList()
  /// The models of unknown classes as the last copy has them.
  private var unknown: UnknownParts

  /// - Parameter partBytes: the approximate size of a part, which has at least one model.
  init(_ content: any HostedContent, root: UUID, partBytes: Int) {
    (self.content, self.root, self.partBytes) = (content, root, partBytes)
    open = [root]
    unknown = UnknownParts(bytes: partBytes)
  }

  /// True if every model was read once.
  var hasReadAll: Bool { open.isEmpty }

  /// Notes that a model was changed, or has come or gone.
  mutating func note(_ uuid: UUID) { changed.insert(uuid) }

  /// Notes that models have come.
  mutating func note(all uuids: [UUID]) {
    // Otherwise each call could cost O(n) in all that were noted.
    if uuids.count > changed.count { changed.reserve(changed.count + uuids.count) }
    for uuid in uuids { changed.insert(uuid) }
  }

  /// Reads on until a part is full, and returns it; nil once every model was read. Cost: O(size of a part).
  mutating func readPart() -> StatePart? {
    while let uuid = open.popLast() {
      // A model that has gone meanwhile was noted.
      guard places[uuid] == nil, let model = content.sharedModel(uuid) else { continue }
      let full = add(fragment(of: model))
      let bottom = open.count
      var children: [UUID] = []
      content.forEachChild(of: model) { children.append($0) }
      open += children
      open[bottom...].reverse()
      if let full { return full }
    }
    return nil
  }

  /// Returns the state at `sequence`, which is the sequence of the content. Everything must have been read, and the
  /// app's changes must be sealed. Cost: O(size of the parts with models that were noted), and O(n) in the values of models
  /// of unknown classes, which are looked through for what they refer to.
  mutating func copy(at sequence: Int) -> StateCopy {
    precondition(hasReadAll, "A copy has all models.")
    seal()
    let noted = Array(changed.elements)
    readChanged()
    seal()
    var copied = parts.filter { !$0.fragments.isEmpty }
    copied += unknown.parts(of: content, changed: noted)
    return StateCopy(sequence: sequence, root: root, parts: copied)
  }

  /// True if there are many more parts than the models take, since these were changed and removed: it is better to read
  /// all of them anew.
  var isScattered: Bool {
    parts.count > 8 + 4 * parts.reduce(0) { $0 + $1.bytes } / max(partBytes, 1)
  }

  /// Reads the models that were noted, and those that have come below them.
  private mutating func readChanged() {
    // For each part, the fragments that take the place of earlier ones; nil for models that have gone.
    var updates: [Int: [UUID: SyncFragment?]] = [:]
    var at = 0
    while at < changed.count {
      let uuid = changed.elements[at]
      at += 1
      guard let model = content.sharedModel(uuid) else {
        if let place = places.removeValue(forKey: uuid) {
          updates[place, default: [:]].updateValue(nil, forKey: uuid)
        }
        continue
      }
      if let place = places[uuid] {
        updates[place, default: [:]].updateValue(fragment(of: model), forKey: uuid)
      } else {
        _ = add(fragment(of: model))
      }
      content.forEachChild(of: model) { child in
        if places[child] == nil { note(child) }
      }
    }
    for (place, fragments) in updates.sorted(by: { $0.key < $1.key }) {
      replace(place, by: fragments)
    }
    changed = UUIDList()
  }

  /// Replaces fragments of a part. One that has become too large hands some of its models on.
  private mutating func replace(_ place: Int, by updates: [UUID: SyncFragment?]) {
    var kept: [SyncFragment] = []
    var more: [SyncFragment] = []
    var size = 0
    for fragment in parts[place].fragments {
      guard let fragment = updates[fragment.uuid] ?? fragment else { continue }
      size += fragment.roughSize
      if kept.isEmpty || size <= 2 * partBytes {
        kept.append(fragment)
      } else {
        more.append(fragment)
      }
    }
    parts[place] = StatePart(kept)
    for fragment in more { _ = add(fragment) }
  }

  private func fragment(of model: any HostedModel) -> SyncFragment {
    content.fragment(of: model, model.uuid == root ? .change : .add)
  }

  /// Adds a model to the next part. Returns the part before it if that is full.
  private mutating func add(_ fragment: SyncFragment) -> StatePart? {
    let size = fragment.roughSize
    let isFull = !building.isEmpty && buildingBytes + size > partBytes
    if isFull { seal() }
    building.append(fragment)
    buildingBytes += size
    places[fragment.uuid] = parts.count
    return isFull ? parts.last : nil
  }

  /// Ends the part to which models are added. It becomes a part of the last one if there is room.
  private mutating func seal() {
    if building.isEmpty { return }
    if let last = parts.last, last.bytes + buildingBytes <= partBytes {
      for fragment in building { places[fragment.uuid] = parts.count - 1 }
      parts[parts.count - 1] = StatePart(last.fragments + building)
    } else {
      parts.append(StatePart(building))
    }
    (building, buildingBytes) = ([], 0)
  }
}

extension StateReader {
  /// Describes what was read and is out of date without a note of it, a line for each; for tests. The app's changes must
  /// be sealed. Cost: O(n).
  func checkInvariants() -> [String] {
    var state: [UUID: SyncFragment] = [:]
    for fragment in content.sharedState() { state[fragment.uuid] = fragment }
    let read = parts.flatMap(\.fragments) + building
    var problems: [String] = []
    for fragment in read where !changed.contains(fragment.uuid) {
      if state[fragment.uuid] != fragment {
        problems.append("the state was read with \(fragment.json.text), which is out of date")
      }
    }
    if Set(read.map(\.uuid)) != Set(places.keys) || read.count != places.count {
      problems.append("\(read.count) models were read, at \(places.count) places")
    }
    if hasReadAll {
      let due = due
      let unknown = content.unknownModelUUIDs()
      for uuid in state.keys
      where places[uuid] == nil && !due.contains(uuid) && !unknown.contains(uuid) {
        problems.append("the model \(uuid.wireText) was not read")
      }
    }
    problems += unknown.checkInvariants(content) { changed.contains($0) }
    return problems.sorted()
  }

  /// The models that the next copy reads: those that were noted, and those below them that were not read yet. A model that
  /// moves below one that was read, before its own turn has come, is only found there.
  private var due: Set<UUID> {
    var result = Set(changed.elements)
    var open = changed.elements
    while let uuid = open.popLast() {
      guard let model = content.sharedModel(uuid) else { continue }
      content.forEachChild(of: model) { child in
        if places[child] == nil, result.insert(child).inserted { open.append(child) }
      }
    }
    return result
  }
}
