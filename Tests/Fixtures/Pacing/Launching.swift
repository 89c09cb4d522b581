import Foundation
import Synchronization

private let launches = Mutex(())

/// Starts a process, one at a time. Several suites start processes at once, and `Process.run()` of the open-source
/// Foundation has crashed while another thread was in it.
public func launch(_ process: Process) throws {
  try launches.withLock { _ in try process.run() }
}
