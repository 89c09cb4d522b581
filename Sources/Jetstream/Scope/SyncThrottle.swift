import Foundation

/// Until when properties with a minimal sync interval are held back.
///
/// Knows only those whose interval has not passed: what is in none costs nothing.
struct SyncThrottle {
  private struct Key: Hashable {
    let uuid: UUID
    let index: Int
  }

  private var ends: [Key: Duration] = [:]

  /// When the first interval ends; nil if none goes on.
  var nextEnd: Duration? { ends.isEmpty ? nil : ends.values.min() }

  /// Whether a property waits for its interval to pass.
  func holdsBack(_ index: Int, of record: ModelRecord) -> Bool {
    !ends.isEmpty && ends[Key(uuid: record.uuid, index: index)] != nil
  }

  /// A change set at `now` carries the named properties of `record`.
  mutating func note(
    _ content: PropertyDifferences.Content, of record: ModelRecord, at now: Duration
  ) {
    for property in record.schema.throttledProperties {
      guard let interval = property.options.minSyncInterval,
        content.values[property.wireName] != nil || !content.operations[property.wireName].isEmpty
      else { continue }
      ends[Key(uuid: record.uuid, index: property.index)] = now + interval
    }
  }

  /// Forgets the intervals that have passed.
  mutating func forget(endedBy now: Duration) {
    if ends.isEmpty { return }
    ends = ends.filter { $0.value > now }
  }

  /// How many intervals go on; for tests.
  var count: Int { ends.count }
}
