import Foundation

@testable import Jetstream

/// Scopes that go, and those who listen to what they make.
extension Forest {
  /// Reads the change sets of one scope as a sequence, beside a listener that hears the same.
  final class Feed {
    var sets: any AsyncIteratorProtocol<ChangeSet, Never>
    var heard: [UUID] = []
    /// What a listener has counted that was given up after the first time, and one that coalesces.
    var once = 0
    var coalesced: [UUID] = []
    weak var scope: Scope?

    init(_ scope: Scope, _ ticker: Ticker) {
      self.scope = scope
      sets = scope.changeSets.makeAsyncIterator()
      scope.onChanges.listen { [weak self] in self?.heard.append($0.id) }
      scope.onChanges.listenOnce { [weak self] _ in self?.once += 1 }
      scope.onChanges.listenCoalesced(on: ticker) { [weak self] in self?.coalesced.append($0.id) }
    }

    /// What is wrong, once the scope is gone.
    func mistake() async -> String? {
      guard scope == nil else { return "the scope is still there" }
      var read: [UUID] = []
      while let set = await sets.next(isolation: #isolation) { read.append(set.id) }
      if read != heard { return "read \(read.count) change sets of \(heard.count)" }
      if once != min(heard.count, 1) { return "heard once: \(once)" }
      var open = heard[...]
      for id in coalesced {
        guard let place = open.firstIndex(of: id) else { return "coalesced out of order" }
        open = open[(place + 1)...]
      }
      return nil
    }
  }

  /// Makes one of the two scopes that the test holds.
  func makeScope(_ number: Int, root: Plant?) -> Scope {
    let scope = Scope(name: "\(number)", root: root, models: [Bush.self], ticker: ticker)
    scope.addMembershipObserver(visitors)
    feeds.append(Feed(scope, ticker))
    watch(scope, number)
    heated[number] = nil
    reference.members[number] = []
    return scope
  }

  /// The last reference to a scope is dropped: its models are in none, and nobody is told.
  func performDropScope(_ number: Int) {
    for watcher in watchers {
      if case .rows(let query) = watcher.kind, query.scope == number { watcher.cancel() }
    }
    weak let old = scope(number)
    reference.dissolve(number)
    fixed[number] = makeScope(number, root: nil)
    expect(old == nil, "scope \(number) stays")
  }
}

extension ForestReference {
  mutating func dissolve(_ scope: Int) {
    roots[scope] = nil
    let events = events
    settle()
    self.events = events
    forgetScope(scope)
  }
}
