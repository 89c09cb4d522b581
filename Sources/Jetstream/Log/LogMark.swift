/// What the file `lock` says to readers in other processes: whether the log is open, and up to which
/// record it is durable. It is no part of the log; after a crash it may say less than is there.
struct LogMark: Hashable {
  var isOpen: Bool
  var durable: Int

  /// One line, always of the same length.
  var line: [UInt8] {
    let digits = String(durable)
    var line = Array(
      """
      {"open":\(isOpen ? " true" : "false"),"durable":"\
      \(String(repeating: "0", count: 20 - digits.count))\(digits)","crc":"
      """.utf8)
    let checksum = line.withUnsafeBufferPointer(LogChecksum.of)
    LogLine.append(checksum: checksum, to: &line)
    line.append(contentsOf: "\"}\n".utf8)
    return line
  }

  init(isOpen: Bool, durable: Int) {
    self.isOpen = isOpen
    self.durable = durable
  }

  /// The mark in a directory; nil if there is none that can be read.
  init?(_ directory: any LogDirectory) {
    var bytes: [UInt8] = []
    guard let file = try? directory.open(LogNames.lock, for: .reading),
      (try? file.read(at: 0, 128, appendingTo: &bytes)) != nil,
      case .object(let object)? = try? JSONValue(parsing: bytes),
      case .bool(let isOpen)? = object["open"], case .string(let text)? = object["durable"],
      let durable = Int(text)
    else { return nil }
    self.init(isOpen: isOpen, durable: durable)
    guard line == bytes else { return nil }
  }
}
