import Jetstream

/// The root of the scopes that `jetstream bench` uses.
final class BenchBoard: ModelObject {
  /// The models that writers change, a few for each writer.
  @Property var notes: ModelArray<BenchNote> = []
  /// The number of change sets that all benches have made in the scope.
  @Property(.counter) var edits = 0
}

/// A model that a writer changes.
final class BenchNote: ModelObject {
  /// The text of the last edit; see ``BenchText``.
  @Property var text = ""
}

/// The text that a change set of the bench carries: the run, the time of the edit and a filling.
struct BenchText {
  private let run: String
  private let filling: String
  private let size: Int

  init(run: String, size: Int) {
    (self.run, self.size) = (run, size)
    filling = String(repeating: "x", count: size)
  }

  /// Returns the text of an edit.
  func text(at time: Int) -> String {
    let head = "\(run) \(time) "
    return head + filling.prefix(max(size - head.utf8.count, 0))
  }

  /// Returns the time of the edit that a text is of; nil if it is of no edit of this run.
  func time(of text: String) -> Int? {
    let words = text.utf8.split(separator: UInt8(ascii: " "), maxSplits: 2)
    guard words.count >= 2, words[0].elementsEqual(run.utf8) else { return nil }
    return Int(Substring(words[1]))
  }
}
