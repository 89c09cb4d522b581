import Foundation

@testable import Jetstream

/// Comparing what observers were told in a tick with the reference.
extension Forest {
  /// After a tick: everybody who is told once in it.
  ///
  /// Where observers have written, `start` is the reference as it was when the tick began.
  func checkDelivery(at start: ForestReference? = nil) {
    let reference = start ?? self.reference
    var above: [Int: Set<Int>] = [:]
    for watcher in watchers {
      let log = watcher.log
      defer {
        log.told = []
        log.updated = []
        log.mistakes = []
      }
      told += log.told.count
      for mistake in log.mistakes { fail("\(watcher.name): \(mistake)") }
      guard watcher.isAnchored(in: reference), !watcher.isOver else {
        let most = watcher.isCutOff && wrote ? 1 : 0
        expect(log.told.count <= most, "\(watcher.name) is over and was told \(log.told)")
        continue
      }
      if case .compositeAtOnce = watcher.kind { continue }
      if watcher.isNewborn {
        expect(
          log.told.isEmpty || (log.told == ["tree"] && hasElderTreeSignal(watcher)),
          "\(watcher.name) has just come and was told \(log.told)")
        continue
      }
      let now = watcher.value(reference)
      let differs = watcher.last != now
      let isMuted = muted.contains { $0 === watcher }
      let old = watcher.last
      if wrote, checkLoosely(watcher, at: now) { continue }
      watcher.last = now
      if isMuted {
        expect(log.told.isEmpty, "\(watcher.name) is left out and was told \(log.told)")
        switch watcher.kind {
        case .difference(let key): log.rows = reference.nodes[watcher.node]!.list(key)
        case .rows(let query): log.rows = query.rows(reference, watcher.node)
        default: break
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
        if !dirty.isEmpty, reference.isDirty(watcher.node, since: watcher.since) {
          mayAlso = ["change"]
        }
        if maybe.contains(watcher.node) { mayAlso = ["change"] }
      case .numberValue, .listValue, .referenceValue, .compositeValue:
        if differs { expected = ["\(old) -> \(now)"] }
      case .composite: if differs { expected = ["value"] }
      case .difference(let key):
        if differs { expected = ["difference"] }
        let content = reference.nodes[watcher.node]!.list(key)
        expect(log.rows == content, "\(watcher.name) has \(log.rows) instead of \(content)")
        log.rows = content
      case .tree, .treeSignal:
        let below = above[watcher.node] ?? reference.reach(watcher.node)
        above[watcher.node] = below
        if below.contains(where: { reference.isDirty($0, since: watcher.since) }) {
          expected = ["tree"]
        }
        if !below.isDisjoint(with: maybe) { mayAlso = ["tree"] }
        // Who listens after others hears what these waited for.
        if case .treeSignal = watcher.kind,
          below.contains(where: { reference.isDirty($0, since: 0) })
        {
          mayAlso = ["tree"]
        }
      case .treeAt(let key):
        let own = reference.dirty[watcher.node]?[key.rawValue]
        if let own, own > watcher.since { expected = ["tree"] }
        for child in reference.nodes[watcher.node]!.list(key) {
          let below = reference.reach(child)
          if below.contains(where: { reference.isDirty($0, since: watcher.since) }) {
            expected = ["tree"]
          }
          if !below.isDisjoint(with: maybe) { mayAlso = ["tree"] }
        }
        // As for property observers.
        if own != nil, reference.isDirty(watcher.node, since: watcher.since) { mayAlso = ["tree"] }
        if maybe.contains(watcher.node) { mayAlso = ["tree"] }
      case .rows(let query):
        (expected, mayAlso) = (differs ? ["difference"] : [], ["difference"])
        checkRows(watcher, query, reference)
      default: break
      }
      expect(
        log.told == expected || (expected.isEmpty && log.told == mayAlso),
        "\(watcher.name) was told \(log.told) in a tick instead of \(expected)")
    }
    if start == nil { self.reference.dirty = [:] }
    maybe = []
    came = []
  }

  /// Who listens to a signal that is about to be fired for others hears what these waited for.
  private func hasElderTreeSignal(_ watcher: ForestWatcher) -> Bool {
    guard case .treeSignal = watcher.kind else { return false }
    return watchers.contains {
      if case .treeSignal = $0.kind { $0.node == watcher.node && !$0.isNewborn } else { false }
    }
  }

  /// The rows of a query, and which of them it has shown again.
  private func checkRows(
    _ watcher: ForestWatcher, _ query: ForestQuery, _ reference: ForestReference
  ) {
    let (log, rows) = (watcher.log, query.rows(reference, watcher.node))
    let actual = watcher.live!.rows.map(id)
    expect(actual == rows, "\(watcher.name) has \(actual) instead of \(rows)")
    expect(log.rows == rows, "\(watcher.name) was led to \(log.rows) instead of \(rows)")
    log.rows = rows
    for (place, row) in rows.enumerated() {
      expect(
        watcher.live!.rows.firstIndex(of: plants[row]!) == place,
        "\(watcher.name) does not find #\(row)")
    }
    for row in log.updated where !maybe.contains(row) {
      let about = reference.reach(row)
      expect(
        about.contains(where: { reference.isDirty($0, since: 0) || came.contains($0) }),
        "\(watcher.name) has shown #\(row) again, which is as it was")
    }
    expect(Set(log.updated).count == log.updated.count, "\(watcher.name) has shown one twice")
  }

  /// Who is told values is told the one that the property has at that moment, which another observer
  /// may have changed in this tick; the next tick tells what is left. The same goes for who reads the
  /// value when told. False for all others.
  private func checkLoosely(_ watcher: ForestWatcher, at start: String) -> Bool {
    let log = watcher.log
    let now = watcher.value(reference)
    let last = watcher.last
    switch watcher.kind {
    case .numberValue, .listValue, .referenceValue, .compositeValue:
      if let told = log.told.first {
        expect(
          told.hasPrefix(last + " -> ") && told != "\(last) -> \(last)",
          "\(watcher.name) was told \(told) after \(last)")
        watcher.last = String(told.dropFirst(last.count + 4))
      }
    case .composite: if !log.told.isEmpty { watcher.last = log.seen }
    case .difference: watcher.last = reference.text(log.rows)
    default: return false
    }
    expect(log.told.count <= 1, "\(watcher.name) was told \(log.told) in one tick")
    let isMissed = log.told.isEmpty && start != last && start == now
    expect(!isMissed, "\(watcher.name) was not told that \(last) is \(now)")
    return true
  }
}

extension ForestReference {
  /// Whether a node has changed in this tick, after a moment.
  func isDirty(_ id: Int, since moment: Int) -> Bool {
    dirty[id]?.values.contains { $0 > moment } ?? false
  }
}
