/// Reads the lines of one file, a chunk at a time.
struct LogScanner {
  let file: any LogFile
  let name: String
  /// The number of valid bytes of the file; nil for all of it, even as it grows.
  let end: Int?
  /// The offset of the next line.
  private(set) var offset: Int
  private var buffer: [UInt8] = []
  /// The offset of the buffer's first byte.
  private var bufferStart: Int

  /// The number of bytes read at once: few for a header, increasing for what follows.
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

  /// Reads one line. If the result is not a line, the next call tries the same offset again, with
  /// the current content of the file.
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
    // A line with a line feed is not unfinished, whatever its length field says.
    let isEnded = rest.contains(UInt8(ascii: "\n"))
    forget()
    if isEmpty { return .nothing }
    return isEnded ? .wrong("its length is wrong") : .unfinished
  }

  /// Moves to the line at another offset.
  mutating func seek(to offset: Int) {
    self.offset = offset
    forget()
  }

  private mutating func forget() {
    buffer.removeAll()
    bufferStart = offset
  }

  /// Reads more bytes. Returns false if there are none.
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
