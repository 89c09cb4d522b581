/// The result of checking a log: the readable records, and all damage.
package struct LogVerification: Sendable, Hashable {
  /// The sequence numbers of the intact records from the first kept one up to the first damage; nil
  /// if there are none.
  package var records: ClosedRange<Int>?
  /// The sequence numbers of all readable records, in order: one range if nothing is damaged,
  /// otherwise the ranges before, between and after the damaged places.
  package var readable: [ClosedRange<Int>] = []
  /// The number of segments.
  package var segments = 0
  /// The sequence numbers of the intact snapshots.
  package var snapshots: [Int] = []
  /// All damage. After damage in one segment, checking goes on with the next.
  package var damage: [LogDamage] = []
  /// The number of bytes at the end that belong to incomplete records. Opening the log for writing
  /// cuts them off.
  package var tornBytes = 0
  /// The number of bytes in segments that are ignored, because a sync failed after they were
  /// written and their content was written again to another segment.
  package var abandonedBytes = 0

  /// True if nothing is damaged. A torn tail is not damage.
  package var isWhole: Bool { damage.isEmpty }
}
