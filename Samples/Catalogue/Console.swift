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

  /// Keeps the process running when its output is closed, since clients or a server depend on it.
  static func outliveReader() {
    signal(SIGPIPE, SIG_IGN)
    // A file that is opened where a stream was closed would get what is printed.
    for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(stream, F_GETFD) < 0 {
      _ = open("/dev/null", O_RDWR)
    }
  }

  /// Prints one line at once.
  static func say(_ line: String) {
    // A reader that has gone, or a full disk, is no reason to lose what clients have sent.
    try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
  }

  /// Makes a folder unless it is there; ends the process if that fails.
  static func makeFolder(_ path: String) {
    do {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    } catch {
      fail("\(path) cannot be made: \(error.localizedDescription)", status: 1)
    }
  }

  /// Prints what the process was run for; one that cannot say it has failed.
  static func give(_ line: String) {
    do {
      try FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
    } catch {
      fail("the output cannot be written: \(error.localizedDescription)", status: 1)
    }
  }

  /// Says what went wrong and ends the process.
  static func fail(_ message: String, status: Int32) -> Never {
    try? FileHandle.standardError.write(contentsOf: Data("catalogue: \(message)\n".utf8))
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
