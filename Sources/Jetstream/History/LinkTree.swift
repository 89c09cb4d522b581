import Foundation

/// The models to which a root leads, while the links between models come and go.
///
/// Of each model that the root leads to, one link is noted by which it does: together, these links are a tree. Another
/// link can go without effect. A model that loses its link of the tree is loose: the next call of
/// ``takeUnreached(links:)`` looks for another link to it that leads up to the root. So a model that has moved costs as
/// much as it lies deep, and one that was removed as much as is below it, however many other models there are.
struct LinkTree {
  /// A place that can hold models: a property of a model.
  struct Place: Hashable {
    let holder: UUID
    let key: String
  }

  private struct Node {
    /// The places that hold the model.
    var places: Set<Place> = []
    /// The place in the tree; nil if the model is loose.
    var above: Place?
    /// The place that has come to hold the model last: where it was moved to.
    var newest: Place?
  }

  private let root: UUID
  private var nodes: [UUID: Node] = [:]
  private var loose: Set<UUID> = []
  /// The number of places up to which another one is looked for before all that is below a loose model is.
  private static let fewPlaces = 8

  init(root: UUID) { self.root = root }

  /// True if there may be models that the root does not lead to.
  var hasLoose: Bool { !loose.isEmpty }

  /// Notes a model, which has a place or not.
  mutating func add(_ uuid: UUID) {
    guard uuid != root, nodes[uuid] == nil else { return }
    nodes[uuid] = Node()
    loose.insert(uuid)
  }

  /// Notes that a place holds a model, or names one that may come.
  mutating func link(_ place: Place, to uuid: UUID) {
    guard uuid != root else { return }
    add(uuid)
    nodes[uuid]!.places.insert(place)
    nodes[uuid]!.newest = place
  }

  /// Notes that a place does not hold a model any more.
  mutating func unlink(_ place: Place, from uuid: UUID) {
    guard nodes[uuid]?.places.remove(place) != nil, nodes[uuid]!.above == place else { return }
    nodes[uuid]!.above = nil
    loose.insert(uuid)
  }

  /// Takes out the models that the root does not lead to, and returns them. The caller unlinks what they hold.
  ///
  /// - Parameter links: returns what a model holds, by the keys of its places.
  mutating func takeUnreached(links: (UUID) -> [(key: String, uuids: [UUID])]) -> [UUID] {
    for uuid in loose where loose.contains(uuid) { attach(uuid) }
    if loose.isEmpty { return [] }
    var below = takeBelowLoose(links)
    // Rows that are held from outside lead to the rest of those that stay.
    var open: [UUID] = []
    for uuid in below {
      guard let place = nodes[uuid]!.places.first(where: { isReached($0.holder) }) else { continue }
      nodes[uuid]!.above = place
      open.append(uuid)
    }
    while let uuid = open.popLast() {
      below.remove(uuid)
      for (key, uuids) in links(uuid) {
        for held in uuids where nodes[held]?.above == nil && below.contains(held) {
          nodes[held]!.above = Place(holder: uuid, key: key)
          open.append(held)
        }
      }
    }
    for uuid in below { nodes[uuid] = nil }
    return Array(below)
  }

  private func isReached(_ uuid: UUID) -> Bool { uuid == root || nodes[uuid]?.above != nil }

  /// Takes the loose models, and all that the tree has below them, out of the tree.
  private mutating func takeBelowLoose(
    _ links: (UUID) -> [(key: String, uuids: [UUID])]
  ) -> Set<UUID> {
    var open = Array(loose)
    var result = loose
    loose = []
    while let uuid = open.popLast() {
      for (_, uuids) in links(uuid) {
        for held in uuids where nodes[held]?.above?.holder == uuid {
          nodes[held]!.above = nil
          result.insert(held)
          open.append(held)
        }
      }
    }
    return result
  }

  /// Gives a loose model another place in the tree, if a few places tell of one.
  private mutating func attach(_ uuid: UUID) {
    let node = nodes[uuid]!
    if let newest = node.newest, node.places.contains(newest), attach(uuid, to: newest) { return }
    for place in node.places.prefix(Self.fewPlaces) where attach(uuid, to: place) { return }
  }

  /// Puts a loose model into a place if that is reached, or would be if the loose models above it were in their newest
  /// places. Then they are.
  private mutating func attach(_ uuid: UUID, to place: Place) -> Bool {
    var above = [uuid: place]
    var holder = place.holder
    while holder != root {
      guard let node = nodes[holder] else { return false }
      if let next = node.above {
        holder = next.holder
      } else {
        guard above[holder] == nil, let newest = node.newest, node.places.contains(newest) else {
          return false
        }
        above[holder] = newest
        holder = newest.holder
      }
    }
    for (uuid, place) in above {
      nodes[uuid]!.above = place
      loose.remove(uuid)
    }
    return true
  }
}
