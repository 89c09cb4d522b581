import Foundation
import Jetstream

/// The models of a tentative scope by UUID, in the order in which they were asked for.
///
/// Few are compared one by one. Many have a hash table, with linear probing, that spends less on hashing a UUID than a
/// dictionary does.
struct TentativeModels {
  private struct Slot {
    /// The hash of the model's UUID. Its low bits name the slot where it belongs.
    var hash: UInt32 = 0
    /// The index of the model; -1 in an empty slot.
    var index: Int32 = -1
  }

  /// The number of models that need no table.
  private static let fewModels = 4
  private static let hash = UUIDHash()

  /// The first model. Mostly a change set is about one: then there is no array.
  private var first: TentativeModel?
  private var others: ContiguousArray<TentativeModel> = []
  /// The hashes of the UUIDs of all models; empty as long as there is no table.
  private var hashes: ContiguousArray<UInt32> = []
  private var slots: ContiguousArray<Slot> = []

  /// Makes a list with room for a number of models.
  init(capacity: Int) {
    if capacity > 1 { others.reserveCapacity(capacity - 1) }
    if capacity > Self.fewModels { makeTable(for: capacity) }
  }

  var count: Int { first == nil ? 0 : 1 + others.count }

  /// The model that was added as the first, the second and so on.
  subscript(index: Int) -> TentativeModel { index == 0 ? first! : others[index - 1] }

  /// The model with a UUID; nil if there is none. Cost: O(1) on average.
  subscript(uuid: UUID) -> TentativeModel? {
    if slots.isEmpty {
      guard let first else { return nil }
      if first.uuid == uuid { return first }
      for index in others.indices where others[index].uuid == uuid { return others[index] }
      return nil
    }
    let (hash, mask) = (Self.hash(uuid), slots.count - 1)
    var at = Int(hash) & mask
    while slots[at].index >= 0 {
      let slot = slots[at]
      if slot.hash == hash {
        let model = self[Int(slot.index)]
        if model.uuid == uuid { return model }
      }
      at = (at + 1) & mask
    }
    return nil
  }

  /// Adds a model whose UUID no other one has. Cost: O(1) on average.
  mutating func append(_ model: TentativeModel) {
    if first == nil { first = model } else { others.append(model) }
    if !slots.isEmpty { hashes.append(Self.hash(model.uuid)) }
    if slots.isEmpty ? count > Self.fewModels : count * 4 > slots.count * 3 {
      makeTable(for: count * 2)
    } else if !slots.isEmpty {
      place(count - 1)
    }
  }

  private mutating func makeTable(for capacity: Int) {
    var size = 16
    while capacity * 4 > size * 3 { size *= 2 }
    slots = ContiguousArray(repeating: Slot(), count: size)
    hashes.reserveCapacity(capacity)
    for index in hashes.count..<count { hashes.append(Self.hash(self[index].uuid)) }
    for index in 0..<count { place(index) }
  }

  private mutating func place(_ index: Int) {
    let (hash, mask) = (hashes[index], slots.count - 1)
    var at = Int(hash) & mask
    while slots[at].index >= 0 { at = (at + 1) & mask }
    slots[at] = Slot(hash: hash, index: Int32(index))
  }
}
