#if os(Linux)
import CEventLoop
import Foundation

/// A connection of the load: a socket, and the bytes that wait for the other side or for their rest.
final class FanoutConnection {
  enum Phase {
    /// The connection itself is being agreed upon.
    case greeting
    /// The session and the scope are.
    case joining
    case ready
  }

  let socket: Int32
  let isPublisher: Bool
  /// True if the latency of what arrives here is taken.
  let isSampled: Bool
  var phase = Phase.greeting
  /// The bytes to be sent.
  var output: [UInt8] = []
  private var sent = 0
  /// True while the socket is watched for room to send.
  var awaitsRoom = false
  /// The bytes of a message that has not arrived whole.
  var rest: [UInt8] = []
  /// The time of the last message that was published and has arrived, or of the beginning. Pings of the server do not
  /// count, so that a watcher that gets nothing else is found.
  var lastDelivery: Int
  /// The number of messages that were published and have arrived.
  var delivered = 0
  /// The number of numbered messages and change sets that have arrived since the last acknowledgement.
  var unacknowledged = 0
  /// The highest index that has arrived.
  var index = 0

  init(to port: UInt16, isPublisher: Bool, isSampled: Bool) throws {
    (self.isPublisher, self.isSampled) = (isPublisher, isSampled)
    socket = try FanoutSocket.connect(to: port)
    lastDelivery = FanoutClock.now
  }

  deinit { close(socket) }

  /// Sends as much of the output as the system takes.
  func send() throws {
    while sent < output.count {
      let count = try FanoutSocket.send(output, from: sent, to: socket)
      if count == 0 { return }
      sent += count
    }
    sent = 0
    output.removeAll(keepingCapacity: true)
  }
}

/// The clock by which latency is measured, in nanoseconds.
enum FanoutClock {
  static var now: Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
  }
}

/// The sockets of the load, which wait together. A class, since a socket that is ready may be watched for something else
/// during the wait.
final class FanoutPoll {
  private let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
  private var events = [epoll_event](repeating: epoll_event(), count: 256)

  func add(_ socket: Int32, _ number: Int) throws { try control(EPOLL_CTL_ADD, socket, number) }

  func watch(_ socket: Int32, _ number: Int, forRoom: Bool) throws {
    try control(EPOLL_CTL_MOD, socket, number, forRoom: forRoom)
  }

  private func control(
    _ action: Int32, _ socket: Int32, _ number: Int, forRoom: Bool = false
  ) throws {
    var event = epoll_event()
    event.data.u64 = UInt64(number)
    event.events = EPOLLIN.rawValue | (forRoom ? EPOLLOUT.rawValue : 0)
    guard epoll_ctl(epoll, action, socket, &event) == 0 else {
      throw RoleProblem(text: "epoll_ctl failed with errno \(errno)")
    }
  }

  /// Calls `body` with the number of each socket that is ready, after so many milliseconds at the latest.
  ///
  /// It asks again and again, and does not sleep. A server pays for waking a process on another processor, once for each
  /// message if the load sleeps between them: the less the load costs, the dearer it would make the server.
  func wait(upTo limit: Int, _ body: (Int) throws -> Void) rethrows {
    let end = FanoutClock.now + limit * 1_000_000
    var count: Int32 = 0
    repeat {
      count = epoll_wait(epoll, &events, Int32(events.count), 0)
    } while count == 0 && FanoutClock.now < end
    // Negative if a signal has interrupted it.
    for place in 0..<max(Int(count), 0) { try body(Int(events[place].data.u64)) }
  }
}
#endif
