import Foundation
import Pacing
import Synchronization
import Testing

@testable import JetstreamTool

/// Reads a pipe to its end, on a thread of its own.
private final class PipeReading: Sendable {
  private let text = Mutex(Data())
  private let done = DispatchSemaphore(value: 0)

  init(_ pipe: Pipe) {
    Thread.detachNewThread { [self] in
      let data = (try? pipe.fileHandleForReading.readToEnd()) ?? Data()
      text.withLock { $0 = data }
      done.signal()
    }
  }

  /// Waits for the end and returns the lines.
  func lines() async -> [String] {
    await blocking { [done] in done.wait() }
    return String(decoding: text.withLock { $0 }, as: UTF8.self).split(separator: "\n")
      .map(String.init)
  }
}

@Suite("Lines that a thread of its own writes", .live, .timeLimit(.minutes(5)))
struct LineWriterTests {
  @Test("All lines are written in their order, and the end waits for them")
  func order() async throws {
    let pipe = ChildProcess.pipe()
    let writer = LineWriter(pipe.fileHandleForWriting)
    for number in 0..<500 { writer.write("\(number)") }
    writer.finish(within: .seconds(60))
    try pipe.fileHandleForWriting.close()
    #expect(await PipeReading(pipe).lines() == (0..<500).map { "\($0)" })
  }

  @Test("A pipe that is not read holds up no writer; what was left out is counted in its place")
  func unread() async throws {
    let pipe = ChildProcess.pipe()
    let writer = LineWriter(pipe.fileHandleForWriting, limit: 10_000)
    // Far more than the pipe and the queue hold.
    let filling = String(repeating: "x", count: 90)
    for number in 0..<10_000 { writer.write("\(number) \(filling)") }
    let reading = PipeReading(pipe)
    writer.finish(within: .seconds(60))
    try pipe.fileHandleForWriting.close()
    var (next, omitted) = (0, 0)
    for line in await reading.lines() {
      let word = line.prefix { $0 != " " }
      if let number = Int(word) {
        #expect(number == next && line == "\(number) \(filling)")
        next += 1
      } else {
        let count = try #require(Int(word.dropFirst()))
        #expect(line == LineWriter.note(count))
        (next, omitted) = (next + count, omitted + count)
      }
    }
    #expect(next == 10_000 && omitted > 8_000)
  }
}
