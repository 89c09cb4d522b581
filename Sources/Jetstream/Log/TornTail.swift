/// Distinguishes bytes that never reached the disk from bytes that were damaged later.
///
/// A crash can lose any part of the bytes that were not synced. Since they lie beyond the old end
/// of the file, lost bytes are missing or read as zero. No line contains a zero byte, so a run of
/// zeros up to the end of a sector or of the file shows that bytes were lost.
enum TornTail {
  private static let sector = 512

  /// Returns true if the invalid line at `offset` only lacks bytes that were not synced. The line
  /// begins with record `sequence`, or belongs to a batch that does.
  static func lacksBytes(
    at offset: Int, of file: any LogFile, sequence: Int
  ) throws(LogFileError) -> Bool {
    var rest: [UInt8] = []
    let count = try file.size() - offset
    guard count > 0 else { return true }
    _ = try file.read(at: offset, count, appendingTo: &rest)
    return rest.withUnsafeBufferPointer { bytes in
      let end = bytes.firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
      return hasHole(bytes, before: end, offset: offset)
        && !isSynced(sequence, by: bytes, after: end)
    }
  }

  /// Returns true if a run of zero bytes that begins before `end` reaches the end of a sector or of
  /// the file.
  private static func hasHole(
    _ bytes: UnsafeBufferPointer<UInt8>, before end: Int, offset: Int
  ) -> Bool {
    var position = 0
    while position < end {
      guard bytes[position] == 0 else {
        position += 1
        continue
      }
      let start = position
      while position < bytes.count, bytes[position] == 0 { position += 1 }
      if position == bytes.count { return true }
      if (offset + position) / sector * sector > offset + start { return true }
    }
    return false
  }

  /// Returns true if a later line reports the record as synced: then it was damaged on stable
  /// storage.
  private static func isSynced(
    _ sequence: Int, by bytes: UnsafeBufferPointer<UInt8>, after end: Int
  ) -> Bool {
    var position = end + 1
    while position < bytes.count {
      if case .line(let line) = LogLine.read(bytes, from: position) {
        if line.synced >= sequence { return true }
        position = line.end
      } else if let next = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) {
        position = next + 1
      } else {
        break
      }
    }
    return false
  }
}
