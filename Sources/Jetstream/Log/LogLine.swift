/// One line of a file of a log:
///
///     {"seq":7,"kind":"set","rest":0,"synced":6,"len":24,"crc":"0a1b2c3d","data":{...}}
///
/// The checksum covers the whole line except its own eight digits; what stands behind them, apart from
/// the payload, is the same in every line. There is exactly one way to write a line, and reading accepts
/// no other.
struct LogLine {
  /// The sequence number of the record.
  var sequence: Int
  var kind: LogKind
  /// The number of lines that follow in the same batch. A batch is valid only as a whole.
  var rest: Int
  /// Every record up to this number was on stable storage before the line was written.
  var synced: Int
  /// The range of the payload in the bytes that were read.
  var payload: Range<Int>
  /// The offset behind the line feed of the line.
  var end: Int

  /// The result of reading a line.
  enum Outcome {
    case line(LogLine)
    /// The bytes are the beginning of a valid line, as far as they go.
    case unfinished
    /// The bytes are not a line; the value describes the problem.
    case wrong(String)
  }

  /// The maximum length of a payload, in bytes: a full state that a client has received is one record.
  static let maxPayload = JSONLimits.trusted.maxBytes

  /// Appends a line.
  static func append(
    sequence: Int, kind: LogKind, rest: Int = 0, synced: Int, payload: UnsafeBufferPointer<UInt8>,
    to bytes: inout [UInt8]
  ) {
    let start = bytes.count
    append(fixed: #"{"seq":"#, to: &bytes)
    append(sequence, to: &bytes)
    append(fixed: #","kind":""#, to: &bytes)
    bytes.append(contentsOf: kind.rawValue.utf8)
    append(fixed: #"","rest":"#, to: &bytes)
    append(rest, to: &bytes)
    append(fixed: #","synced":"#, to: &bytes)
    append(synced, to: &bytes)
    append(fixed: #","len":"#, to: &bytes)
    append(payload.count, to: &bytes)
    append(fixed: #","crc":""#, to: &bytes)
    let before = bytes.withUnsafeBufferPointer {
      LogChecksum.of(UnsafeBufferPointer(rebasing: $0[start...]))
    }
    append(checksum: LogChecksum.extend(before, by: payload), to: &bytes)
    append(fixed: #"","data":"#, to: &bytes)
    bytes.append(contentsOf: payload)
    bytes.append(UInt8(ascii: "}"))
    bytes.append(UInt8(ascii: "\n"))
  }

  /// Appends a line.
  static func append(
    sequence: Int, kind: LogKind, rest: Int = 0, synced: Int, payload: [UInt8],
    to bytes: inout [UInt8]
  ) {
    payload.withUnsafeBufferPointer {
      append(sequence: sequence, kind: kind, rest: rest, synced: synced, payload: $0, to: &bytes)
    }
  }

  /// Returns true if any byte is below 0x20. Checks eight bytes at a time: subtracting 0x20 from a
  /// smaller byte sets its highest bit, which the byte itself does not have.
  static func hasControlCharacters(_ bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBytes { raw in
      var position = 0
      while position + 8 <= raw.count {
        let word = raw.loadUnaligned(fromByteOffset: position, as: UInt64.self)
        if (word &- 0x2020_2020_2020_2020) & ~word & 0x8080_8080_8080_8080 != 0 { return true }
        position += 8
      }
      return raw[position...].contains { $0 < 0x20 }
    }
  }

  /// Appends a checksum as eight hexadecimal digits.
  static func append(checksum: UInt32, to bytes: inout [UInt8]) {
    for shift in stride(from: 28, through: 0, by: -4) {
      bytes.append(JSONScan.hexDigit(UInt8(truncatingIfNeeded: checksum >> UInt32(shift)) & 15))
    }
  }

  private static func append(fixed text: StaticString, to bytes: inout [UInt8]) {
    bytes.append(
      contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  private static func append(_ number: Int, to bytes: inout [UInt8]) {
    var divisor = 1
    while number / divisor >= 10 { divisor *= 10 }
    while divisor > 0 {
      bytes.append(UInt8(ascii: "0") + UInt8(number / divisor % 10))
      divisor /= 10
    }
  }
}

extension LogLine {
  /// Reads the line that begins at `start`.
  static func read(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Outcome {
    var reader = LineReader(bytes: bytes, position: start)
    let sequence = reader.number(after: #"{"seq":"#)
    let kind = reader.kind(after: #","kind":""#)
    let rest = reader.number(after: #"","rest":"#)
    let synced = reader.number(after: #","synced":"#)
    let length = reader.number(after: #","len":"#)
    reader.skip(#","crc":""#)
    let covered = UnsafeBufferPointer(rebasing: bytes[start..<reader.position])
    let checksum = reader.checksum()
    reader.skip(#"","data":"#)
    if reader.isWrong { return .wrong("it does not begin like a record") }
    if reader.isAtEnd { return .unfinished }
    guard length <= maxPayload else { return .wrong("it is longer than a record may be") }
    let payload = reader.position..<(reader.position + length)
    guard payload.upperBound + 2 <= bytes.count else { return .unfinished }
    guard bytes[payload.upperBound] == UInt8(ascii: "}"),
      bytes[payload.upperBound + 1] == UInt8(ascii: "\n")
    else { return .wrong("it does not end where its length says") }
    let found = LogChecksum.extend(
      LogChecksum.of(covered), by: UnsafeBufferPointer(rebasing: bytes[payload]))
    guard found == checksum else { return .wrong("its checksum is wrong") }
    return .line(
      LogLine(
        sequence: sequence, kind: kind, rest: rest, synced: synced, payload: payload,
        end: payload.upperBound + 2))
  }
}

/// Reads the parts of a line. Once an error or the end of the bytes is found, later calls do
/// nothing.
private struct LineReader {
  let bytes: UnsafeBufferPointer<UInt8>
  var position: Int
  var isWrong = false
  var isAtEnd = false

  init(bytes: UnsafeBufferPointer<UInt8>, position: Int) {
    self.bytes = bytes
    self.position = position
  }

  /// Returns the next byte; nil after an error or at the end.
  private mutating func peek() -> UInt8? {
    if isWrong || isAtEnd { return nil }
    guard position < bytes.count else {
      isAtEnd = true
      return nil
    }
    return bytes[position]
  }

  mutating func skip(_ text: StaticString) {
    for offset in 0..<text.utf8CodeUnitCount {
      guard let byte = peek() else { return }
      guard byte == text.utf8Start[offset] else {
        isWrong = true
        return
      }
      position += 1
    }
  }

  /// Reads a number without sign or leading zeros.
  mutating func number(after text: StaticString) -> Int {
    skip(text)
    var number = 0
    var digits = 0
    while let byte = peek() {
      let digit = byte &- UInt8(ascii: "0")
      if digit > 9 { break }
      if digits == 18 || (digits == 1 && number == 0) {
        isWrong = true
        return 0
      }
      number = number * 10 + Int(digit)
      digits += 1
      position += 1
    }
    if digits == 0, !isAtEnd { isWrong = true }
    return number
  }

  mutating func kind(after text: StaticString) -> LogKind {
    skip(text)
    let start = position
    while let byte = peek(), LogKind.isAllowed(byte) { position += 1 }
    let name = bytes[start..<position]
    if name.isEmpty || name.count > 32, !isAtEnd { isWrong = true }
    return LogKind(unchecked: String(decoding: name, as: UTF8.self))
  }

  mutating func checksum() -> UInt32 {
    var checksum: UInt32 = 0
    for _ in 0..<8 {
      guard let byte = peek() else { return 0 }
      // Capital letters are not valid digits here.
      guard let value = JSONScan.hexValue(byte), JSONScan.hexDigit(value) == byte else {
        isWrong = true
        return 0
      }
      checksum = checksum << 4 | UInt32(value)
      position += 1
    }
    return checksum
  }
}
