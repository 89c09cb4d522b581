import Dispatch

/// A serial queue on which a log writes: work runs one piece at a time, in order.
package protocol LogQueue: Sendable {
  func run(_ work: @escaping @Sendable () -> Void)
  func run(after delay: Duration, _ work: @escaping @Sendable () -> Void)
}

/// A serial dispatch queue.
package struct DispatchLogQueue: LogQueue {
  private let queue: DispatchQueue

  package init(_ label: String) { queue = DispatchQueue(label: label, qos: .userInitiated) }

  package func run(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }

  package func run(after delay: Duration, _ work: @escaping @Sendable () -> Void) {
    let (seconds, attoseconds) = delay.components
    let nanoseconds = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
    queue.asyncAfter(deadline: .now() + .nanoseconds(Int(nanoseconds)), execute: work)
  }
}
