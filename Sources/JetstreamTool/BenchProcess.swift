import Foundation

/// A worker process, as its parent has it.
final class BenchProcess {
  private let process = Process()
  private let input = Pipe()

  /// Starts a worker.
  ///
  /// - Parameter report: Called on other threads: with each line of the worker, and at last with its end.
  init(_ plan: BenchPlan, report: @escaping @Sendable (BenchConductor.Event) -> Void) throws {
    let output = Pipe()
    // Another worker that inherits the ends of the pipes would keep them open.
    for end in [
      input.fileHandleForReading, input.fileHandleForWriting, output.fileHandleForReading,
      output.fileHandleForWriting,
    ] {
      _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
    }
    process.executableURL =
      Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
    process.arguments = [
      "bench-worker", String(decoding: BenchLines.data(plan).dropLast(), as: UTF8.self),
    ]
    process.standardInput = input
    process.standardOutput = output
    let (worker, reading) = (plan.worker, DispatchGroup())
    reading.enter()
    process.terminationHandler = { process in
      let status =
        process.terminationReason == .exit
        ? BenchConductor.End.status(process.terminationStatus)
        : .signal(process.terminationStatus)
      // Its last lines may not have been read yet.
      reading.notify(queue: .global()) { report(.ended(worker, status)) }
    }
    do { try process.run() } catch {
      process.terminationHandler = nil
      reading.leave()
      throw error
    }
    let handle = output.fileHandleForReading
    Thread.detachNewThread {
      Self.read(handle) { report(.line(worker, $0)) }
      reading.leave()
    }
  }

  /// Reads lines until the worker has closed its output.
  private static func read(_ handle: FileHandle, _ take: (BenchLine) -> Void) {
    var rest = Data()
    while case let more = handle.availableData, !more.isEmpty {
      rest += more
      while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: rest[rest.startIndex..<end], as: UTF8.self)
        rest = Data(rest[rest.index(after: end)...])
        if let line = BenchLines.value(BenchLine.self, of: line) { take(line) }
      }
    }
  }

  func send(_ order: BenchOrder) {
    // A worker that has ended is reported as such.
    try? input.fileHandleForWriting.write(contentsOf: BenchLines.data(order))
  }

  /// Tells the worker that no order follows, so that it ends.
  func closeInput() { try? input.fileHandleForWriting.close() }

  /// Gives the worker three seconds to end, or none, and kills it then.
  func finish(atOnce: Bool) {
    closeInput()
    let limit = BenchClock.now + (atOnce ? 0 : 3 * BenchClock.second)
    while process.isRunning, BenchClock.now < limit { Thread.sleep(forTimeInterval: 0.005) }
    guard process.isRunning else { return }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}
