import Foundation

@testable import Jetstream

/// Comparing the models with the reference.
extension Forest {
  /// What the models say.
  func read(_ id: Int) -> ForestReference.Node {
    let plant = plants[id]!
    var node = ForestReference.Node(isBush: plant is Bush, uuid: plant.uuid)
    node.plain = plant.plain
    for key in ReferenceKey.allCases { node.references[key] = plant[key].map(self.id) }
    for key in ListKey.allCases {
      let list = plant[key].map(self.id)
      if !list.isEmpty { node.lists[key] = list }
    }
    switch plant.$friend {
    case .none: break
    case .loaded(let friend): node.friend = friend.uuid
    case .missing(let uuid): node.friend = uuid
    }
    if let old = reference.nodes[id], old.friend == node.friend { node.friendNode = old.friendNode }
    return node
  }

  /// After each change: the state, and everybody who is told at once.
  func checkStep() {
    adoptNew()
    checkNodes()
    checkScopes()
    for watcher in watchers { checkImmediate(watcher) }
    for event in reference.events {
      switch event {
      case .attached(let id, _), .detached(let id, _): came.insert(id)
      default: break
      }
    }
    watchers.removeAll { $0.isOver && !muted.contains($0) && $0.hasBeenQuiet() }
    if isForetold {
      let expected = reference.errors
      expect(errors == expected, "errors by scope: \(errors) instead of \(expected)")
    }
    errors = [:]
    reference.errors = [:]
    reference.events = []
    isForetold = true
    previous = reference
  }

  private func checkNodes() {
    let parents = reference.parents
    expect(
      Set(order) == Set(reference.nodes.keys),
      "there are other nodes than foretold: "
        + Set(order).symmetricDifference(reference.nodes.keys).map {
          "\($0) \(plants[$0]?.uuid.uuidString ?? "-")"
        }.joined(separator: ", "))
    for id in order {
      guard let expected = reference.nodes[id] else { continue }
      let plant = plants[id]!
      var actual = read(id)
      actual.friendNode = expected.friendNode
      var wanted = expected
      wanted.lists = wanted.lists.filter { !$0.value.isEmpty }
      expect(actual == wanted, "#\(id) is \(actual) instead of \(wanted)")
      expect(
        plant.friend.map(self.id) == reference.friend(of: id),
        "#\(id).friend is \(text(plant.friend as Any)) instead of "
          + reference.text(reference.friend(of: id)))
      for key in ListKey.allCases {
        let list = plant[key]
        expect(Set(list).count == list.count, "#\(id).\(key) holds somebody twice")
        expect(
          list.enumerated().allSatisfy { list.firstIndex(of: $1) == $0 && list[$0] === $1 },
          "#\(id).\(key) does not find what it holds")
        list.list.storage?.checkInvariants()
      }
      let links = plant.parents
        .map { ForestReference.Link(parent: self.id(of: $0.parent), key: $0.key) }.sorted()
      expect(
        links == parents[id] ?? [],
        "#\(id) has the parents \(links) instead of \(parents[id] ?? [])")
      let number = plant.scope.map(self.number)
      let scope = reference.scope(of: id)
      expect(
        number == scope, "#\(id) is in scope \(text(number as Any)), not \(text(scope as Any))")
      let isRoot = plant.scope?.root === plant
      expect(isRoot == reference.roots.values.contains(id), "#\(id) is a root: \(isRoot)")
      let scoped = scope == nil ? 0 : links.filter { reference.scope(of: $0.parent) != nil }.count
      expect(
        Int(plant.record?.scopedParents ?? 0) == scoped,
        "#\(id) counts \(plant.record?.scopedParents ?? 0) parents in scopes instead of \(scoped)")
    }
  }

  private func checkScopes() {
    for number in places.keys.sorted() {
      guard let scope = places[number]!.scope else {
        places[number] = nil
        continue
      }
      let members = reference.members[number] ?? []
      expect(number < 2, "scope \(number) is still there")
      expect(
        scope.root.map(id) == reference.roots[number],
        "the root of scope \(number) is \(text(scope.root as Any))")
      expect(scope.count == members.count, "scope \(number) counts \(scope.count) models")
      let models = scope.models.map(id).sorted()
      expect(models == members.sorted(), "scope \(number) has \(models), not \(members.sorted())")
      for member in members {
        guard let plant = plants[member] else { continue }
        expect(scope.model(plant.uuid) === plant, "scope \(number) does not find #\(member)")
        expect(scope.model(plant.uuid.uuidString) === plant, "no #\(member) by text")
      }
      expect(scope.model(Self.unknownUUID) == nil, "scope \(number) finds what does not exist")
    }
  }
}
