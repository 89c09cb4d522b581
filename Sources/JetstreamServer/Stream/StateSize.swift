import Foundation
import Jetstream

/// The approximate size of a scope's full state, which is measured again and again while the scope's stream grows.
///
/// The models are read a few hundred at a time, in turns in which the scope was changed: no turn takes long, and a
/// scope that does not change costs nothing. What values grow by meanwhile may be counted twice, and models that come or
/// go may be missed. The next measurement begins when the stream has grown by twice the size, so that each byte of the
/// stream costs the same, whatever the size of the scope. Until then the scope may grow to three times what was measured,
/// or shrink. A scope with a limit is measured again when it may have reached that.
struct StateSize {
  /// The size in bytes; nil if it was not measured yet, or is larger than any stream.
  private(set) var bytes: Int?
  /// The size from which on the scope is not read further.
  private let most: Int
  /// The size that the scope may have; nil for no limit.
  private let scopeBytes: Int?
  /// The average size of a model at the last measurement, or of those that were read of a scope that is too large; nil
  /// before the first.
  private var bytesPerModel: Double?
  /// The number of bytes by which clients have made values longer since the last measurement was begun.
  private var growth = 0
  /// The part of it that came before the measurement that goes on.
  private var earlierGrowth = 0
  /// The number of bytes that are read in a turn.
  private let partBytes: Int
  /// The UUIDs of the models that are still to be read; empty between two measurements.
  private var open: [UUID] = []
  /// Those that were read, or are still to be read: a model that many others hold is read once.
  private var known: Set<UUID> = []
  /// The size of the models that were read.
  private var counted = 0
  /// The number of models that were read.
  private var models = 0
  /// The size of all that was ever appended to the stream when the next turn is due.
  private var dueAt: Int

  init(_ limit: ScopeStream.Extent) {
    most = max(limit.bytes, limit.scopeBytes ?? 0)
    scopeBytes = limit.scopeBytes
    partBytes = max(4, limit.leastBytes)
    dueAt = partBytes / 4
  }

  /// Returns the size by now: as many times the average of the last measurement as there are models, so that additions and
  /// removals count at once, and what values have grown by. What they grow by during a measurement may count twice until
  /// the next one.
  func estimate(of models: Int) -> Int {
    max(0, Int(min((bytesPerModel ?? 0) * Double(models), 1e18)) + growth)
  }

  /// Notes the number of bytes by which a change set has made values longer; negative for shorter.
  mutating func note(growth bytes: Int) { growth += bytes }

  /// Returns true if the stream has grown enough.
  func isDue(at totalBytes: Int) -> Bool { totalBytes >= dueAt }

  /// Reads some models, from the beginning if all were read.
  ///
  /// - Parameter totalBytes: the size of all that was ever appended to the stream.
  /// - Returns: true if ``bytes`` is new.
  mutating func measure(_ content: any HostedContent, at totalBytes: Int) -> Bool {
    if open.isEmpty {
      (counted, models, earlierGrowth) = (0, 0, growth)
      open = content.unknownModelUUIDs().sorted(by: <) + [content.root?.uuid].compactMap(\.self)
      known = Set(open)
    }
    let end = counted + partBytes
    while counted < end, let uuid = open.popLast() {
      models += 1
      if let model = content.sharedModel(uuid) {
        counted += content.fragment(of: model, .add).roughSize
        content.forEachChild(of: model) { if known.insert($0).inserted { open.append($0) } }
      } else if let unknown = content.unknownModel(uuid) {
        counted += unknown.roughSize
      }
    }
    guard open.isEmpty || counted >= most else {
      dueAt = totalBytes + partBytes / 4
      return false
    }
    bytes = open.isEmpty ? counted : nil
    bytesPerModel = Double(counted) / Double(max(1, models))
    growth -= earlierGrowth
    (open, known) = ([], [])
    // A state grows by no more than the stream. Near the limit, or above it, a fourth is worth another measurement.
    let room = scopeBytes.map { max($0 - counted, counted / 4) } ?? .max
    dueAt = totalBytes + max(partBytes / 4, min(2 * counted, room))
    return true
  }
}
