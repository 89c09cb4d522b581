import Foundation
import JetstreamSimulation
import Synchronization

@testable import Jetstream

/// A directory in which something happens while a file or the directory itself is being synced.
final class InterruptedDirectory: LogDirectory {
  let disk: SimulatedDisk
  private let state = Mutex<(count: Int, action: (@Sendable (Int) -> Void)?)>((0, nil))
  private let isDead = Atomic(false)

  init(_ disk: SimulatedDisk) { self.disk = disk }

  /// The number of syncs that have begun.
  var syncCount: Int { state.withLock { $0.count } }

  /// Called in the middle of each sync with its number.
  func onSync(_ action: @escaping @Sendable (Int) -> Void) { state.withLock { $0.action = action } }

  func interrupt() {
    let (number, action) = state.withLock { state in
      state.count += 1
      return (state.count, state.action)
    }
    action?(number)
  }

  /// Nothing that the process does from now on has an effect.
  func end() { isDead.store(true, ordering: .relaxed) }

  private func checkLife() throws(LogFileError) {
    if isDead.load(ordering: .relaxed) { throw LogFileError(.open, "", code: EBADF) }
  }

  var name: String { disk.name }
  func list() throws(LogFileError) -> [String] { try disk.list() }
  func open(_ file: String, for access: LogFileAccess) throws(LogFileError) -> any LogFile {
    try checkLife()
    return InterruptedFile(try disk.open(file, for: access), self)
  }
  func rename(_ file: String, to other: String) throws(LogFileError) {
    try checkLife()
    try disk.rename(file, to: other)
  }
  func remove(_ file: String) throws(LogFileError) {
    try checkLife()
    try disk.remove(file)
  }
  func sync() throws(LogFileError) {
    interrupt()
    try checkLife()
    try disk.sync()
  }
  func lock(_ file: String) throws(LogFileError) -> (any LogFile)? { try disk.lock(file) }
}

private final class InterruptedFile: LogFile {
  private let file: any LogFile
  private let directory: InterruptedDirectory

  init(_ file: any LogFile, _ directory: InterruptedDirectory) {
    (self.file, self.directory) = (file, directory)
  }

  func size() throws(LogFileError) -> Int { try file.size() }
  func read(
    at offset: Int, into buffer: UnsafeMutableRawBufferPointer
  ) throws(LogFileError) -> Int { try file.read(at: offset, into: buffer) }
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(LogFileError) -> Int {
    try file.write(bytes, at: offset)
  }
  func truncate(to size: Int) throws(LogFileError) { try file.truncate(to: size) }
  func sync() throws(LogFileError) {
    directory.interrupt()
    try file.sync()
  }
  func close() { file.close() }
}

/// A queue into which a thread comes late with its work.
final class HoldingLogQueue: LogQueue {
  let manual = ManualLogQueue()
  private let state = Mutex<(isHolding: Bool, held: [@Sendable () -> Void])>((false, []))

  func run(_ work: @escaping @Sendable () -> Void) {
    let isHeld = state.withLock { state in
      if state.isHolding { state.held.append(work) }
      return state.isHolding
    }
    if !isHeld { manual.run(work) }
  }

  func run(after delay: Duration, _ work: @escaping @Sendable () -> Void) {
    manual.run(after: delay, work)
  }

  /// Keeps back what `body` gives to the queue.
  func hold(_ body: () -> Void) {
    state.withLock { $0.isHolding = true }
    body()
    state.withLock { $0.isHolding = false }
  }

  /// Takes what was kept back.
  func release() {
    let held = state.withLock { state in
      defer { state.held = [] }
      return state.held
    }
    for work in held { manual.run(work) }
  }
}
