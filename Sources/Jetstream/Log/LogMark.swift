/// The content of the file `lock`: whether a process has the log open, and which records are durable. It tells
/// followers in other processes how far they may read, and the next one that opens or reads the log which records
/// have to be there.
///
/// The mark is no part of the log, and is not synced when a record is. After a crash it may be an older one, or
/// unreadable; it says less than is there then. It never says more: the writer syncs the records first, then
/// writes the mark. So a record that the mark calls synced and that is missing was taken away later.
///
/// The oldest snapshot is noted in a mark that is synced, when the first one has been made and before any is removed:
/// an older mark would name one that the log itself has removed since.
struct LogMark: Hashable {
  /// True while a process has the log open for writing, and after it was killed.
  var isOpen: Bool
  /// The last record that is durable in the sense of the writer's configuration. With
  /// ``LogDurability/none`` it may be ahead of `synced`, and a power cut may take it.
  var durable: Int
  /// The last record that was on stable storage when the mark was written.
  var synced: Int
  /// The oldest snapshot, which must not go while no later one is noted here; nil if there is none.
  var snapshot: Int?

  /// One line, always of the same length.
  var line: [UInt8] {
    var line: [UInt8] = []
    line.reserveCapacity(192)
    line.append(contentsOf: (isOpen ? #"{"open": true,"# : #"{"open":false,"#).utf8)
    Self.append(durable, as: #""durable":""#, to: &line)
    Self.append(synced, as: #"","synced":""#, to: &line)
    Self.append(snapshot, as: #"","snapshot":""#, to: &line)
    line.append(contentsOf: #"","crc":""#.utf8)
    let checksum = line.withUnsafeBufferPointer(LogChecksum.of)
    LogLine.append(checksum: checksum, to: &line)
    line.append(contentsOf: "\"}\n".utf8)
    return line
  }

  /// Appends a number in twenty digits, or twenty hyphens.
  private static func append(_ number: Int?, as key: String, to line: inout [UInt8]) {
    line.append(contentsOf: key.utf8)
    let digits = (number.map(String.init) ?? "").utf8
    let filler = UInt8(ascii: number == nil ? "-" : "0")
    line.append(contentsOf: repeatElement(filler, count: 20 - digits.count))
    line.append(contentsOf: digits)
  }

  /// - Parameter synced: the same as `durable`, unless given.
  init(isOpen: Bool, durable: Int, synced: Int? = nil, snapshot: Int? = nil) {
    self.isOpen = isOpen
    self.durable = durable
    self.synced = synced ?? durable
    self.snapshot = snapshot
  }

  /// The mark in a directory; nil if there is none that can be read.
  init?(_ directory: any LogDirectory) {
    var bytes: [UInt8] = []
    guard let file = try? directory.open(LogNames.lock, for: .reading),
      (try? file.read(at: 0, 256, appendingTo: &bytes)) != nil,
      case .object(let object)? = try? JSONValue(parsing: bytes),
      case .bool(let isOpen)? = object["open"],
      let durable = Self.number(object["durable"]), let synced = Self.number(object["synced"])
    else { return nil }
    self.init(
      isOpen: isOpen, durable: durable, synced: synced, snapshot: Self.number(object["snapshot"]))
    guard line == bytes else { return nil }
  }

  private static func number(_ value: JSONValue?) -> Int? {
    guard case .string(let text)? = value, let number = Int(text), number >= 0 else { return nil }
    return number
  }
}

extension LogMark {
  /// How many records were synced, as half a sentence.
  var knownRecords: String {
    "\(synced == 1 ? "1 record was" : "\(synced) records were") known to be durable"
  }

  /// The damage where a log ends with record `last` although later ones were synced; nil if none is missing.
  ///
  /// - Parameters:
  ///   - segment: the first record of the last segment.
  ///   - offset: where the last record that is whole ends there.
  ///   - first: the first record that is kept.
  func missingEnd(
    behind last: Int, inSegment segment: Int, at offset: Int, first: Int
  ) -> LogDamage? {
    guard synced > last else { return nil }
    let left = last == 0 ? "none is" : last == 1 ? "only 1 is" : "only \(last) are"
    return LogDamage(
      "\(knownRecords), but \(left) there", file: LogNames.segment(segment),
      offset: offset, sequence: last + 1, readable: first <= last ? first...last : nil)
  }

  /// The oldest snapshot of a log, if it is missing; nil if it is there, and if there is none.
  ///
  /// A writer may be removing it just now. But it names a later one before it does: if the same one is named before and
  /// after the files were listed, the log has not removed it.
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
  /// The damage of a log whose oldest snapshot is missing.
  init(missingSnapshot sequence: Int, readable: ClosedRange<Int>?) {
    self.init(
      "it is missing, and the records behind it depend on it", file: LogNames.snapshot(sequence),
      offset: 0, sequence: sequence, readable: readable)
  }
}
