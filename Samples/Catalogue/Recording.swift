import Foundation
import Jetstream

/// The catalogue and its fragment log, in one process after the other.
extension CatalogueCommand {
  /// Imports the catalogue, edits it, and leaves a log of all that.
  static func record(_ options: RecordOptions) async {
    let ticker = Ticker.manual()
    do {
      let path = options.source.path(environment: ProcessInfo.processInfo.environment)
      let catalogue = try Catalogue(contentsOfFile: path)
      let scope = Scope(name: "Catalogue", root: catalogue, ticker: ticker)
      scope.flush()
      let log = try FragmentLog(
        options.log, configuration: LogConfiguration(durability: .interval(.milliseconds(100))))
      guard log.lastSequence == 0 else {
        Console.fail("there is a log in \(options.log) already", status: 1)
      }
      try await log.restore(into: scope)
      Console.give(summary(of: scope))
      let editing = options.source.editing
      let name = editing.name ?? "recorder"
      log.record(scope, author: name, snapshotEvery: 500) {
        Console.fail("\($0)", status: 1)
      }
      var editor = RandomEditor(catalogue: catalogue, author: name, seed: editing.seed)
      for _ in 0..<editing.edits {
        editor.edit()
        scope.flush()
      }
      try await log.close()
      Console.give("edited \(editing.edits), \(log.lastSequence) change sets")
      Console.give(summary(of: scope))
    } catch {
      Console.fail("\(error)", status: 1)
    }
  }

  /// Restores the catalogue from a log, which is only read, and tells what came of it.
  static func replay(_ options: ReplayOptions) {
    do {
      let log = try LogReader(options.log)
      guard try log.firstSequence() != nil else {
        Console.fail("there is no log in \(options.log)", status: 1)
      }
      let scope = Scope(name: "Catalogue", root: Catalogue(), ticker: Ticker.manual())
      let restoration = try log.restore(into: scope, at: options.sequence)
      report(restoration)
      let last = restoration.sequence
      if let step = options.step { try check(log, every: step, upTo: last) }
      if options.undoes {
        for (sequence, set) in last > 0 ? try log.changeSets(in: 1...last).reversed() : [] {
          let report = scope.revert(set)
          scope.flush()
          guard report.errors.isEmpty else {
            Console.fail("taking back \(sequence): \(report.errors)", status: 1)
          }
        }
      }
      Console.give(summary(of: scope))
    } catch {
      Console.fail("\(error)", status: 1)
    }
  }

  /// Opens sequence numbers one by one, each beside a replay of all sets so far.
  private static func check(_ log: LogReader, every step: Int, upTo last: Int) throws {
    let prefix = Scope(name: "Prefix", root: Catalogue(), ticker: Ticker.manual())
    report(try log.restore(into: prefix, at: 0))
    let opened = Scope(name: "Opened", root: Catalogue(), ticker: Ticker.manual())
    var count = 0
    for (sequence, set) in last > 0 ? try log.changeSets(in: 1...last) : [] {
      prefix.apply(set.fragments)
      guard sequence.isMultiple(of: step) else { continue }
      report(try log.restore(into: opened, at: sequence))
      guard opened.canonicalJSON == prefix.canonicalJSON else {
        Console.fail("sequence number \(sequence) differs from the replay", status: 1)
      }
      count += 1
    }
    Console.give("checked \(count)")
  }

  private static func report(_ restoration: LogRestoration) {
    if !restoration.misfits.isEmpty {
      Console.fail("does not fit: \(restoration.misfits.prefix(5))", status: 1)
    }
  }

  private static func summary(of scope: Scope) -> String {
    let text = scope.canonicalJSON
    return "canonical \(text.utf8.count) \(FNV1a.hash(text))"
  }
}
