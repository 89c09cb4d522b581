import Foundation
import Jetstream

/// Measuring the full state, for the amount of change sets that are kept and for the limit on the size of the scope.
extension ScopeOrder {
  /// Measures a part of the full state if that is due, and keeps as much of the stream as it is worth.
  func measureState() { stream.measureState(of: content) }

  /// Measures the full state of a scope with a limit on its size, as far as that was not done when its rows were made:
  /// what clients may add depends on it. Cost: O(n).
  func measureWholeState() {
    if !hasSizeLimit { return measureState() }
    guard let rows = content as? RowsContent, let (bytes, count) = rows.takeMeasuredSize() else {
      return stream.measureWholeState(of: content)
    }
    stream.takeSize(bytes: bytes, ofModels: count)
  }

  /// True if there is a limit on the size of the scope.
  var hasSizeLimit: Bool { stream.limit.scopeBytes != nil }

  /// The number of bytes by which the scope may get larger; nil if there is no limit.
  var sizeRoom: Int? {
    stream.limit.scopeBytes.map { max(0, $0 - stream.estimatedBytes(of: modelCount)) }
  }

  /// Looks at a part of a scope that is about to refuse a change set: what has filled it may be gone. Cost: that of reading
  /// a few hundred models, unless nothing has changed since the scope was measured.
  ///
  /// - Returns: the number of models that were read, which is charged to the session that has sent the change set.
  func measureForRefusal() -> Int {
    hasSizeLimit ? stream.measureForRefusal(content) : 0
  }

  /// Returns true if there is room for the growth by a change set, after another look at a scope that seems to be full.
  ///
  /// - Parameter effort: grows by the number of models that were looked at, if there seems to be no room: those that come in
  ///   count with the change set that brings them.
  func hasRoom(for growth: Growth, in room: Room, _ effort: inout Int) -> Bool {
    let bytes = growth.total
    if bytes <= room.bytes { return true }
    effort += growth.effort
    guard room.limit == .bytesPerScope else { return false }
    let read = measureForRefusal()
    effort += read
    return read > 0 && bytes <= sizeRoom ?? .max
  }

  /// Notes that accepted fragments make the values of models longer.
  func note(_ growth: Growth) {
    if growth.lengths.isEmpty { return }
    stream.noteSize { size in
      for (uuid, bytes) in growth.lengths { size.note(growth: bytes, of: uuid) }
    }
  }

  /// Returns the sizes of the models that the submission has taken out, each nil if it is in the scope all the same. Call it
  /// before the passage is closed.
  ///
  /// - Parameters:
  ///   - known: the models of unknown classes that were there before.
  ///   - kept: those that are there now.
  func departures(from known: Set<UUID>, keeping kept: Set<UUID>) -> [UUID: Int?] {
    var result: [UUID: Int?] = [:]
    for model in passage.lost {
      let isGone = content.isGone(model) && !kept.contains(model.uuid)
      result.updateValue(isGone ? model.additionBytes : nil, forKey: model.uuid)
    }
    let gone = known == kept ? [] : known.subtracting(kept)
    for uuid in gone
    where !result.keys.contains(uuid) && content.sharedModel(uuid) == nil {
      // One that is forgotten at once counts like the average.
      if let model = content.unknownModel(uuid) {
        result.updateValue(model.roughSize, forKey: uuid)
      }
    }
    return result
  }

  /// Notes the sizes of the models that the submission has brought in, and of those that it has taken out. One that has done
  /// both was there before, or is not there now.
  ///
  /// - Parameters:
  ///   - done: the applied fragments, with the values that models have now.
  ///   - known: the models of unknown classes that were there before.
  func noteArrivals(_ done: [SyncFragment], unknown known: Set<UUID>, _ departed: [UUID: Int?]) {
    let came = Set(passage.arrived.map(\.uuid)).subtracting(known)
    stream.noteSize { size in
      for (uuid, bytes) in departed where !came.contains(uuid) {
        if let bytes { size.note(departureOf: uuid, bytes: bytes) }
      }
      for fragment in done where fragment.kind == .add {
        let uuid = fragment.uuid
        let isUnknown = content.sharedModel(uuid) == nil && !known.contains(uuid)
        guard isUnknown || came.contains(uuid), !departed.keys.contains(uuid) else { continue }
        size.note(arrivalOf: uuid, bytes: fragment.roughSize)
      }
    }
  }

  /// Notes the sizes of the models that a change set of the server's own has brought in, and of those that it has removed,
  /// which its inverse adds again.
  func notePassage(_ set: ChangeSet) {
    stream.noteSize { size in
      for fragment in set.undo where fragment.kind == .add {
        size.note(departureOf: fragment.uuid, bytes: fragment.roughSize)
      }
      for fragment in set.fragments where fragment.kind == .add {
        size.note(arrivalOf: fragment.uuid, bytes: fragment.roughSize)
      }
    }
  }
}
