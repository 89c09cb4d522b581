import Foundation
import Testing

@testable import Jetstream

/// Random changes within random calls of `modify`, of which many are taken back.
///
/// `JETSTREAM_MODIFY_SEEDS` says how many seeds are run besides the fixed ones, and
/// `JETSTREAM_MODIFY_SEED` names one to run instead.
@Suite(.paced(counting: Plant.self)) struct ModifyRandomTests {
  static var seeds: [UInt64] {
    let environment = ProcessInfo.processInfo.environment
    if let seed = environment["JETSTREAM_MODIFY_SEED"].flatMap(UInt64.init) { return [seed] }
    // The first one, and some that once found something.
    let fixed: [UInt64] = [1, 10, 14, 243, 1041]
    guard let count = environment["JETSTREAM_MODIFY_SEEDS"].flatMap(UInt64.init) else {
      return fixed
    }
    return fixed + (0..<count).map { 1000 + $0 }
  }

  @Test("What a call has changed is taken back, whatever that was", arguments: seeds)
  func modify(seed: UInt64) { run(seed, hasWriters: false) }

  @Test("What observers write while a call is taken back stays, and is told", arguments: seeds)
  func observersWrite(seed: UInt64) { run(seed, hasWriters: true) }

  @Test("What others write while calls are open goes behind them and stays", arguments: seeds)
  func othersWrite(seed: UInt64) { run(seed, hasWriters: false, hasOthers: true) }

  private func run(_ seed: UInt64, hasWriters: Bool, hasOthers: Bool = false) {
    let thicket = Thicket(
      seed: seed, hasTwins: seed.isMultiple(of: 3) && !hasOthers, hasWriters: hasWriters,
      hasOthers: hasOthers)
    defer { thicket.release() }
    for step in 0..<120 {
      thicket.step()
      if thicket.problems.isEmpty { continue }
      let history = thicket.history.suffix(40).joined(separator: "\n  ")
      let problems = thicket.problems.prefix(4).joined(separator: "\n")
      Issue.record("seed \(seed), step \(step): \(problems)\nafter\n  \(history)")
      return
    }
    // Others and observers leave less to work with.
    let enough = hasOthers || hasWriters ? 5 : 20
    #expect(thicket.sets > enough && thicket.thrown > enough, "seed \(seed) has done little")
  }
}
