/// Reads the lines of one file, a chunk at a time.
struct LogScanner {
  let file: any LogFile
  let name: String
  /// How much of the file counts; nil for all of it, however long it becomes.
  let end: Int?
  /// The offset of the next line.
  private(set) var offset: Int
  private var buffer: [UInt8] = []
  /// The offset of the buffer's first byte.
  private var bufferStart: Int

  /// How much is read at once: little for a header, more and more for what follows.
  private var chunk = 4 << 10

  enum Found {
    case line(LogLine, payload: [UInt8])
    /// There are no more bytes.
    case nothing
    /// The bytes are the beginning of a line whose end is missing.
    case unfinished
    case wrong(String)
  }

  init(_ file: any LogFile, _ name: String, from offset: Int = 0, end: Int? = nil) {
    self.file = file
    self.name = name
    self.end = end
    self.offset = offset
    bufferStart = offset
  }

  /// Reads one line. After anything but a line, the next call looks at the same place again, in the
  /// file as it is by then.
  mutating func next() throws(LogFileError) -> Found {
    while true {
      let start = offset - bufferStart
      if start < buffer.count {
        switch buffer.withUnsafeBufferPointer({ LogLine.read($0, from: start) }) {
        case .line(let line):
          offset = bufferStart + line.end
          return .line(line, payload: Array(buffer[line.payload]))
        case .wrong(let problem):
          forget()
          return .wrong(problem)
        case .unfinished: break
        }
      }
      if try !fill() { break }
    }
    let rest = buffer[(offset - bufferStart)...]
    let isEmpty = rest.isEmpty
    // Something that has an end is not unfinished, whatever its length says.
    let isEnded = rest.contains(UInt8(ascii: "\n"))
    forget()
    if isEmpty { return .nothing }
    return isEnded ? .wrong("its length is wrong") : .unfinished
  }

  /// Goes to another line.
  mutating func seek(to offset: Int) {
    self.offset = offset
    forget()
  }

  private mutating func forget() {
    buffer.removeAll()
    bufferStart = offset
  }

  /// Reads more. False if there is no more.
  private mutating func fill() throws(LogFileError) -> Bool {
    buffer.removeFirst(offset - bufferStart)
    bufferStart = offset
    let from = bufferStart + buffer.count
    let count = min(max(chunk, buffer.count), (end ?? .max) - from)
    chunk = min(chunk * 4, 256 << 10)
    guard count > 0 else { return false }
    return try file.read(at: from, count, appendingTo: &buffer) > 0
  }
}
