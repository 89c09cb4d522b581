/// The result of checking a log: what can be read, and what is damaged.
package struct LogVerification: Sendable, Hashable {
  /// The numbers of the records that are kept and whole, from the first to the first damage.
  package var records: ClosedRange<Int>?
  /// The numbers of all records that can be read, in order: one range if nothing is damaged, and otherwise
  /// those before, between and behind the damaged places.
  package var readable: [ClosedRange<Int>] = []
  /// How many segments there are.
  package var segments = 0
  /// What the snapshots that are whole stand for.
  package var snapshots: [Int] = []
  /// All that is damaged. Behind damage in one segment, checking goes on with the next.
  package var damage: [LogDamage] = []
  /// How many bytes at the end belong to records that are incomplete. Opening the log for writing cuts
  /// them off.
  package var tornBytes = 0
  /// How many bytes of segments do not count, since a sync failed after they were written and what they
  /// held was written again to another segment.
  package var abandonedBytes = 0

  /// Whether nothing is damaged. A torn tail is none.
  package var isWhole: Bool { damage.isEmpty }
}
