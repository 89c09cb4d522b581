import Foundation
import Jetstream

let logSuite = Suite(name: "log", summary: "the fragment log, on the disk of the temporary folder")
{
  [
    Row(
      name: "append a set, durable each", unit: "us", peerName: "plain write + fdatasync", rounds: 9
    ) {
      appending(.single, groupOf: 1, count: 200)
    },
    // Without a bar: the hundred are encoded before anything is synced, while the peer encodes nothing.
    Row(
      name: "append 100 sets as one, durable", unit: "us", peerName: "plain write + fdatasync",
      rounds: 15
    ) {
      appending(.batches, groupOf: 100, count: 10_000)
    },
    // Group commit: what comes while a group is synced is the next group.
    Row(
      name: "append sets, 200 in flight, durable", unit: "us", peerName: "plain write + fdatasync",
      bar: 1.25, rounds: 15
    ) {
      appending(.inFlight, groupOf: 100, count: 10_000)
    },
    Row(
      name: "append a set, not synced", unit: "us", peerName: "plain write of each", rounds: 9
    ) {
      appending(.unsynced, groupOf: 1, count: 20_000)
    },
    Row(
      name: "append sets, not synced", unit: "us", peerName: "plain write of groups of 100",
      rounds: 9
    ) {
      appending(.unsynced, groupOf: 100, count: 100_000)
    },
    Row(name: "open a million sets, compacted", unit: "ms", rounds: 5) {
      let log = MillionSets.prepared
      return Probes(ours: { log.open(isCompact: true) })
    },
    Row(name: "open and restore a million sets, compacted", unit: "ms", rounds: 5) {
      let log = MillionSets.prepared
      return Probes(ours: { log.restore() })
    },
    Row(name: "open and read the header of all kept history", unit: "ms", rounds: 5) {
      let log = MillionSets.prepared
      return Probes(ours: { log.open(isCompact: false) })
    },
    Row(name: "verify a million sets, all history", unit: "ms", rounds: 3) {
      let log = MillionSets.prepared
      return Probes(ours: { log.verify() })
    },
  ]
}

/// A change as a drag gives it.
private func makeSet(_ number: Int) -> ChangeSet {
  let uuid = MillionSets.uuid(number % 10_000)
  return ChangeSet(
    id: MillionSets.uuid(number + 1_000_000),
    fragments: [
      SyncFragment(
        .change, uuid: uuid, className: "Shape",
        properties: ["x": .float(Float(number) * 0.25), "y": .float(100 - Float(number % 90))])
    ], bases: [uuid: ["x": 1, "y": 2]])
}

/// The way in which change sets are appended.
private enum Appending {
  /// One by one, waiting for each.
  case single
  /// In batches, waiting for each batch.
  case batches
  /// One by one, each waiting for the one that came two groups before, so that one group is appended while another is
  /// synced.
  case inFlight
  case unsynced
}

/// Microseconds a set, beside plain calls that write just as many bytes.
private func appending(_ way: Appending, groupOf size: Int, count: Int) -> Probes {
  let folder = TemporaryFolder()
  let isSynced = way != .unsynced
  let sets = (0..<count).map(makeSet)
  let log = try! FragmentLog(
    folder.path + "/log",
    configuration: LogConfiguration(durability: isSynced ? .everyChangeSet : .none))
  // The bytes of a change set in the file: about a hundred bytes around its JSON.
  var lines: [[UInt8]] = []
  for start in stride(from: 0, to: count, by: size) {
    var group: [UInt8] = []
    for set in sets[start..<min(start + size, count)] {
      group += [UInt8](repeating: UInt8(ascii: "h"), count: 88)
      set.write(to: &group)
    }
    lines.append(group)
  }
  let plain = PlainFile(folder.path + "/plain")
  var round = 0
  return Probes(
    ours: {
      // A set that was appended before would not be appended again.
      round += 1
      let fresh = sets.map { ChangeSet(fragments: $0.fragments, undo: $0.undo) }
      let time = nanoseconds {
        var receipts: [LogReceipt] = []
        receipts.reserveCapacity(count)
        switch way {
        case .batches:
          for start in stride(from: 0, to: count, by: size) {
            try! log.append(Array(fresh[start..<(start + size)])).wait()
          }
        case .single: for set in fresh { try! log.append(set).wait() }
        case .inFlight:
          for (place, set) in fresh.enumerated() {
            receipts.append(try! log.append(set))
            if place >= 2 * size { try! receipts[place - 2 * size].wait() }
          }
          try! receipts[count - 1].wait()
        case .unsynced:
          for set in fresh { receipts.append(try! log.append(set)) }
          try! receipts[count - 1].wait()
        }
      }
      return time / Double(count) / 1000
    },
    peer: {
      let time = nanoseconds {
        for group in lines {
          plain.write(group)
          if isSynced { plain.sync() }
        }
      }
      withExtendedLifetime(folder) {}
      return time / Double(count) / 1000
    })
}

/// A file as an app would write it without a log.
private final class PlainFile {
  private let descriptor: Int32

  init(_ path: String) { descriptor = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0o644) }

  deinit { close(descriptor) }

  func write(_ bytes: [UInt8]) {
    let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
    precondition(count == bytes.count, "The disk is full.")
  }

  func sync() {
    #if canImport(Darwin)
    precondition(fcntl(descriptor, F_FULLFSYNC) == 0)
    #else
    precondition(fdatasync(descriptor) == 0)
    #endif
  }
}

/// Two logs of a million sets about 10,000 shapes: one with all history, one compacted. The last 2,000
/// sets follow the snapshot.
private final class MillionSets {
  static nonisolated(unsafe) private var made: MillionSets?

  /// Made on first use. Benchmarks run on one thread.
  static var prepared: MillionSets {
    if let made { return made }
    let new = MillionSets()
    made = new
    return new
  }

  private let folder = TemporaryFolder()

  static func uuid(_ number: Int) -> UUID {
    UUID(uuidString: String(format: "00000000-0000-4000-8000-%012x", number))!
  }

  private init() {
    let (canvas, shapes) = Shape.canvas(of: 10_000)
    let scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    let state = scope.fullState().map { fragment in
      var payload: [UInt8] = []
      fragment.write(to: &payload)
      return RecordContent(.fragment, payload)
    }
    let uuids = shapes.map(\.uuid)
    for (name, history) in [("all", LogHistory.all), ("compact", .nothing)] {
      let log = try! FragmentLog(
        folder.path + "/" + name,
        configuration: LogConfiguration(durability: .none, history: history))
      let semaphore = DispatchSemaphore(value: 0)
      for number in 0..<1_000_000 {
        let uuid = uuids[number % uuids.count]
        let receipt = try! log.append(
          ChangeSet(
            fragments: [
              SyncFragment(
                .change, uuid: uuid, className: "Shape",
                properties: ["x": .float(Float(number) * 0.25), "y": .float(3)])
            ], bases: [uuid: ["x": 1, "y": 2]]))
        if number % 10_000 == 9_999 { try! receipt.wait() }
        if number == 997_999 {
          Task {
            try! await log.records.snapshot(at: log.lastSequence, standingFor: [.set]) { state }
            semaphore.signal()
          }
          semaphore.wait()
        }
      }
      Task {
        try! await log.close()
        semaphore.signal()
      }
      semaphore.wait()
    }
  }

  /// Returns the time in milliseconds.
  func open(isCompact: Bool) -> Double {
    var log: RecordLog?
    let time = nanoseconds { log = try! RecordLog(folder.path + (isCompact ? "/compact" : "/all")) }
    precondition(log?.lastSequence == 1_000_000)
    return time / 1e6
  }

  /// Returns the time in milliseconds.
  func restore() -> Double {
    let (canvas, _) = Shape.canvas(of: 0)
    let scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    let time = nanoseconds {
      let log = try! FragmentLog(folder.path + "/compact")
      let restoration = try! log.restoreWhatIsThere(into: scope)!
      precondition(restoration.changeSetCount == 2_000 && restoration.misfits.isEmpty)
    }
    precondition(scope.count == 10_001)
    return time / 1e6
  }

  /// Returns the time in milliseconds.
  func verify() -> Double {
    nanoseconds {
      let result = try! LogReader(folder.path + "/all").verify()
      precondition(result.isWhole && result.records == 1...1_000_000)
    } / 1e6
  }
}
