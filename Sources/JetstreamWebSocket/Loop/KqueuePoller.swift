#if canImport(Darwin)
import Darwin

/// Waits with kqueue. It lives as long as the process.
final class KqueuePoller: Poller {
  /// The largest number of events that one wait tells of; those left over are told of next.
  private static let batch = 256
  /// The name of the event that wakes.
  private static let wakeID = UInt.max

  private let queue = kqueue()
  private var events = [kevent](repeating: kevent(), count: batch)

  init() {
    precondition(queue >= 0, "The process has no descriptor left for an event loop.")
    _ = fcntl(queue, F_SETFD, FD_CLOEXEC)
    let isWatched = change(Self.wakeID, EVFILT_USER, EV_ADD | EV_CLEAR, id: 0)
    precondition(isWatched, "The system has no memory left for an event loop.")
  }

  func watch(
    _ descriptor: Int32, as id: UInt64, for events: Readiness, insteadOf old: Readiness
  ) -> Bool {
    for (event, filter) in [(Readiness.read, EVFILT_READ), (.write, EVFILT_WRITE)]
    where events.contains(event) != old.contains(event) {
      let flags = events.contains(event) ? EV_ADD : EV_DELETE
      guard change(UInt(descriptor), filter, flags, id: id) else { return false }
    }
    return true
  }

  private func change(
    _ identifier: UInt, _ filter: Int32, _ flags: Int32, id: UInt64, note: UInt32 = 0
  ) -> Bool {
    var event = kevent(
      ident: identifier, filter: Int16(filter), flags: UInt16(flags), fflags: note, data: 0,
      udata: UnsafeMutableRawPointer(bitPattern: UInt(id)))
    if kevent(queue, &event, 1, nil, 0, nil) == 0 { return true }
    precondition(
      errno == ENOMEM, "kevent failed with errno \(errno) for descriptor \(identifier).")
    return false
  }

  func wait(upTo limit: Duration?, _ body: (UInt64, Readiness) -> Void) {
    let count: Int32
    if let (seconds, attoseconds) = limit?.components {
      var time = timespec(
        tv_sec: Int(min(seconds, 1_000_000)), tv_nsec: Int(attoseconds / 1_000_000_000))
      count = kevent(queue, nil, 0, &events, Int32(Self.batch), &time)
    } else {
      count = kevent(queue, nil, 0, &events, Int32(Self.batch), nil)
    }
    // Interrupted by a signal.
    if count < 0 { return }
    for event in events[..<Int(count)] where event.filter != Int16(EVFILT_USER) {
      body(
        UInt64(UInt(bitPattern: event.udata)),
        Int32(event.filter) == EVFILT_READ ? .read : .write)
    }
  }

  func wake() {
    _ = change(Self.wakeID, EVFILT_USER, 0, id: 0, note: UInt32(NOTE_TRIGGER))
  }
}
#endif
