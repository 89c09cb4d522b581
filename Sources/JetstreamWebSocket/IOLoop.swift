import Dispatch
import Foundation
import Synchronization

/// A serial queue on which the sockets given to it are read and written, one event at a time.
///
/// A few loops serve all the connections of a process, so that thousands of sockets take no more
/// threads than there are processors. Nothing that blocks, and no code of the application, runs
/// on them.
final class IOLoop: Sendable {
  /// The largest number of bytes of one read.
  static let readSize = 64 << 10

  let queue: DispatchQueue
  /// Room for one read, shared by all the sockets of the loop.
  private let scratch = Mutex([UInt8](repeating: 0, count: readSize))

  private init(number: Int) {
    queue = DispatchQueue(label: "jetstream.websocket.io.\(number)", qos: .userInitiated)
  }

  private static let shared: [IOLoop] = {
    let count = min(8, max(2, ProcessInfo.processInfo.activeProcessorCount))
    return (0..<count).map(IOLoop.init)
  }()

  private static let turn = Atomic<Int>(0)

  /// Returns the loop for the next socket, in rotation.
  static func next() -> IOLoop {
    let ticket = turn.wrappingAdd(1, ordering: .relaxed).oldValue
    return shared[Int(UInt(bitPattern: ticket) % UInt(shared.count))]
  }

  /// Reads once from a socket. `result` is the result of the call; `bytes` is empty unless it is positive. Keeping the
  /// bytes past the next read of the loop costs a copy.
  func read(_ descriptor: Int32) -> (result: Int, bytes: ArraySlice<UInt8>) {
    scratch.withLock { buffer in
      let result = buffer.withUnsafeMutableBytes { Platform.receive(descriptor, into: $0) }
      return (result, buffer[..<max(0, result)])
    }
  }

  /// Runs `work` on the loop's queue after `delay`. A timer cannot be cancelled: `work` checks whether it is still
  /// needed.
  func after(_ delay: Duration, _ work: @escaping @Sendable () -> Void) {
    let (seconds, attoseconds) = delay.components
    let interval = Double(seconds) + Double(attoseconds) * 1e-18
    queue.asyncAfter(deadline: .now() + interval, execute: work)
  }
}
