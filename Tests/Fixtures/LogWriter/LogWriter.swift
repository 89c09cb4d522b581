import Foundation
import Jetstream

/// What the log is about.
final class Journal: ModelObject {
  @Property var count = 0
  @Property var text = ""
  @Property var entries: ModelArray<Entry> = []
}

final class Entry: ModelObject {
  @Property var number = 0
}

/// Edits a journal and says which edits are durable, until it is killed.
///
///     LogWriter DIRECTORY DURABILITY SEED
///
/// It prints `open N`, N being the edits that the log holds, and then for each further one its number on a
/// line, once the log says that it is durable.
@main
struct LogWriter {
  static func main() async {
    do {
      try await run()
    } catch {
      // Not a crash, for which the runtime would write a backtrace.
      FileHandle.standardError.write(Data("LogWriter: \(error)\n".utf8))
      exit(1)
    }
  }

  private static func run() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 4, var random = Int(arguments[3]).map(SplitMix.init) else {
      say("usage: LogWriter DIRECTORY every|interval|none|lock SEED")
      exit(2)
    }
    let durability: LogDurability =
      switch arguments[2] {
      case "interval": .interval(.milliseconds(2))
      case "none": .none
      default: .everyChangeSet
      }
    let configuration = LogConfiguration(
      durability: durability, history: .last(60), segmentBytes: 20_000)
    let journal = Journal()
    let scope = Scope(name: "Journal", root: journal, ticker: .manual())
    if arguments[2] == "lock" {
      let log = try FragmentLog(arguments[1], configuration: configuration)
      say("open \(log.lastSequence)")
      _ = readLine()
      return
    }
    let log = try FragmentLog(arguments[1], configuration: configuration)
    try await log.restore(into: scope)
    scope.flush()
    // More than one set at a time is appended, so that groups are among what is killed.
    let sets = SetBox()
    scope.onChanges.listen { sets.all.append($0) }
    say("open \(journal.count)")
    while true {
      let size = random.next(below: 3) + 1
      for _ in 0..<size {
        journal.count += 1
        journal.text = String(repeating: "\(journal.count) ", count: random.next(below: 60))
        if journal.entries.count > 40 { journal.entries.removeAll() }
        let entry = Entry()
        entry.number = journal.count
        journal.entries.append(entry)
        scope.flush()
      }
      let receipt: LogReceipt
      if size == 3 {
        receipt = try log.append(sets.take())
      } else {
        receipt = try sets.take().map { try log.append($0) }.last!
      }
      try receipt.wait()
      for number in (journal.count - size + 1)...journal.count { say("\(number)") }
      if random.next(below: 40) == 0 { try await log.snapshot(of: scope) }
    }
  }

  /// At once, without a buffer that a signal could take away.
  static func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }
}

/// The sets that came out of the scope.
final class SetBox {
  var all: [ChangeSet] = []

  func take() -> [ChangeSet] {
    defer { all = [] }
    return all
  }
}

struct SplitMix {
  private var state: UInt64

  init(_ seed: Int) { state = UInt64(bitPattern: Int64(seed)) }

  mutating func next(below bound: Int) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return Int((mixed ^ (mixed >> 31)) % UInt64(bound))
  }
}
