import MainActorFixture
import Pacing
import Testing

@testable import Jetstream

/// One and the same behaviour, wherever a scope lives: `wait` returns after the next tick.
private func behave(
  ticker: Ticker?, isolation: isolated (any Actor)? = #isolation,
  wait: (Scope) async throws -> Void
) async throws {
  let root = Node("root")
  let scope = Scope(name: "S", root: root, ticker: ticker ?? .on(isolation!))
  scope.changeInterval = .microseconds(10)
  let listener = Listener()
  var sets: [ChangeSet] = []
  root.observeChange(listener, \.number, isolation: here()) { $0.log.append("number") }
  root.observeTreeChange(listener, isolation: here()) { $0.log.append("tree") }
  root.observeChangeImmediately(listener, \.number) { me, _, new in me.log.append("\(new)") }
  scope.onChanges.listen { sets.append($0) }
  root.number = 1
  root.number = 2
  #expect(listener.log == ["1", "2"])
  try await wait(scope)
  #expect(listener.log == ["1", "2", "number", "tree"])
  root.left = Node("left")
  root.left?.number = 3
  while sets.count < 2 { try await wait(scope) }
  #expect(sets.map { $0.fragments.map(\.kind) } == [[.change], [.add, .change]])
  #expect(listener.log == ["1", "2", "number", "tree", "tree"])
}

/// Returns once the scope has delivered a change set on its actor's own tick.
private func nextChangeSet(
  of scope: Scope, isolation: isolated (any Actor)? = #isolation
) async throws {
  try await awaitCall { done in scope.onChanges.listenOnce { _ in done(()) } }
}

private actor Home {
  private var scope: Scope?
  private let listener = Listener()

  func behaveHere() async throws {
    try await behave(ticker: nil) { try await nextChangeSet(of: $0) }
  }

  func settle() async throws {
    let root = Node("root")
    let scope = Scope(name: "Home", root: root)
    self.scope = scope
    root.observeChange(listener, \.number) { $0.called() }
    root.number = 1
    try await nextChangeSet(of: scope)
    #expect(listener.count == 1)
    root.number = 2
  }

  func reference() -> WeakScope { WeakScope(scope) }
}

/// Only asks whether the scope is still there.
private final class WeakScope: @unchecked Sendable {
  private weak var scope: Scope?
  init(_ scope: Scope?) { self.scope = scope }
  var isGone: Bool { scope == nil }
}

@Suite struct IsolationTests {
  @Test("a scope on a manual ticker") func manual() async throws {
    try await behave(ticker: .manual()) { $0.ticker.advance(by: .milliseconds(1)) }
  }

  @Test("a scope on the main actor") @MainActor func main() async throws {
    try await behave(ticker: nil) { try await nextChangeSet(of: $0) }
  }

  @Test("a scope on an actor") func actor() async throws { try await Home().behaveHere() }

  @Test("an actor that owns its scope, with observers and a change that waits, is released")
  func release() async throws {
    weak var weakHome: Home?
    let scope: WeakScope
    do {
      let home = Home()
      weakHome = home
      try await home.settle()
      scope = await home.reference()
      #expect(!scope.isGone)
    }
    // A tick that is due may hold the actor while it runs.
    try await wait { weakHome == nil }
    #expect(weakHome == nil)
    #expect(scope.isGone)
  }

  @Test("models of a module whose default isolation is the main actor")
  @MainActor func mainActorModule() async {
    let screen = MemoScreen()
    await screen.write("hello")
    #expect(screen.refreshes == 1)
    #expect(screen.memo.summary == "hello (1)")
    #expect(screen.memo.schema.properties.map(\.name) == ["text", "children"])
    #expect(screen.scope.count == 2)
  }
}
