import Foundation

/// The content of the file `lock`: whether a process has the log open, and which records are
/// durable. Followers in other processes learn from it how far they may read, and the next process
/// that opens or reads the log learns which records must exist.
///
/// The mark is not synced with each record, so after a crash it may be outdated or unreadable, and
/// then claims less than the log has. It never claims more, because the writer syncs the records
/// before it writes the mark. A record that the mark calls synced and that is missing was therefore
/// lost later.
///
/// The oldest snapshot is written in a mark that is synced: after the first snapshot was made, and
/// before any snapshot is removed. Without the sync, an old mark could name a snapshot that the log
/// itself has removed. If the first one cannot be noted, it counts all the same: a mark that names none
/// claims less, and those that are written later name it.
///
/// Records that count as durable before they are synced are noted in a mark that is synced before the
/// first of them counts, with the boot of the machine. So that mark, or a later one, is there after a
/// power failure. If the machine has been started again since, records that counted may be missing.
struct LogMark: Hashable {
  /// True while a process has the log open for writing, and after such a process was killed.
  var isOpen: Bool
  /// The last record that is durable under the configuration of the writer. With
  /// ``LogDurability/none`` it may be ahead of `synced`, and a power failure may lose it.
  var durable: Int
  /// The last record that was on stable storage when the mark was written.
  var synced: Int
  /// The oldest snapshot; nil if there is none. It must not be removed before a later one is noted
  /// here.
  var snapshot: Int?
  /// The boot of the machine in which records count as durable that are not synced; nil if there are
  /// none. It is one that no machine has if the log may have lost such records, and nothing was done
  /// about that yet.
  var unsyncedBoot: UUID?

  /// The encoded mark: one line, of one length with a boot, and of a shorter one without. Older versions
  /// know no boot, and can read the shorter one.
  var line: [UInt8] {
    var line: [UInt8] = []
    line.reserveCapacity(192)
    line.append(contentsOf: (isOpen ? #"{"open": true,"# : #"{"open":false,"#).utf8)
    Self.append(durable, as: #""durable":""#, to: &line)
    Self.append(synced, as: #"","synced":""#, to: &line)
    Self.append(snapshot, as: #"","snapshot":""#, to: &line)
    if let unsyncedBoot {
      line.append(contentsOf: #"","boot":""#.utf8)
      line.append(contentsOf: unsyncedBoot.wireText.utf8)
    }
    line.append(contentsOf: #"","crc":""#.utf8)
    let checksum = line.withUnsafeBufferPointer(LogChecksum.of)
    LogLine.append(checksum: checksum, to: &line)
    line.append(contentsOf: "\"}\n".utf8)
    return line
  }

  /// Appends a number as twenty digits, or twenty hyphens for nil.
  private static func append(_ number: Int?, as key: String, to line: inout [UInt8]) {
    line.append(contentsOf: key.utf8)
    let digits = (number.map(String.init) ?? "").utf8
    let filler = UInt8(ascii: number == nil ? "-" : "0")
    line.append(contentsOf: repeatElement(filler, count: 20 - digits.count))
    line.append(contentsOf: digits)
  }

  /// - Parameter synced: The last record on stable storage; `durable` by default.
  init(
    isOpen: Bool, durable: Int, synced: Int? = nil, snapshot: Int? = nil, unsyncedBoot: UUID? = nil
  ) {
    self.isOpen = isOpen
    self.durable = durable
    self.synced = synced ?? durable
    self.snapshot = snapshot
    self.unsyncedBoot = unsyncedBoot
  }

  /// Reads the mark of a directory for an opening; nil if there is none, or none that is whole, as after a crash.
  ///
  /// - Throws: ``LogError/file(_:)`` if the file is there and cannot be read: an opening replaces the mark, and with it
  ///   what may be known of records that are missing.
  static func read(in directory: any LogDirectory) throws(LogError) -> LogMark? {
    let line = try reading { () throws(LogFileError) in try bytes(in: directory) }
    return line.flatMap { LogMark($0) }
  }

  /// Reads the mark of a directory for a reader; nil if there is none that can be read.
  init?(_ directory: any LogDirectory) {
    guard let bytes = try? Self.bytes(in: directory) else { return nil }
    self.init(bytes)
  }

  /// Returns the content of the lock file; nil if there is none.
  static func bytes(in directory: any LogDirectory) throws(LogFileError) -> [UInt8]? {
    var bytes: [UInt8] = []
    do throws(LogFileError) {
      let file = try directory.open(LogNames.lock, for: .reading)
      _ = try file.read(at: 0, 256, appendingTo: &bytes)
    } catch {
      if error.code == POSIXLogDirectory.notFound { return nil }
      throw error
    }
    return bytes
  }

  /// Decodes the content of a lock file; nil if it does not begin with a whole mark. Behind it may be the
  /// end of a longer one, which it has replaced.
  init?(_ bytes: [UInt8]) {
    guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    let first = Array(bytes[...end])
    guard
      case .object(let object)? = try? JSONValue(parsing: first),
      case .bool(let isOpen)? = object["open"],
      let durable = Self.number(object["durable"]), let synced = Self.number(object["synced"])
    else { return nil }
    var boot: UUID?
    if case .string(let text)? = object["boot"] { boot = UUID(uuidString: text) }
    self.init(
      isOpen: isOpen, durable: durable, synced: synced, snapshot: Self.number(object["snapshot"]),
      unsyncedBoot: boot)
    guard line == first else { return nil }
  }

  private static func number(_ value: JSONValue?) -> Int? {
    guard case .string(let text)? = value, let number = Int(text), number >= 0 else { return nil }
    return number
  }
}

extension LogFile {
  /// Writes a mark to the file, and removes what a longer one has left behind it.
  func write(_ mark: LogMark) throws(LogFileError) {
    let line = mark.line
    try writeAll(line, at: 0)
    guard try size() > line.count else { return }
    try again { () throws(LogFileError) in try truncate(to: line.count) }
  }
}

extension LogMark {
  /// The number of records known to be synced, as a clause.
  var knownRecords: String {
    "\(synced == 1 ? "1 record was" : "\(synced) records were") known to be durable"
  }

  /// Returns true if the log was closed when record `last` was its last one and `oldestSnapshot` its
  /// oldest snapshot. If the log has anything that the mark does not know, a process has written to
  /// it that could not write the mark.
  func wasClosed(behind last: Int, oldestSnapshot: Int?) -> Bool {
    !isOpen && synced == last && snapshot == oldestSnapshot
  }

  /// Returns true if the log may have lost records that counted as durable and were not synced.
  ///
  /// - Parameters:
  ///   - last: The last record that is there.
  ///   - boot: The current boot of the machine.
  func mayHaveLostEnd(behind last: Int, in boot: UUID) -> Bool {
    guard let unsyncedBoot else { return false }
    return unsyncedBoot != boot || durable > last
  }

  /// Notes that all records up to `last` are on stable storage, and that there are no others.
  ///
  /// - Parameter boot: The current boot of the machine.
  mutating func settle(at last: Int, in boot: UUID) {
    (durable, synced) = (last, last)
    if unsyncedBoot == boot { unsyncedBoot = nil }
  }

  /// Returns the damage of a log that ends with record `last` although later ones were synced; nil
  /// if none is missing.
  ///
  /// - Parameters:
  ///   - segment: The first record of the last segment.
  ///   - offset: The offset in that segment behind the last complete record.
  ///   - first: The first record that is kept.
  func missingEnd(
    behind last: Int, inSegment segment: Int, at offset: Int, first: Int
  ) -> LogDamage? {
    guard synced > last else { return nil }
    let left = last == 0 ? "none is" : last == 1 ? "only 1 is" : "only \(last) are"
    return LogDamage(
      "\(knownRecords), but \(left) there", file: LogNames.segment(segment),
      offset: offset, sequence: last + 1, readable: first <= last ? first...last : nil)
  }

  /// Returns the oldest snapshot of a log if its file is missing; nil if it exists or there is
  /// none.
  ///
  /// A writer may be removing the snapshot at this moment, but it names a later one in the mark
  /// first. So if the mark names the same snapshot before and after the files were listed, the log
  /// has not removed it.
  static func missingSnapshot(_ directory: any LogDirectory) throws(LogError) -> Int? {
    var mark = LogMark(directory)
    while let snapshot = mark?.snapshot {
      if try LogFiles(directory).snapshots.contains(snapshot) { return nil }
      let again = LogMark(directory)
      if again?.snapshot == snapshot { return snapshot }
      mark = again
    }
    return nil
  }
}

extension LogDamage {
  /// Makes the damage of a log whose oldest snapshot is missing.
  init(missingSnapshot sequence: Int, readable: ClosedRange<Int>?) {
    self.init(
      "it is missing, and the records behind it depend on it", file: LogNames.snapshot(sequence),
      offset: 0, sequence: sequence, readable: readable)
  }
}
