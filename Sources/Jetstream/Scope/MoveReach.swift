import Foundation

/// The models to which the root leads once changes are made without the lost moves among them.
package struct MoveReach {
  /// A model that the changes take out of some collections and put into others.
  package struct Move {
    package var sources: Set<PropertyKey>
    package var targets: Set<PropertyKey>
    /// True if a rejected fragment was to put the model somewhere.
    package var isTargetRejected = false

    package init(sources: Set<PropertyKey> = [], targets: Set<PropertyKey> = []) {
      (self.sources, self.targets) = (sources, targets)
    }
  }

  /// Returns the models that the operations of the changes take out of collections or put into them.
  package static func moves(in changes: [SyncFragment]) -> [UUID: Move] {
    var moves: [UUID: Move] = [:]
    for fragment in changes {
      for entry in fragment.operations {
        let property = PropertyKey(uuid: fragment.uuid, name: entry.key)
        for operation in entry.operations {
          switch operation {
          case .remove(let uuid): moves[uuid, default: .init()].sources.insert(property)
          case .insert(let uuid, _): moves[uuid, default: .init()].targets.insert(property)
          case .move, .add: break
          }
        }
      }
    }
    return moves
  }

  /// The number of candidates up to which each is searched for by itself, until the root is found: a model may have a great
  /// many others above it. For more candidates, all models above them are looked at, but each once.
  package static let few = 16

  private let moves: [UUID: Move]
  private let root: UUID?
  /// Returns the synced properties that hold a model before the changes.
  private let properties: (UUID) -> [PropertyKey]
  /// The properties that the changes give values, and the models that hold others by these values.
  private var assigned: Set<PropertyKey> = []
  private var holders: [UUID: [UUID]] = [:]

  /// - Parameters:
  ///   - moves: the models that the operations of the changes take out of collections or put into them.
  ///   - root: the root of the content.
  ///   - properties: returns the synced properties that hold a model; none for a model that is not in the content.
  package init(
    of moves: [UUID: Move], root: UUID?, properties: @escaping (UUID) -> [PropertyKey]
  ) {
    (self.moves, self.root, self.properties) = (moves, root, properties)
  }

  /// Notes that the changes give a property a value that consists of these models.
  package mutating func assign(_ models: [UUID], to property: PropertyKey) {
    assigned.insert(property)
    for uuid in models { holders[uuid, default: []].append(property.uuid) }
  }

  /// Returns true if the changes give a model to a property as its value, or as a part of it.
  package func isAssigned(_ uuid: UUID) -> Bool { holders[uuid] != nil }

  /// Adds the moves of those `candidates` to `lost` that the root would not lead to.
  ///
  /// The order of the candidates is fixed so that equal servers decide alike. It does not matter to those that are reached:
  /// what leads to them is reached itself, and so is not lost later. Cost: O(n) in the models above the candidates.
  ///
  /// - Parameter few: the number of candidates up to which each is searched for by itself.
  package func findLost(among candidates: Set<UUID>, _ lost: inout Set<UUID>, few: Int = Self.few) {
    let open = candidates.subtracting(lost).sorted { $0.wireText < $1.wireText }
    if open.count > few { return flood(to: open, &lost) }
    for uuid in open where !isReached(uuid, without: lost) { lost.insert(uuid) }
  }

  /// Returns the models that would hold a model.
  private func models(holding uuid: UUID, isLost: Bool) -> [UUID] {
    let move = isLost ? nil : moves[uuid]
    var result = holders[uuid] ?? []
    if let move { result += move.targets.map(\.uuid) }
    for link in properties(uuid) {
      if move?.sources.contains(link) != true, !assigned.contains(link) { result.append(link.uuid) }
    }
    return result
  }

  private func isReached(_ uuid: UUID, without lost: Set<UUID>) -> Bool {
    var seen: Set<UUID> = [uuid]
    var open = [uuid]
    while let next = open.popLast() {
      if next == root { return true }
      for holder in models(holding: next, isLost: lost.contains(next))
      where seen.insert(holder).inserted { open.append(holder) }
    }
    return false
  }

  /// Goes from the candidates up to the root, and back from there.
  private func flood(to candidates: [UUID], _ lost: inout Set<UUID>) {
    /// The models that each one holds, as they are moved.
    var held: [UUID: [UUID]] = [:]
    /// The same for models whose moves are lost.
    var kept: [UUID: [UUID]] = [:]
    var seen = Set(candidates)
    let movable = seen
    var open = candidates
    while let next = open.popLast() {
      func note(_ isLost: Bool, _ below: inout [UUID: [UUID]]) {
        for holder in models(holding: next, isLost: isLost) {
          below[holder, default: []].append(next)
          if seen.insert(holder).inserted { open.append(holder) }
        }
      }
      if !lost.contains(next) { note(false, &held) }
      if lost.contains(next) || movable.contains(next) { note(true, &kept) }
    }
    var reached: Set<UUID> = []
    func reach(_ uuid: UUID) {
      var open = [uuid]
      reached.insert(uuid)
      while let next = open.popLast() {
        for child in held[next] ?? []
        where !lost.contains(child) && reached.insert(child).inserted { open.append(child) }
        for child in kept[next] ?? []
        where lost.contains(child) && reached.insert(child).inserted { open.append(child) }
      }
    }
    if let root { reach(root) }
    for uuid in candidates where !reached.contains(uuid) {
      lost.insert(uuid)
      if models(holding: uuid, isLost: true).contains(where: reached.contains) { reach(uuid) }
    }
  }
}
