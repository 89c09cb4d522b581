import Foundation

/// The times until which properties with a minimal sync interval are held back.
///
/// Contains only properties whose interval has not passed: all others cost nothing.
struct SyncThrottle {
  private struct Key: Hashable {
    let uuid: UUID
    let index: Int
  }

  private var ends: [Key: Duration] = [:]

  /// The time at which the first interval ends; nil if no interval is running.
  var nextEnd: Duration? { ends.isEmpty ? nil : ends.values.min() }

  /// True while the property waits for its interval to pass.
  func holdsBack(_ index: Int, of record: ModelRecord) -> Bool {
    !ends.isEmpty && ends[Key(uuid: record.uuid, index: index)] != nil
  }

  /// Starts the intervals of the properties of `record` that a change set made at `now` contains.
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

  /// Gives the intervals of a model that is renamed to its new UUID.
  mutating func rename(_ old: UUID, to new: UUID) {
    for (key, end) in ends where key.uuid == old {
      ends[key] = nil
      ends[Key(uuid: new, index: key.index)] = end
    }
  }

  /// Forgets the intervals that have passed.
  mutating func forget(endedBy now: Duration) {
    if ends.isEmpty { return }
    ends = ends.filter { $0.value > now }
  }

  /// The number of running intervals; for tests.
  var count: Int { ends.count }
}
