import Foundation

@testable import Jetstream

/// Comparing what observers were told at once with the reference.
extension Forest {
  func checkImmediate(_ watcher: ForestWatcher) {
    let log = watcher.log
    defer {
      log.events = []
      log.values = []
      log.mistakes = []
    }
    told += log.events.count + log.values.count
    for mistake in log.mistakes { fail("\(watcher.name): \(mistake)") }
    guard watcher.isAnchored(in: reference), !watcher.isOver else {
      if watcher.isCutOff, isNested { return checkPart(watcher) }
      return expect(
        log.events.isEmpty && log.values.isEmpty,
        "\(watcher.name) is over and was told \(log.events) \(log.values)")
    }
    let isMuted = muted.contains { $0 === watcher }
    if case .rows = watcher.kind { return }
    if case .compositeAtOnce = watcher.kind { return checkValues(watcher, isMuted) }
    let content = ListKey.allCases.filter(watcher.isToldSteps)
    if isMuted {
      expect(log.events.isEmpty, "\(watcher.name) is left out and was told \(log.events)")
      for key in ListKey.allCases { log.content[key] = reference.nodes[watcher.node]!.list(key) }
      return
    }
    for key in content {
      if isNested { log.content[key] = reference.nodes[watcher.node]!.list(key) }
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
      default:
        isNested ? events.map(\.description).sorted() : events.map(\.description)
      }
    }
    if watcher.isNewborn { return checkPart(watcher) }
    if isForetold {
      let expected = words(reference.events.filter(watcher.isTold))
      expect(
        words(log.events) == expected,
        "\(watcher.name) was told \(words(log.events)) instead of \(expected)")
    } else {
      checkChain(watcher)
    }
  }

  /// Who came or went within a step is told a part of what happened in it.
  private func checkPart(_ watcher: ForestWatcher) {
    var open = reference.events.filter(watcher.isTold)
    for event in watcher.log.events {
      let place = open.firstIndex(of: event)
      expect(place != nil, "\(watcher.name) came or went, and was told \(event)")
      if let place { open.remove(at: place) }
    }
  }

  /// An observer of a composite is told each value once, on the way from the last one to this one.
  private func checkValues(_ watcher: ForestWatcher, _ isMuted: Bool) {
    let values = watcher.log.values
    let now = watcher.value(reference)
    defer { watcher.last = now }
    if isMuted {
      return expect(values.isEmpty, "\(watcher.name) is left out and was told \(values)")
    }
    var last = watcher.last
    for (old, new) in values {
      expect("\(old)" == last && old != new, "\(watcher.name) was told \(values) after \(last)")
      last = "\(new)"
    }
    expect(last == now, "\(watcher.name) was told \(values), where it is \(now)")
    let changes = reference.events.count
    expect(
      !isForetold || values.count <= changes,
      "\(watcher.name) was told \(values) by \(changes) events")
  }

  /// Where the steps between are not foretold, what was told has to lead from the state before to the
  /// state now, with no step that leads nowhere.
  func checkChain(_ watcher: ForestWatcher) {
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
}
