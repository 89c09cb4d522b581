/// What checking a log has found.
public struct LogVerification: Sendable, Hashable {
  /// The numbers of the records that are kept and whole, from the first to the first damage.
  public var records: ClosedRange<Int>?
  /// How many segments there are.
  public var segments = 0
  /// What the snapshots that are whole stand for.
  public var snapshots: [Int] = []
  /// All that is damaged. Behind damage in one segment, checking goes on with the next.
  public var damage: [LogDamage] = []
  /// How many bytes at the end belong to records that are incomplete. Opening the log for writing cuts
  /// them off.
  public var tornBytes = 0
  /// How many bytes of segments do not count, since a sync failed after they were written and what they
  /// held was written again to another segment.
  public var abandonedBytes = 0

  /// Whether nothing is damaged. A torn tail is none.
  public var isWhole: Bool { damage.isEmpty }
}

extension LogReader {
  /// Reads everything that is kept, snapshots as well, and tells what is wrong.
  ///
  /// Cost: one pass over all files. What is written meanwhile may look like a torn tail.
  ///
  /// - Throws: ``LogError/file(_:)`` or ``LogError/newerVersion(_:_:)`` if that is not possible.
  public func verify() throws(LogError) -> LogVerification {
    var result = LogVerification()
    let names = try LogFiles(directory)
    result.segments = names.segments.count
    let catalog: LogCatalog
    do throws(LogError) {
      catalog = try LogCatalog(directory)
    } catch .damaged(let damage) {
      result.damage.append(damage)
      return result
    }
    for sequence in catalog.snapshots {
      do throws(LogError) {
        var file = try SnapshotFile(directory, sequence, of: catalog.log)
        try file.check()
        result.snapshots.append(sequence)
      } catch .damaged(let damage) {
        result.damage.append(damage)
      }
    }
    for position in catalog.segments.indices {
      do throws(LogError) {
        try verify(position, of: catalog, into: &result)
      } catch .damaged(let damage) {
        result.damage.append(damage)
      }
    }
    checkCoverage(catalog, &result)
    return result
  }

  private func verify(
    _ position: Int, of catalog: LogCatalog, into result: inout LogVerification
  ) throws(LogError) {
    let first = catalog.segments[position].first
    let end = catalog.end(ofSegment: position)
    var scan = try SegmentScan(directory, first: first, end: end)
    defer {
      // Records behind a damaged place are not in the range, since nothing leads to them in order.
      if scan.next > first,
        result.records == nil ? position == 0 : result.records!.upperBound == first - 1
      {
        result.records = (result.records?.lowerBound ?? first)...(scan.next - 1)
      }
    }
    while try scan.batch() != nil {}
    result.tornBytes += scan.tornBytes
    if let end {
      let name = scan.name
      let size = try reading { () throws(LogFileError) in
        try directory.open(name, for: .reading).size()
      }
      result.abandonedBytes += size - end
      let next = catalog.segments[position + 1].first
      guard scan.next == next else {
        throw .damaged(
          LogDamage(
            "the records between it and the next segment are missing", file: name, offset: end,
            sequence: scan.next))
      }
    }
  }

  /// Whether a state leads to the first record that is kept, and the last snapshot is not ahead.
  private func checkCoverage(_ catalog: LogCatalog, _ result: inout LogVerification) {
    guard let first = catalog.segments.first?.first else { return }
    let base = result.snapshots.last ?? 0
    if base < first - 1 {
      result.damage.append(
        LogDamage(
          "records before it are missing, and no snapshot stands for them",
          file: LogNames.segment(first), offset: 0, sequence: base + 1))
    }
    if result.damage.isEmpty, base > result.records?.upperBound ?? (first - 1) {
      result.damage.append(
        LogDamage(
          "the records that it stands for are missing at the end of the log",
          file: LogNames.snapshot(base), offset: 0,
          sequence: (result.records?.upperBound ?? (first - 1)) + 1))
    }
  }
}
