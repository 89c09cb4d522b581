import Foundation
import Jetstream

/// The approximate size of a scope's full state, which is measured again and again while the scope's stream grows.
///
/// The models are read a few hundred at a time, in turns of their own after the scope was changed: no turn takes long, and a
/// scope that does not change costs nothing. The next measurement begins when the stream has grown by twice the size, so
/// that each byte of the stream costs the same, whatever the size of the scope. Until then the scope may grow to three
/// times what was measured, or shrink.
///
/// A scope with a limit is measured as a whole when it is hosted, and again when it may have reached the limit. In between,
/// and during a measurement, the models that come and go are counted with their sizes, and so is what clients make longer or
/// shorter. What is left out, such as the longer values of the app, is in the stream, and each part of the state is due at
/// a size of the stream: a large change set makes several due, each of which is read in a turn of its own.
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
  /// The number of bytes by which the scope has grown since the last measurement, beyond the average for each model that
  /// has come or gone.
  private var growth = 0
  /// The part of it that the measurement which goes on contains.
  private var measuredGrowth = 0
  /// The number of bytes that are read in a turn.
  private let partBytes: Int
  /// The UUIDs of the models that are still to be read; empty between two measurements.
  private var open: [UUID] = []
  /// The models that were found, each with true once it was read: a model that many others hold is read once.
  private var found: [UUID: Bool] = [:]
  /// The size of the models that were read.
  private var counted = 0
  /// The number of models that were read.
  private var models = 0
  /// The size of all that was ever appended to the stream when the next part is due.
  private var dueAt: Int
  /// The size of all that was ever appended to the stream when the last measurement was begun; nil before the first.
  private var begunAt: Int?

  init(_ limit: ScopeStream.Extent) {
    most = max(limit.bytes, limit.scopeBytes ?? 0)
    scopeBytes = limit.scopeBytes
    partBytes = max(4, limit.leastBytes)
    dueAt = partBytes / 4
  }

  /// Returns the size by now: as many times the average of the last measurement as there are models, and what has come on
  /// top of that.
  func estimate(of models: Int) -> Int {
    max(0, Int(min((bytesPerModel ?? 0) * Double(models), 1e18)) + growth)
  }

  // MARK: Changes

  /// Notes the number of bytes by which a change set has made the values of a model longer; negative for shorter.
  mutating func note(growth bytes: Int, of model: UUID) {
    growth += bytes
    // A model that was not read yet is read as it is by now.
    if isMeasuring, found[model] != true { measuredGrowth += bytes }
  }

  /// Notes a model that has come into the scope, with its size.
  mutating func note(arrivalOf model: UUID, bytes: Int) {
    let difference = bytes - averageBytes
    growth += difference
    guard isMeasuring else { return }
    measuredGrowth += difference
    if found.updateValue(true, forKey: model) == true { return }
    counted += bytes
    models += 1
  }

  /// Notes a model that has left the scope, with its size.
  mutating func note(departureOf model: UUID, bytes: Int) {
    let difference = bytes - averageBytes
    growth -= difference
    guard isMeasuring else { return }
    measuredGrowth -= difference
    guard found.removeValue(forKey: model) == true else { return }
    counted -= bytes
    models -= 1
  }

  private var averageBytes: Int { Int(min(bytesPerModel ?? 0, 1e18)) }

  private var isMeasuring: Bool { !open.isEmpty }

  // MARK: Measuring

  /// Returns true if the stream has grown enough.
  func isDue(at totalBytes: Int) -> Bool { totalBytes >= dueAt }

  /// Reads some models, from the beginning if all were read.
  ///
  /// - Parameter totalBytes: the size of all that was ever appended to the stream.
  /// - Returns: true if ``bytes`` is new.
  mutating func measure(_ content: any HostedContent, at totalBytes: Int) -> Bool {
    if open.isEmpty {
      (counted, models, measuredGrowth, begunAt) = (0, 0, growth, totalBytes)
      open = content.unknownModelUUIDs().sorted(by: <) + [content.root?.uuid].compactMap(\.self)
      found = Dictionary(uniqueKeysWithValues: open.map { ($0, false) })
    }
    let end = counted + partBytes
    while counted < end, let uuid = open.popLast() {
      // It may have left meanwhile, or have come back.
      guard found[uuid] == false else { continue }
      found[uuid] = nil
      if let model = content.sharedModel(uuid) {
        found[uuid] = true
        models += 1
        counted += content.fragment(of: model, .add).roughSize
        content.forEachChild(of: model) { child in
          if found[child] != nil { return }
          found[child] = false
          open.append(child)
        }
      } else if let unknown = content.unknownModel(uuid) {
        found[uuid] = true
        models += 1
        counted += unknown.roughSize
      }
    }
    guard open.isEmpty || counted >= most else {
      // Without a limit, no turn reads more than one part.
      dueAt = (scopeBytes == nil ? totalBytes : min(dueAt, totalBytes)) + partBytes / 4
      return false
    }
    complete(at: totalBytes)
    return true
  }

  /// Reads the next part of a scope that is about to refuse a change set, if there is anything to find out: nothing has
  /// changed since a measurement that was begun at the same size of the stream.
  ///
  /// - Returns: the effort, in models that were read; a large one counts as several. 0 if nothing was read.
  mutating func measureForRefusal(_ content: any HostedContent, at totalBytes: Int) -> Int {
    if !isMeasuring, begunAt == totalBytes { return 0 }
    let before = isMeasuring ? (models, counted) : (0, 0)
    _ = measure(content, at: totalBytes)
    return max(1, models - before.0, (counted - before.1) / 256)
  }

  /// Takes the size of content that was measured elsewhere, and that has not changed since.
  mutating func take(bytes: Int, ofModels count: Int, at totalBytes: Int) {
    (counted, models, measuredGrowth, begunAt) = (bytes, count, growth, totalBytes)
    open = []
    complete(at: totalBytes)
  }

  private mutating func complete(at totalBytes: Int) {
    bytes = open.isEmpty ? counted : nil
    bytesPerModel = Double(counted) / Double(max(1, models))
    growth -= measuredGrowth
    (open, found) = ([], [:])
    // A state grows by no more than the stream. Near the limit, or above it, a fourth is worth another measurement.
    let room = scopeBytes.map { max($0 - counted, counted / 4) } ?? .max
    dueAt = totalBytes + max(partBytes / 4, min(2 * counted, room))
  }
}
