import Foundation
import Testing

@testable import Jetstream

/// An editing history: what was typed and deleted in a file, in order.
private struct EditingTrace: Decodable {
  struct Patch: Decodable {
    let position: Int
    let deleted: Int
    let inserted: String
  }

  struct Transaction: Decodable { let patches: [Patch] }

  let startContent: String
  let endContent: String
  let txns: [Transaction]

  static let url: URL = {
    let folder =
      ProcessInfo.processInfo.environment["JETSTREAM_DATA"]
      ?? URL(filePath: #filePath).appending(path: "../../../../../shared/data").standardized.path
    return URL(filePath: folder).appending(path: "sveltecomponent.json")
  }()

  static var isThere: Bool { FileManager.default.fileExists(atPath: url.path) }

  /// Reads the real one.
  static func load() throws -> EditingTrace {
    try JSONDecoder().decode(EditingTrace.self, from: Data(contentsOf: url))
  }

  /// Its first transactions, with what they have come to.
  func prefix(_ count: Int) -> EditingTrace {
    var text = Array(startContent)
    let transactions = Array(txns.prefix(count))
    for patch in transactions.lazy.flatMap(\.patches) {
      let range = patch.position..<patch.position + patch.deleted
      text.replaceSubrange(range, with: Array(patch.inserted))
    }
    return EditingTrace(
      startContent: startContent, endContent: String(text), txns: transactions)
  }

  /// Makes one as somebody types: runs of characters and of deletions at a caret, which jumps at times, some pasted text,
  /// and replacements in several places at once.
  static func made(_ count: Int, seed: UInt64) -> EditingTrace {
    var generator = SeededGenerator(seed: seed)
    func roll(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }
    let letters = Array("abcdefghij klmnop\nqrstuvwxyz éü{}();")
    let start = "first line\nsecond line\n"
    var text = Array(start)
    var caret = text.count
    func patch(deleting: Int, inserting: Int) -> Patch {
      let deleted = min(deleting, text.count - caret)
      let inserted = (0..<inserting).map { _ in letters[roll(letters.count)] }
      text.replaceSubrange(caret..<caret + deleted, with: inserted)
      defer { caret += inserted.count }
      return Patch(position: caret, deleted: deleted, inserted: String(inserted))
    }
    let transactions = (0..<count).map { _ in
      if roll(20) == 0 { caret = roll(text.count + 1) }
      switch roll(100) {
      case ..<70: return Transaction(patches: [patch(deleting: 0, inserting: 1)])
      case ..<94:
        caret = max(0, caret - 1)
        return Transaction(patches: [patch(deleting: 1, inserting: 0)])
      case ..<97: return Transaction(patches: [patch(deleting: roll(30), inserting: roll(60))])
      default:
        return Transaction(
          patches: (0..<3).map { _ in
            caret = roll(text.count + 1)
            return patch(deleting: 4, inserting: 5)
          })
      }
    }
    return EditingTrace(startContent: start, endContent: String(text), txns: transactions)
  }
}

extension EditingTrace.Patch {
  init(from decoder: any Decoder) throws {
    var fields = try decoder.unkeyedContainer()
    position = try fields.decode(Int.self)
    deleted = try fields.decode(Int.self)
    inserted = try fields.decode(String.self)
  }
}

private final class Letter: ModelObject {
  @Property var text = ""

  convenience init(_ character: Character) {
    self.init()
    text = String(character)
  }
}

private final class Document: ModelObject {
  @Property var letters: ModelArray<Letter> = []
}

/// A second array, kept up through differences alone.
private final class Mirror {
  var letters: [Letter] = []
  var differences = 0
  /// Whether every removal named the letter that stood at its offset.
  var wereRemovalsRight = true

  /// In place, since a new array each time would be most of the work.
  func apply(_ difference: CollectionDifference<Letter>) {
    differences += 1
    for case .remove(let offset, let letter, _) in difference.removals.reversed() {
      if letters.remove(at: offset) !== letter { wereRemovalsRight = false }
    }
    for case .insert(let offset, let letter, _) in difference.insertions {
      letters.insert(letter, at: offset)
    }
  }

  /// Compares the objects chunk by chunk, without a call for each of them.
  func isEqual(to array: ModelArray<Letter>) -> Bool {
    guard array.count == letters.count else { return false }
    return letters.withUnsafeBytes { mine in
      var start = 0
      for chunk in array.list.storage?.chunks ?? [] {
        let size = chunk.count * MemoryLayout<Letter>.stride
        let same = chunk.withUnsafeBytes {
          memcmp($0.baseAddress!, mine.baseAddress! + start, size)
        }
        guard same == 0 else { return false }
        start += size
      }
      return true
    }
  }
}

@Suite(.serialized, .paced) struct EditingTraceTests {
  @Test(
    "a made-up editing history, one model a character: differences alone keep up a second array",
    arguments: 1...2 as ClosedRange<UInt64>)
  func madeUp(seed: UInt64) async throws { try await replay(.made(2_000, seed: seed)) }

  @Test(
    "the beginning of a real editing history, where it is beside the project",
    .enabled(if: EditingTrace.isThere))
  func real() async throws {
    let trace = try EditingTrace.load()
    #expect(trace.prefix(.max).endContent == trace.endContent)
    try await replay(trace.prefix(4_000))
  }

  private func replay(_ trace: EditingTrace) async throws {
    let document = Document()
    document.letters = ModelArray(trace.startContent.map { Letter($0) })
    let scope = manualScope(document)
    let mirror = Mirror()
    mirror.letters = Array(document.letters)
    document.observeDifference(mirror, \.letters, isolation: here()) { $0.apply($1) }
    for (number, transaction) in trace.txns.enumerated() {
      for patch in transaction.patches {
        for _ in 0..<patch.deleted { document.letters.remove(at: patch.position) }
        for (offset, character) in patch.inserted.enumerated() {
          document.letters.insert(Letter(character), at: patch.position + offset)
        }
      }
      scope.ticker.tick()
      // One expectation for each of so many ticks would take longer than all the rest.
      guard mirror.isEqual(to: document.letters), mirror.wereRemovalsRight else {
        Issue.record("the arrays differ after transaction \(number)")
        return
      }
      if number % 1_000 == 0 {
        document.letters.list.storage?.checkInvariants()
        await Task.yield()
      }
    }
    #expect(document.letters.map(\.text).joined() == trace.endContent)
    #expect(scope.count == trace.endContent.count + 1)
    #expect(mirror.differences > trace.txns.count / 2)
  }
}
