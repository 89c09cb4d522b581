import Foundation

/// The first line of a segment. It names the log, and the valid length of the segment before it.
///
/// Bytes of the earlier segment beyond that length are ignored: they were written before a sync
/// failed, and were written again to this segment.
struct SegmentHeader: Hashable {
  /// The version of the format that this code writes and reads.
  static let format = 1

  struct Predecessor: Hashable {
    /// The sequence number of its first record.
    var first: Int
    /// The number of its valid bytes.
    var bytes: Int
  }

  var log: UUID
  var first: Int
  /// Nil in the first segment of a log.
  var after: Predecessor?

  var line: [UInt8] {
    var object: JSONObject = [
      "format": .integer(Int64(Self.format)), "log": .string(log.wireText),
    ]
    if let after {
      object["after"] = [
        "first": .integer(Int64(after.first)), "bytes": .integer(Int64(after.bytes)),
      ]
    }
    var payload: [UInt8] = []
    JSONValue.object(object).write(to: &payload)
    var line: [UInt8] = []
    LogLine.append(
      sequence: first - 1, kind: .segment, synced: first - 1, payload: payload, to: &line)
    return line
  }

  /// Reads the header of a segment whose file name gives `first` as its first sequence number.
  init(_ line: LogLine, _ payload: [UInt8], first: Int, file: String) throws(LogError) {
    func wrong(_ problem: String) -> LogError {
      .damaged(LogDamage(problem, file: file, offset: 0, sequence: first))
    }
    guard line.kind == .segment else {
      throw wrong("it does not begin with the header of a segment")
    }
    let header = try HeaderPayload(payload, file: file, sequence: first)
    guard line.sequence == first - 1 else {
      throw wrong("it has the name of another segment")
    }
    self.first = first
    log = header.log
    if let after = header.object["after"] {
      guard case .object(let object) = after, let first = object.count("first"),
        let bytes = object.count("bytes")
      else { throw wrong("its header is incomplete") }
      self.after = Predecessor(first: first, bytes: bytes)
    }
  }

  init(log: UUID, first: Int, after: Predecessor?) {
    self.log = log
    self.first = first
    self.after = after
  }
}

/// The first line of a snapshot. All lines of a snapshot form one batch.
struct SnapshotHeader: Hashable {
  var log: UUID
  var sequence: Int
  /// The number of state lines that follow; the remaining lines are records that the snapshot
  /// keeps.
  var stateCount: Int

  /// Returns the encoded line; `rest` is the number of lines that follow.
  func line(rest: Int) -> [UInt8] {
    let object: JSONObject = [
      "format": .integer(Int64(SegmentHeader.format)), "log": .string(log.wireText),
      "state": .integer(Int64(stateCount)),
    ]
    var payload: [UInt8] = []
    JSONValue.object(object).write(to: &payload)
    var line: [UInt8] = []
    LogLine.append(
      sequence: sequence, kind: .snapshot, rest: rest, synced: sequence, payload: payload,
      to: &line)
    return line
  }

  init(_ line: LogLine, _ payload: [UInt8], sequence: Int, file: String) throws(LogError) {
    func wrong(_ problem: String) -> LogError {
      .damaged(LogDamage(problem, file: file, offset: 0, sequence: sequence))
    }
    guard line.kind == .snapshot else {
      throw wrong("it does not begin with the header of a snapshot")
    }
    let header = try HeaderPayload(payload, file: file, sequence: sequence)
    guard line.sequence == sequence else { throw wrong("it has the name of another snapshot") }
    guard let stateCount = header.object.count("state"), stateCount <= line.rest else {
      throw wrong("its header is incomplete")
    }
    self.log = header.log
    self.sequence = sequence
    self.stateCount = stateCount
  }

  init(log: UUID, sequence: Int, stateCount: Int) {
    self.log = log
    self.sequence = sequence
    self.stateCount = stateCount
  }
}

/// The fields that both headers share.
private struct HeaderPayload {
  let object: JSONObject
  let log: UUID

  init(_ payload: [UInt8], file: String, sequence: Int) throws(LogError) {
    guard case .object(let object)? = try? JSONValue(parsing: payload),
      let format = object.count("format")
    else {
      throw .damaged(
        LogDamage("its header is no header", file: file, offset: 0, sequence: sequence))
    }
    guard format <= SegmentHeader.format else { throw .newerVersion(file: file, version: format) }
    guard case .string(let text)? = object["log"], let log = UUID(wireText: text) else {
      throw .damaged(
        LogDamage("its header names no log", file: file, offset: 0, sequence: sequence))
    }
    self.object = object
    self.log = log
  }
}

extension JSONObject {
  /// Returns the non-negative integer at a key; nil if the value is anything else.
  fileprivate func count(_ key: String) -> Int? {
    guard case .integer(let number)? = self[key], number >= 0 else { return nil }
    return Int(number)
  }
}
