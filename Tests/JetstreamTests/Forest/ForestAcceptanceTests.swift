import Foundation
import Testing

@testable import Jetstream

/// Any public change in any order, checked after each against a reference that shares nothing with the
/// framework.
///
/// A seed leads to the same operations each time, with the same UUIDs, but for those of copies that
/// get new ones and of change sets: nothing is chosen by them. `JETSTREAM_FOREST_SEEDS` says how many
/// seeds are run besides the fixed ones; half of them are new each time, and printed.
/// `JETSTREAM_FOREST_SEED` names the ones to run instead of all others, with commas between them, and
/// `JETSTREAM_FOREST_HISTORY` says how many steps before a failure are told.
@Suite(.serialized, .paced(counting: Plant.self)) struct ForestAcceptanceTests {
  /// The first one, and some that once found something without calls of modify.
  static let plainSeeds: [UInt64] =
    [1, 1005, 1021, 1129, 1192, 65_087_427_399_948]

  /// The first one, and some that once found something with calls of modify.
  static let modifyingSeeds: [UInt64] =
    [
      1, 1148, 1689, 1874, 1927, 10_706_033_706_839, 103_691_363_086_256, 193_531_738_936_207,
      211_284_564_754_261, 237_258_757_754_733,
    ]

  /// Returns the fixed seeds, and what the environment asks for.
  static func seeds(_ fixed: [UInt64]) -> [UInt64] {
    let environment = ProcessInfo.processInfo.environment
    if let chosen = environment["JETSTREAM_FOREST_SEED"] {
      return chosen.split(separator: ",").map { UInt64($0)! }
    }
    guard let count = environment["JETSTREAM_FOREST_SEEDS"].flatMap(Int.init), count > 0 else {
      return fixed
    }
    let fresh = (0..<count / 2).map { _ in UInt64.random(in: 1 << 20...UInt64.max >> 16) }
    if !fresh.isEmpty { print("Fresh seeds of the forest: \(fresh)") }
    return fixed + (0..<UInt64(count - count / 2)).map { 1000 + $0 } + fresh
  }

  @Test("Any change of a forest, in any order", arguments: seeds(plainSeeds))
  func forest(seed: UInt64) async { await run(seed, modifies: false) }

  @Test(
    "The same with calls of modify, of which most are taken back", arguments: seeds(modifyingSeeds))
  func modifying(seed: UInt64) async { await run(seed, modifies: true) }

  private func run(_ seed: UInt64, modifies: Bool) async {
    _ = (Plant(), Bush())  // Makes the schemas, with their prototypes.
    let before = Plant.alive.load(ordering: .relaxed)
    var watchers: [ForestWatcher] = []
    var feeds: [Forest.Feed] = []
    var records: [Weak<ModelRecord>] = []
    weak var ticker: Ticker?
    do {
      let forest = Forest(seed: seed, modifies: modifies)
      for _ in 0..<20 { forest.run(forest.observation()) }
      for step in 0..<300 {
        forest.run(forest.next())
        if !forest.problems.isEmpty {
          let problems = forest.problems.prefix(5).joined(separator: "\n")
          let history = forest.history.suffix(Forest.historyLength).joined(separator: "\n  ")
          Issue.record(
            "seed \(seed), step \(step): \(problems)\nafter\n  \(history)\n\(forest.map)")
          break
        }
        if step.isMultiple(of: 50) { await Task.yield() }
      }
      #expect(forest.told > 0 || !forest.problems.isEmpty, "seed \(seed) told nobody")
      #expect(
        !modifies || forest.takenBack > 0 || !forest.problems.isEmpty
          || !Self.modifyingSeeds.contains(seed),
        "seed \(seed) took nothing back")
      let failed = !forest.problems.isEmpty
      forest.release()
      watchers = forest.watchers
      forest.watchers = []
      feeds = forest.feeds
      records = forest.sights.values.map { Weak($0.record) }
      ticker = forest.ticker
      #expect(forest.ticker.isIdle, "something waits for a tick, seed \(seed)")
      if failed { return }
      #expect(forest.living.isEmpty, "still there: \(forest.living), seed \(seed)")
    }
    #expect(Plant.alive.load(ordering: .relaxed) == before, "models are left, seed \(seed)")
    // The models are gone; what observed them holds nothing, and can be ended.
    let tokens = watchers.flatMap(\.tokens).map(Weak.init)
    let logs = watchers.map { Weak($0.log) }
    for watcher in watchers where seed.isMultiple(of: 2) { watcher.cancel() }
    for feed in feeds {
      let mistake = await feed.mistake()
      #expect(mistake == nil, "seed \(seed)")
    }
    watchers = []
    feeds = []
    #expect(tokens.allSatisfy { $0.object == nil }, "a token is left, seed \(seed)")
    #expect(logs.allSatisfy { $0.object == nil }, "a callback is left, seed \(seed)")
    #expect(records.allSatisfy { $0.object == nil }, "a record is left, seed \(seed)")
    #expect(ticker == nil, "the ticker is left, seed \(seed)")
  }
}

private struct Weak<Object: AnyObject> {
  weak var object: Object?
  init(_ object: Object?) { self.object = object }
}
