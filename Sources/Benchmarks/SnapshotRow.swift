import Foundation
import Synchronization

/// The row of an edit that waits while the log of another scope takes snapshots. The disk has to write both, and would
/// hold up the edit without a server, too: that is the peer.
var snapshotRow: Row {
  Row(
    name: "an edit, p99, beside the snapshots of a log with 64 MiB of state", unit: "ms",
    peerName: "write + fdatasync, beside files of 64 MiB", bar: .most(2), rounds: 3
  ) {
    Probes(
      ours: {
        let folder = TemporaryFolder()
        return withExtendedLifetime(folder) {
          ServerStage(scopes: 2, models: 290_000, folder: folder.path)
            .measure(.editor, beside: .restlessWriter)
        }
      },
      peer: {
        let folder = TemporaryFolder()
        return withExtendedLifetime(folder) { PlainDisk(folder.path).wait() }
      })
  }
}

/// A disk on which one thread writes a line now and then, and another one large files.
private final class PlainDisk: Sendable {
  private let path: String
  private let isOver = Mutex(false)

  init(_ path: String) { self.path = path }

  /// Returns the time in milliseconds until a line is on the disk; one in a hundred takes longer.
  func wait() -> Double {
    let thread = Thread { self.writeFiles() }
    thread.start()
    defer { isOver.withLock { $0 = true } }
    let file = open(path + "/lines", O_CREAT | O_TRUNC | O_WRONLY, 0o600)
    guard file >= 0 else { return Row.failed("no file in \(path)") }
    defer { close(file) }
    let line = [UInt8](repeating: 0x20, count: 200)
    let clock = ContinuousClock()
    var times: [Double] = []
    while times.count < 300 {
      let start = clock.now
      guard write(file, line, line.count) == line.count, DiskSync.data(of: file) else {
        return Row.failed("cannot write in \(path)")
      }
      times.append(start.duration(to: clock.now) / .milliseconds(1))
      Thread.sleep(forTimeInterval: 0.01)
    }
    return times.sorted()[times.count * 99 / 100]
  }

  /// Writes and syncs files of 64 MiB until the lines are written.
  private func writeFiles() {
    let bytes = [UInt8](repeating: 0x20, count: 64 << 20)
    while !isOver.withLock({ $0 }) {
      let file = open(path + "/state", O_CREAT | O_TRUNC | O_WRONLY, 0o600)
      guard file >= 0 else { return }
      _ = write(file, bytes, bytes.count)
      _ = fsync(file)
      close(file)
      Thread.sleep(forTimeInterval: 0.3)
    }
  }
}

/// The system's call to have a file's data on the disk.
enum DiskSync {
  /// Returns false if it fails.
  static func data(of file: Int32) -> Bool {
    #if canImport(Darwin)
    fcntl(file, F_FULLFSYNC) == 0
    #else
    fdatasync(file) == 0
    #endif
  }
}
