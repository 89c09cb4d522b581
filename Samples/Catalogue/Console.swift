import Foundation

/// Standard input and output, line by line.
enum Console {
  /// The lines of standard input; ends with it.
  static func lines() -> AsyncStream<String> {
    let (stream, continuation) = AsyncStream.makeStream(of: String.self)
    // Reading blocks, so it gets a thread of its own.
    Thread.detachNewThread {
      while let line = readLine() { continuation.yield(line) }
      continuation.finish()
    }
    return stream
  }

  /// Prints one line at once.
  static func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }

  /// Says what went wrong and ends the process.
  static func fail(_ message: String, status: Int32) -> Never {
    FileHandle.standardError.write(Data("catalogue: \(message)\n".utf8))
    exit(status)
  }
}

/// A hash by which two long texts are compared at a glance.
enum FNV1a {
  /// The 64-bit FNV-1a hash in 16 hexadecimal digits.
  static func hash(_ text: String) -> String {
    var text = text
    let hash = text.withUTF8 { bytes in
      var hash: UInt64 = 0xCBF2_9CE4_8422_2325
      var at = 0
      while at < bytes.count {
        hash = (hash ^ UInt64(bytes[at])) &* 0x100_0000_01B3
        at += 1
      }
      return hash
    }
    let digits = String(hash, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
