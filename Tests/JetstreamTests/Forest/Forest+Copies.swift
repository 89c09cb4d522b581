import Foundation

@testable import Jetstream

/// Models that come and go on their own.
extension Forest {
  func performDrop(_ id: Int) {
    let parents = reference.parents
    guard parents[id] == nil, reference.roots[0] != id, reference.roots[1] != id else { return }
    // With it goes what nothing else holds, unless there are cycles in that: these would stay.
    var gone: Set<Int> = [id]
    var isGrowing = true
    while isGrowing {
      isGrowing = false
      for node in reference.reach(id).sorted()
      where !gone.contains(node) && node != reference.roots[0] && node != reference.roots[1] {
        if parents[node]!.allSatisfy({ gone.contains($0.parent) }),
          !gone.contains(where: { reference.reach(node).contains($0) })
        {
          gone.insert(node)
          isGrowing = true
        }
      }
    }
    // What scopes and observers keep for the next change set or tick is let go of.
    flush()
    var after = reference
    after.drop(gone)
    for watcher in watchers where !watcher.isAnchored(in: after) { watcher.forget() }
    let doomed = gone.sorted().map { Sight(plant: plants[$0], id: $0) }
    order.removeAll(where: gone.contains)
    for node in gone { plants[node] = nil }
    for one in doomed where one.plant != nil { fail("#\(one.id) is still alive") }
    if let saved, gone.contains(saved.root) { self.saved = nil }
    reference.drop(gone)
    reference.forgetSilently()
  }

  func performCopy(_ id: Int, _ keepingUUIDs: Bool) {
    let copy = plants[id]!.snapshot().makeModel(keepingUUIDs: keepingUUIDs)
    // The copies get numbers in the order in which the originals are found.
    var copies: [Int: Plant] = [id: copy]
    var open = [id]
    var next = 0
    while next < open.count {
      let (original, twin) = (open[next], copies[open[next]]!)
      next += 1
      let held = plants[original]!.held
      expect(held.count == twin.held.count, "the copy of #\(original) holds something else")
      for (child, childTwin) in zip(held, twin.held) {
        let child = self.id(of: child)
        if let known = copies[child] {
          expect(known === childTwin, "the copy of #\(original) is shaped otherwise")
        } else {
          copies[child] = childTwin
          open.append(child)
        }
      }
    }
    var numbers: [Int: Int] = [:]
    for original in open {
      let twin = copies[original]!
      expect(plants.values.allSatisfy { $0 !== twin }, "the copy of #\(original) is no copy")
      twin.friend = nil
      let number = self.id(of: twin)
      numbers[original] = number
      adopt(twin, number)
    }
    for original in open {
      var node = reference.nodes[original]!
      expect((copies[original]!.uuid == node.uuid) == keepingUUIDs, "a UUID was not kept, or was")
      node.uuid = copies[original]!.uuid
      node.friend = nil
      node.friendNode = nil
      node.references = node.references.mapValues { numbers[$0]! }
      node.lists = node.lists.mapValues { $0.map { numbers[$0]! } }
      reference.nodes[numbers[original]!] = node
    }
  }
}
