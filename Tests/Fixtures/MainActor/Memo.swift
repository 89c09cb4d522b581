import Jetstream

/// Models in a module whose declarations are on the main actor by default.
public nonisolated final class Memo: ModelObject {
  /// What it says.
  @Property public var text = ""
  /// Memos below it.
  @Property public var children: ModelArray<Memo> = []

  /// The text with the number of children.
  public var summary: String { "\(text) (\(children.count))" }
}

/// A screen of that module, on the main actor without saying so.
public final class MemoScreen {
  /// The memo shown.
  public let memo = Memo()
  /// The memo's scope.
  public let scope: Scope
  /// How often the screen was told of a change.
  public private(set) var refreshes = 0
  private var waiting: CheckedContinuation<Void, Never>?

  /// Makes a screen that observes its memo.
  public init() {
    scope = Scope(name: "Memo", root: memo)
    memo.observeChange(self, \.summary) { me in
      me.refreshes += 1
      me.waiting?.resume()
      me.waiting = nil
    }
  }

  /// Changes the memo and returns once the screen was told.
  public func write(_ text: String) async {
    await withCheckedContinuation { continuation in
      waiting = continuation
      memo.text = text
      memo.children.append(Memo())
    }
  }
}
