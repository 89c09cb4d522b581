/// Records that count as durable before they are synced, as with ``LogDurability/none``.
///
/// A power failure may take such records, and what is left looks whole. So the mark says that there
/// are some, with the boot of the machine in which they were written. It has one of three values:
/// - None: all records that count as durable are synced.
/// - The current boot: there may be others, and the system has them. ``commit()`` notes that, and
///   syncs the mark, before the first one counts. It is forgotten when the log rests, is closed or
///   is released, since all is synced then, and when it is opened again in the same boot. Each of these
///   runs on the queue, one after the other, or when nothing else can use the log, so no record comes to
///   count in between. The mark is synced then, too, and a power failure does not bring the boot back.
/// - Another boot, which only opening the log brings: records may be missing at the end. That stays,
///   however often the log is opened, closed and written to, until ``acceptEnd()``.
extension RecordLog {
  /// True if records may be missing at the end that counted as durable; see
  /// ``LogOpening/mayHaveLostEnd``. False once ``acceptEnd()`` was called.
  package var isEndUncertain: Bool {
    mark.withLock { $0.unsyncedBoot != nil && $0.unsyncedBoot != boot }
  }

  /// Goes on behind what is left. Call it once a record is synced that says so to all who may know of
  /// the missing ones.
  package func acceptEnd() async {
    await withCheckedContinuation { continuation in acceptEnd { continuation.resume() } }
  }

  /// Like ``acceptEnd()``. Calls `done` on the queue.
  func acceptEnd(then done: @escaping @Sendable () -> Void) {
    queue.run {
      // Records that are not synced may have come to count since the log was opened. Then the log is not at rest, and
      // forgets the boot when it will be. Here on the queue, no other record comes to count and the log does not rest.
      let hasUnsynced =
        self.configuration.durability == .none
        && self.writer.withLock { $0.written > $0.synced }
      if self.isEndUncertain, self.state.withLock({ $0.phase < .stopped }) {
        self.changeMark { $0.unsyncedBoot = hasUnsynced ? self.boot : nil }
      }
      done()
    }
  }

  /// Notes on stable storage that records will count as durable that are not synced.
  func noteUnsyncedEnd() throws(LogError) {
    try reading { () throws(LogFileError) in
      try mark.withLock { mark throws(LogFileError) in
        guard mark.unsyncedBoot == nil else { return }
        var new = mark
        new.unsyncedBoot = boot
        try lockFile.write(new)
        try lockFile.syncFully()
        mark = new
      }
    }
  }

  /// Notes that all records are synced.
  func noteSyncedEnd() {
    guard mark.withLock({ $0.unsyncedBoot == boot }) else { return }
    changeMark { $0.unsyncedBoot = nil }
  }
}
