#if os(Linux)
internal import CEventLoop
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Waits with epoll. It lives as long as the process.
final class EpollPoller: Poller {
  /// The largest number of descriptors that one wait tells of; those left over are told of next.
  private static let batch = 256
  /// The name of the descriptor that wakes.
  private static let wakeID = UInt64.max

  private let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
  private let wakeup = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
  private var events = [epoll_event](repeating: epoll_event(), count: batch)

  init() {
    precondition(
      epoll >= 0 && wakeup >= 0, "The process has no descriptor left for an event loop.")
    let isWatched = control(EPOLL_CTL_ADD, wakeup, Self.wakeID, .read)
    precondition(isWatched, "The system has no memory left for an event loop.")
  }

  func watch(
    _ descriptor: Int32, as id: UInt64, for events: Readiness, insteadOf old: Readiness
  ) -> Bool {
    if events == old { return true }
    return control(
      old.isEmpty ? EPOLL_CTL_ADD : events.isEmpty ? EPOLL_CTL_DEL : EPOLL_CTL_MOD, descriptor, id,
      events)
  }

  private func control(
    _ action: Int32, _ descriptor: Int32, _ id: UInt64, _ events: Readiness
  ) -> Bool {
    var event = epoll_event()
    event.data.u64 = id
    if events.contains(.read) { event.events |= EPOLLIN.rawValue }
    if events.contains(.write) { event.events |= EPOLLOUT.rawValue }
    if epoll_ctl(epoll, action, descriptor, &event) == 0 { return true }
    precondition(
      [ENOMEM, ENOSPC].contains(errno),
      "epoll_ctl failed with errno \(errno) for descriptor \(descriptor).")
    return false
  }

  func wait(upTo limit: Duration?, _ body: (UInt64, Readiness) -> Void) {
    let milliseconds = limit.map { ($0 / .milliseconds(1)).rounded(.up) }
    let count = epoll_wait(
      epoll, &events, Int32(Self.batch), milliseconds.map { Int32(min($0, 1e9)) } ?? -1)
    // Interrupted by a signal.
    if count < 0 { return }
    for event in events[..<Int(count)] {
      if event.data.u64 == Self.wakeID {
        var number: UInt64 = 0
        _ = read(wakeup, &number, MemoryLayout<UInt64>.size)
        continue
      }
      var ready: Readiness = []
      if event.events & EPOLLIN.rawValue != 0 { ready.insert(.read) }
      if event.events & EPOLLOUT.rawValue != 0 { ready.insert(.write) }
      if event.events & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 { ready = [.read, .write] }
      body(event.data.u64, ready)
    }
  }

  func wake() {
    var one: UInt64 = 1
    _ = write(wakeup, &one, MemoryLayout<UInt64>.size)
  }
}
#endif
