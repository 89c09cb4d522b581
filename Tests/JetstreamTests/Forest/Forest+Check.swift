import Foundation

@testable import Jetstream

/// Comparing the models and what observers were told with the reference.
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
    expect(Set(order) == Set(reference.nodes.keys), "there are other nodes than foretold")
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
          list.enumerated().allSatisfy { list.index(of: $1) == $0 && list[$0] === $1 },
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
      expect(plant.isScopeRoot == (reference.roots.values.contains(id)), "#\(id).isScopeRoot")
      let scoped = scope == nil ? 0 : links.filter { reference.scope(of: $0.parent) != nil }.count
      expect(
        Int(plant.record?.scopedParents ?? 0) == scoped,
        "#\(id) counts \(plant.record?.scopedParents ?? 0) parents in scopes instead of \(scoped)")
    }
  }

  private func checkScopes() {
    for number in places.keys.sorted() {
      guard let scope = places[number]!.scope else {
        expect(!reference.owned.contains(number), "scope \(number) is gone")
        places[number] = nil
        continue
      }
      let members = reference.members[number] ?? []
      expect(number < 2 || reference.owned.contains(number), "scope \(number) is still there")
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

  // MARK: At once

  private func checkImmediate(_ watcher: ForestWatcher) {
    let log = watcher.log
    defer {
      log.events = []
      log.mistakes = []
    }
    told += log.events.count
    for mistake in log.mistakes { fail("\(watcher.name): \(mistake)") }
    guard reference.nodes[watcher.node] != nil, !watcher.isOver else {
      return expect(log.events.isEmpty, "\(watcher.name) is over and was told \(log.events)")
    }
    let isMuted = muted.contains { $0 === watcher }
    let content = ListKey.allCases.filter(watcher.isToldSteps)
    if isMuted {
      expect(log.events.isEmpty, "\(watcher.name) is left out and was told \(log.events)")
      for key in ListKey.allCases { log.content[key] = reference.nodes[watcher.node]!.list(key) }
      return
    }
    for key in content {
      let expected = reference.nodes[watcher.node]!.list(key)
      expect(
        log.content[key] ?? [] == expected,
        "\(watcher.name): the steps lead to \(log.content[key] ?? []) instead of \(expected)")
      log.content[key] = expected
    }
    // Nothing foretells in which order the properties of one model change.
    func words(_ events: [ForestEvent]) -> [String] {
      switch watcher.kind {
      case .anyProperty, .parents: events.map(\.description).sorted()
      default: events.map(\.description)
      }
    }
    if isForetold {
      let expected = words(reference.events.filter(watcher.isTold))
      expect(
        words(log.events) == expected,
        "\(watcher.name) was told \(words(log.events)) instead of \(expected)")
    } else {
      checkChain(watcher)
    }
  }

  /// Where the steps between are not foretold, what was told has to lead from the state before to the
  /// state now, with no step that leads nowhere.
  private func checkChain(_ watcher: ForestWatcher) {
    let id = watcher.node
    guard let old = previous.nodes[id] else { return }
    var values: [String: String] = [:]
    var isIn = previous.scope(of: id)
    var links: [ForestReference.Link: Int] = [:]
    for link in previous.parents[id] ?? [] { links[link, default: 0] += 1 }
    for event in watcher.log.events {
      expect(watcher.isTold(event), "\(watcher.name) was told \(event)")
      switch event {
      case .property(_, let key, let before, let after):
        if key != "friend" {
          expect(before == values[key] ?? previous.value(id, key), "\(watcher.name): \(event)")
          expect(before != after, "\(watcher.name): \(event)")
        }
        values[key] = after
      case .added(_, let parent, let key): links[.init(parent: parent, key: key), default: 0] += 1
      case .removed(_, let parent, let key): links[.init(parent: parent, key: key), default: 0] -= 1
      case .attached(_, let scope):
        expect(isIn == nil, "\(watcher.name): \(event)")
        isIn = scope
      case .detached(_, let scope):
        expect(isIn == scope, "\(watcher.name): \(event)")
        isIn = nil
      }
    }
    let keys = old.plain.texts.map(\.key) + ReferenceKey.allCases.map(\.rawValue)
    for key in keys + ListKey.allCases.map(\.rawValue) where watcher.isTold(of: key) {
      let now = reference.value(id, key)
      expect(
        values[key] ?? previous.value(id, key) == now,
        "\(watcher.name): \(values[key] ?? "nothing") was told last of \(key), which is \(now)")
    }
    switch watcher.kind {
    case .membership:
      expect(isIn == reference.scope(of: id), "\(watcher.name): \(watcher.log.events)")
    case .parents:
      var expected: [ForestReference.Link: Int] = [:]
      for link in reference.parents[id] ?? [] { expected[link, default: 0] += 1 }
      expect(links.filter { $0.value != 0 } == expected, "\(watcher.name): \(watcher.log.events)")
    default: break
    }
  }

  // MARK: In a tick

  /// After a tick: everybody who is told once in it.
  func checkDelivery() {
    var above: [Int: Set<Int>] = [:]
    for watcher in watchers {
      let log = watcher.log
      defer {
        log.told = []
        log.mistakes = []
      }
      told += log.told.count
      for mistake in log.mistakes { fail("\(watcher.name): \(mistake)") }
      guard reference.nodes[watcher.node] != nil, !watcher.isOver else {
        expect(log.told.isEmpty, "\(watcher.name) is over and was told \(log.told)")
        continue
      }
      let now = watcher.value(reference)
      let differs = watcher.last != now
      let isMuted = muted.contains { $0 === watcher }
      let old = watcher.last
      watcher.last = now
      if isMuted {
        expect(log.told.isEmpty, "\(watcher.name) is left out and was told \(log.told)")
        if case .difference(let key) = watcher.kind {
          log.rows = reference.nodes[watcher.node]!.list(key)
        }
        continue
      }
      var expected: [String] = []
      var mayAlso: [String] = []
      switch watcher.kind {
      case .change(let keys):
        let dirty = (reference.dirty[watcher.node] ?? [:])
          .filter { keys.isEmpty || keys.contains($0.key) }
        if dirty.values.contains(where: { $0 > watcher.since }) { expected = ["change"] }
        // A model remembers one moment for all of its changes: who came after the change of its own
        // property and before that of another one is told.
        if !dirty.isEmpty, isDirty(watcher.node, since: watcher.since) { mayAlso = ["change"] }
        if maybe.contains(watcher.node) { mayAlso = ["change"] }
      case .numberValue, .listValue, .referenceValue, .totalValue:
        if differs { expected = ["\(old) -> \(now)"] }
      case .total: if differs { expected = ["total"] }
      case .difference(let key):
        if differs { expected = ["difference"] }
        let content = reference.nodes[watcher.node]!.list(key)
        expect(log.rows == content, "\(watcher.name) has \(log.rows) instead of \(content)")
        log.rows = content
      case .tree:
        let below = above[watcher.node] ?? reference.reach(watcher.node)
        above[watcher.node] = below
        if below.contains(where: { isDirty($0, since: watcher.since) }) { expected = ["tree"] }
        if !below.isDisjoint(with: maybe) { mayAlso = ["tree"] }
      case .treeAt(let key):
        let own = reference.dirty[watcher.node]?[key.rawValue]
        if let own, own > watcher.since { expected = ["tree"] }
        for child in reference.nodes[watcher.node]!.list(key) {
          let below = reference.reach(child)
          if below.contains(where: { isDirty($0, since: watcher.since) }) { expected = ["tree"] }
          if !below.isDisjoint(with: maybe) { mayAlso = ["tree"] }
        }
        // As for property observers.
        if own != nil, isDirty(watcher.node, since: watcher.since) { mayAlso = ["tree"] }
        if maybe.contains(watcher.node) { mayAlso = ["tree"] }
      default: break
      }
      expect(
        log.told == expected || (expected.isEmpty && log.told == mayAlso),
        "\(watcher.name) was told \(log.told) in a tick instead of \(expected)")
    }
    reference.dirty = [:]
    maybe = []
  }

  private func isDirty(_ id: Int, since moment: Int) -> Bool {
    reference.dirty[id]?.values.contains { $0 > moment } ?? false
  }
}

extension ForestWatcher: Equatable {
  static func == (a: ForestWatcher, b: ForestWatcher) -> Bool { a === b }

  var name: String { "the observer of #\(node) (\(kind))" }

  func isToldSteps(of key: ListKey) -> Bool {
    switch kind {
    case .steps: true
    case .typedSteps(let own): own == key
    default: false
    }
  }

  /// Whether it is told changes of a property at once.
  func isTold(of key: String) -> Bool {
    switch kind {
    case .anyProperty: true
    case .number: key == "number"
    case .list(let own): key == own.rawValue
    case .reference(let own): key == own.rawValue
    default: false
    }
  }

  func isTold(_ event: ForestEvent) -> Bool {
    guard event.node == node else { return false }
    return switch event {
    case .property(_, let key, _, _): isTold(of: key)
    case .added, .removed: if case .parents = kind { true } else { false }
    case .attached, .detached: if case .membership = kind { true } else { false }
    }
  }

  /// Whether it has been watched for long enough after its end.
  func hasBeenQuiet() -> Bool {
    quietSteps += 1
    return quietSteps > 40
  }
}
