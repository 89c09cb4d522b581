import Foundation
import Jetstream

/// A real editing history, one model per character, replayed onto a collection. An observer mirrors the collection
/// through its differences, with one tick per transaction. Empty if the data is not available.
func replayRows() -> [Row] {
  guard let history = EditingHistory.load() else { return [] }
  return [
    Row(name: "replay an editing history, per edit", unit: "ns", rounds: 5) {
      Probes(ours: {
        let (first, second) = Replay(history).run()
        return (first + second) / Double(history.edits)
      })
    },
    Row(name: "replay, second half to first, per edit", unit: "x", bar: 1.5, rounds: 5) {
      Probes(ours: {
        let (first, second) = Replay(history).run()
        let edits = history.editsOfHalves
        return (second / Double(edits.second)) / (first / Double(edits.first))
      })
    },
  ]
}

/// Transactions of patches, each with a position, the number of deleted characters and the inserted text.
private struct EditingHistory: Decodable {
  struct Patch: Decodable {
    let position: Int
    let deleted: Int
    let inserted: [String]

    init(from decoder: any Decoder) throws {
      var fields = try decoder.unkeyedContainer()
      position = try fields.decode(Int.self)
      deleted = try fields.decode(Int.self)
      inserted = try fields.decode(String.self).map { String($0) }
    }
  }

  struct Transaction: Decodable { let patches: [Patch] }

  let endContent: String
  let txns: [Transaction]

  /// `../shared/data`, or the folder that `JETSTREAM_DATA` names.
  static func load() -> EditingHistory? {
    let folder = ProcessInfo.processInfo.environment["JETSTREAM_DATA"] ?? "../shared/data"
    let file = URL(filePath: folder).appending(path: "sveltecomponent.json")
    guard let data = try? Data(contentsOf: file) else { return nil }
    do {
      return try JSONDecoder().decode(EditingHistory.self, from: data)
    } catch {
      Console.error("benchmarks: \(file.path) is no editing history: \(error)")
      return nil
    }
  }

  var halves: (ArraySlice<Transaction>, ArraySlice<Transaction>) {
    (txns[..<(txns.count / 2)], txns[(txns.count / 2)...])
  }

  var editsOfHalves: (first: Int, second: Int) {
    (Self.edits(in: halves.0), Self.edits(in: halves.1))
  }

  var edits: Int { editsOfHalves.first + editsOfHalves.second }

  /// Characters inserted and deleted.
  private static func edits(in transactions: ArraySlice<Transaction>) -> Int {
    transactions.reduce(0) { sum, transaction in
      transaction.patches.reduce(sum) { $0 + $1.deleted + $1.inserted.count }
    }
  }
}

private final class Letter: ModelObject {
  @Property var text = ""
}

private final class Document: ModelObject {
  @Property var letters: ModelArray<Letter> = []
}

/// One run, from an empty document to the end.
private final class Replay {
  private let history: EditingHistory
  private let ticker = Ticker.manual()
  private let document = Document()
  private let scope: Scope
  private var mirror: [Letter] = []

  init(_ history: EditingHistory) {
    self.history = history
    scope = Scope(name: "Document", root: document, ticker: ticker)
    document.observeDifference(self, \.letters, isolation: ticker.isolation) { $0.apply($1) }
  }

  /// Nanoseconds of both halves.
  func run() -> (first: Double, second: Double) {
    let first = nanoseconds { play(history.halves.0) }
    let second = nanoseconds { play(history.halves.1) }
    let text = document.letters.map(\.text).joined()
    precondition(text == history.endContent, "The replay ended with another content.")
    precondition(mirror.elementsEqual(document.letters, by: ===), "The mirror is not equal.")
    return (first, second)
  }

  private func play(_ transactions: ArraySlice<EditingHistory.Transaction>) {
    for transaction in transactions {
      for patch in transaction.patches {
        for _ in 0..<patch.deleted { document.letters.remove(at: patch.position) }
        for (offset, text) in patch.inserted.enumerated() {
          let letter = Letter()
          letter.text = text
          document.letters.insert(letter, at: patch.position + offset)
        }
      }
      ticker.tick()
    }
  }

  private func apply(_ difference: CollectionDifference<Letter>) {
    for case .remove(let offset, _, _) in difference.removals.reversed() {
      mirror.remove(at: offset)
    }
    for case .insert(let offset, let letter, _) in difference.insertions {
      mirror.insert(letter, at: offset)
    }
  }
}
