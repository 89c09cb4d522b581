/// The file of the segment that a log writes to.
enum SegmentFile {
  case open(any LogFile)
  /// The file is closed, so that it takes no descriptor, and all of it is on stable storage.
  case atRest(SegmentFingerprint)

  /// The open file; nil while it is at rest.
  var opened: (any LogFile)? {
    if case .open(let file) = self { file } else { nil }
  }

  /// Returns the identity that the file has, or had when it was closed.
  func identity() throws(LogFileError) -> LogFileIdentity? {
    switch self {
    case .open(let file): try file.identity()
    case .atRest(let fingerprint): fingerprint.identity
    }
  }
}

/// The features by which a log recognizes its segment when it opens the file again.
///
/// While a file is open, the system gives its identity to no other file. A file that is closed can be removed, and the
/// next file that is made often gets the number of the removed one, as when a directory is replaced by a copy of
/// another. The identity is therefore not enough. The first bytes, which contain the identifier of the log, and the last
/// ones, which contain the checksums of lines, tell a file of another log, an older copy, and a file that was cut off.
struct SegmentFingerprint: Equatable {
  let identity: LogFileIdentity?
  /// The number of bytes that are on stable storage.
  private let end: Int
  /// The checksum of the first and the last of them.
  private let checksum: UInt32

  /// The maximum number of bytes that are compared at the beginning, and at the end.
  private static let maximumBytes = 256

  /// Takes the fingerprint of an open file; nil if the file has fewer than `end` bytes.
  init?(_ file: any LogFile, upTo end: Int) throws(LogFileError) {
    var bytes: [UInt8] = []
    let count = min(end, Self.maximumBytes)
    for start in [0, end - count] {
      guard try file.read(at: start, count, appendingTo: &bytes) == count else { return nil }
    }
    identity = try file.identity()
    self.end = end
    checksum = LogChecksum.of(bytes)
  }

  /// Opens the file with this fingerprint; returns nil if `name` leads to none or to another one.
  func reopen(
    _ name: String, in directory: any LogDirectory
  ) throws(LogFileError) -> (any LogFile)? {
    guard try directory.isInPlace(identity, name) else { return nil }
    let file = try directory.open(name, for: .writing)
    let isSame: Bool
    do throws(LogFileError) {
      isSame = try SegmentFingerprint(file, upTo: end) == self
    } catch {
      file.close()
      throw error
    }
    if !isSame { file.close() }
    return isSame ? file : nil
  }
}
