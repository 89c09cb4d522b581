import Foundation
import Jetstream

/// The models to which the root leads once a submission is applied without its lost moves.
struct MoveReach {
  /// A model that a submission takes out of some collections and puts into others.
  struct Move {
    var sources: Set<PropertyKey> = []
    var targets: Set<PropertyKey> = []
    /// True if a rejected fragment was to put the model somewhere.
    var isTargetRejected = false
  }

  /// The number of candidates up to which each is searched for by itself, until the root is found: a model may have a great
  /// many others above it. For more candidates, all models above them are looked at, but each once.
  static let few = 16

  private let content: any HostedContent
  private let moves: [UUID: Move]
  /// The properties that the submission gives values, and the models that hold others by these values.
  private var assigned: Set<PropertyKey> = []
  private var holders: [UUID: [UUID]] = [:]

  /// - Parameter check: knows the classes of the models that `fragments` change.
  init(of moves: [UUID: Move], by fragments: [SyncFragment], in check: FragmentValidator) {
    (content, self.moves) = (check.content, moves)
    for fragment in fragments {
      check.forEachHolding(in: fragment) { key, models in
        assigned.insert(PropertyKey(uuid: fragment.uuid, name: key))
        for uuid in models { holders[uuid, default: []].append(fragment.uuid) }
      }
    }
  }

  /// Returns true if the submission gives a model to a property as its value, or as a part of it.
  func isAssigned(_ uuid: UUID) -> Bool { holders[uuid] != nil }

  /// Adds the moves of those `candidates` to `lost` that the root would not lead to.
  ///
  /// The order of the candidates is fixed so that equal servers decide alike. It does not matter to those that are reached:
  /// what leads to them is reached itself, and so is not lost later. Cost: O(n) in the models above the candidates.
  ///
  /// - Parameter few: the number of candidates up to which each is searched for by itself.
  func findLost(among candidates: Set<UUID>, _ lost: inout Set<UUID>, few: Int = Self.few) {
    let open = candidates.subtracting(lost).sorted { $0.wireText < $1.wireText }
    if open.count > few { return flood(to: open, &lost) }
    for uuid in open where !isReached(uuid, without: lost) { lost.insert(uuid) }
  }

  /// Returns the models that would hold a model.
  private func models(holding uuid: UUID, isLost: Bool) -> [UUID] {
    let move = isLost ? nil : moves[uuid]
    var result = holders[uuid] ?? []
    if let move { result += move.targets.map(\.uuid) }
    for link in content.model(uuid).map({ content.holders(of: $0) }) ?? [] {
      if move?.sources.contains(link) != true, !assigned.contains(link) { result.append(link.uuid) }
    }
    return result
  }

  private func isReached(_ uuid: UUID, without lost: Set<UUID>) -> Bool {
    guard let root = content.root?.uuid else { return false }
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
    if let root = content.root?.uuid { reach(root) }
    for uuid in candidates where !reached.contains(uuid) {
      lost.insert(uuid)
      if models(holding: uuid, isLost: true).contains(where: reached.contains) { reach(uuid) }
    }
  }
}
