#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
import Synchronization

/// Receives the events of a transport. Every call comes on the transport's loop, one at a time.
protocol TransportHandler: AnyObject, Sendable {
  /// Takes bytes that were received.
  func received(_ bytes: ArraySlice<UInt8>)
  /// Notes that the peer ended its side or the connection broke. Called once; no bytes are received after it.
  func ended()
}

/// One connected, non-blocking socket with a queue of bytes to write.
///
/// Safe to use from any thread. Only the loop's thread reads, writes and closes the descriptor, and it writes at the end
/// of a turn what was queued during it. Reading starts paused. A transport lives until it is closed or aborted.
final class SocketTransport: Sendable {
  private struct State: Sendable {
    weak var handler: (any TransportHandler)?
    /// The name of the descriptor in the loop; nil before the loop has it.
    var id: UInt64?
    var outbound = OutboundQueue()
    /// The number of bytes that the loop has taken out of the queue and is writing.
    var taken = 0
    var room = OutboundRoom()
    /// True while a flush is scheduled, goes on, or waits for the socket to take more.
    var isFlushing = false
    /// True while the socket takes no more, or is being connected.
    var awaitsWriting = false
    var isReadPaused = true
    var hasEnded = false
    var output = Output.open
    var shouldFinishWriting = false
    var shouldClose = false
    var isClosed = false
    var onConnect: (@Sendable (Int32) -> Void)?
    var onDrained: (@Sendable () -> Void)?

    /// True if nothing more goes out.
    var refusesBytes: Bool { isClosed || output != .open || shouldClose || shouldFinishWriting }

    /// Returns true if a frame may wait beside what waits already; the caller queues it then.
    mutating func admits(_ frame: EncodedFrame, upTo limit: Int) -> Bool {
      room.admits(frame.count, beside: outbound.count + taken, upTo: limit)
    }

    /// The events for which the loop has to watch the descriptor.
    var events: Readiness {
      if isClosed { return [] }
      var events: Readiness = []
      if !isReadPaused, !hasEnded { events.insert(.read) }
      if awaitsWriting { events.insert(.write) }
      return events
    }
  }

  private enum Output {
    case open
    /// The last frame is queued, or was written.
    case complete
    /// The socket takes nothing any more.
    case broken
  }

  /// The outcome of giving the transport a frame.
  enum Acceptance {
    /// It was written, or is queued.
    case taken
    /// More bytes would wait than may.
    case full
    /// Nothing goes out any more.
    case closed
  }

  let loop: EventLoop
  private let descriptor: Int32
  private let onClosed: @Sendable () -> Void
  private let state = Mutex(State())

  /// Takes over `descriptor`. `onClosed` runs once, after the descriptor was closed.
  init(descriptor: Int32, loop: EventLoop, onClosed: @escaping @Sendable () -> Void = {}) {
    self.descriptor = descriptor
    self.loop = loop
    self.onClosed = onClosed
    loop.execute {
      if self.isClosed { return }
      let id = loop.add(descriptor, self)
      self.state.withLock { $0.id = id }
      self.watch()
    }
  }

  /// The number of bytes queued but not yet handed to the kernel.
  var bufferedBytes: Int { state.withLock { $0.outbound.count + $0.taken } }

  /// True once the transport was closed or aborted.
  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Sets the handler that receives the events from now on. It is not retained.
  func setHandler(_ handler: any TransportHandler) {
    state.withLock { $0.handler = handler }
  }

  /// Runs `completion` on the loop once the connection attempt under way has ended, with 0 or its
  /// `errno`.
  func awaitConnect(_ completion: @escaping @Sendable (Int32) -> Void) {
    state.withLock { state in
      state.onConnect = completion
      state.isFlushing = true
      state.awaitsWriting = true
    }
    watchSoon()
  }

  /// Watches the descriptor for what the state asks for. On the loop.
  private func watch() {
    let (id, events) = state.withLock { ($0.id, $0.events) }
    if let id { loop.watch(id, for: events) }
  }

  private func watchSoon() {
    if loop.isCurrent { watch() } else { loop.execute { self.watch() } }
  }

  // MARK: Reading

  /// Stops reading; the peer is held back by TCP once the kernel's buffers are full.
  func pauseReading() { setPaused(true) }

  /// Resumes reading.
  func resumeReading() { setPaused(false) }

  private func setPaused(_ isPaused: Bool) {
    let isChanged = state.withLock { state in
      guard state.isReadPaused != isPaused, !state.hasEnded, !state.isClosed else { return false }
      state.isReadPaused = isPaused
      return true
    }
    if isChanged { watchSoon() }
  }

  /// Reads a few times as long as there is more, then lets the loop's other sockets have a turn.
  private func readable() {
    for _ in 0..<4 {
      let (isReady, handler) = state.withLock {
        (!$0.isReadPaused && !$0.hasEnded && !$0.isClosed, $0.handler)
      }
      guard isReady else { return }
      let result = readOnce(for: handler)
      if result < EventLoop.readSize { return }
    }
  }

  /// Reads once and passes on the bytes, or the end.
  private func readOnce(for handler: (any TransportHandler)?) -> Int {
    let (result, bytes) = loop.read(descriptor)
    if result > 0 {
      handler?.received(bytes)
    } else if !Platform.isRetry(result) {
      endInput()
    }
    return result
  }

  private func endInput() {
    let handler: (any TransportHandler)? = state.withLock { state in
      guard !state.hasEnded, !state.isClosed else { return nil }
      state.hasEnded = true
      return state.handler
    }
    // The end would be reported again and again; the handler closes the transport soon.
    watch()
    handler?.ended()
  }

  // MARK: Writing

  /// Queues bytes and has them written soon, together with whatever else is queued by then.
  ///
  /// - Parameters:
  ///   - limit: the number of bytes that may wait to be written, these included; see ``OutboundRoom``.
  ///   - isLast: true if nothing may go out behind the frame, from any thread.
  @discardableResult
  func enqueue(
    _ frame: EncodedFrame, upTo limit: Int = .max, isLast: Bool = false
  ) -> Acceptance {
    var acceptance = Acceptance.closed
    scheduleFlush { state in
      if state.refusesBytes { return }
      acceptance = state.admits(frame, upTo: limit) ? .taken : .full
      guard acceptance == .taken else { return }
      state.outbound.append(frame)
      if isLast { state.output = .complete }
    }
    return acceptance
  }

  /// Writes a frame at once, if nothing waits and this is the loop's thread. What the socket does not take is queued, as by
  /// ``enqueue(_:upTo:isLast:)``; so is all of it elsewhere. A frame that is to go out with others is better queued.
  func write(_ frame: EncodedFrame, upTo limit: Int) -> Acceptance {
    guard loop.isCurrent, frame.payload.isEmpty else { return enqueue(frame, upTo: limit) }
    let (acceptance, isFirst) = state.withLock { state -> (Acceptance, Bool) in
      if state.refusesBytes { return (.closed, false) }
      guard state.admits(frame, upTo: limit) else { return (.full, false) }
      let written = state.isFlushing ? 0 : Platform.send(descriptor, frame.head)
      if written == frame.count { return (.taken, false) }
      // The loop meets an error again when it writes.
      state.outbound.append(
        written > 0 ? EncodedFrame(head: Array(frame.head[written...]), payload: []) : frame)
      defer { state.isFlushing = true }
      return (.taken, !state.isFlushing)
    }
    if isFirst { loop.executeAtEnd { self.flush() } }
    return acceptance
  }

  /// Runs `action` on the loop once all that is queued was handed to the kernel; never, if the connection ends before.
  func whenDrained(_ action: @escaping @Sendable () -> Void) {
    scheduleFlush { $0.onDrained = action }
  }

  /// Shuts the sending half down once everything queued is written.
  func finishWriting() {
    scheduleFlush { $0.shouldFinishWriting = true }
  }

  /// Changes the state, and has the loop write what is queued.
  private func scheduleFlush(_ change: (inout State) -> Void) {
    let isFirst = state.withLock { state in
      guard !state.isClosed else { return false }
      change(&state)
      defer { state.isFlushing = true }
      return !state.isFlushing
    }
    if isFirst { loop.executeAtEnd { self.flush() } }
  }

  private enum FlushStep {
    case write(OutboundQueue)
    case drained((@Sendable () -> Void)?)
    case awaitRoom
    case fail
    case close
    case stop
  }

  /// The number of bytes after which the loop's other sockets have a turn.
  private static let turnBytes = 512 << 10

  /// Writes what is queued until the socket takes no more. The lock is not held meanwhile: others go on queueing.
  private func flush() {
    var (calls, written) = (0, 0)
    var step = state.withLock { nextStep(&$0) }
    while true {
      switch step {
      case .stop: return
      case .close: return shut(reset: false)
      case .fail: return writeFailed()
      case .awaitRoom: return watch()
      case .drained(let action):
        action?()
        return
      case .write(var queue):
        var result = 0
        while result >= 0, !queue.isEmpty, calls < 16, written < Self.turnBytes {
          result = queue.write(to: descriptor)
          calls += 1
          written += max(0, result)
        }
        // The loop's other sockets have a turn.
        let isOver = result >= 0 && (calls == 16 || written >= Self.turnBytes)
        step = state.withLock { state in
          putBack(queue, &state)
          return isOver ? .stop : result < 0 ? stepAfter(result, &state) : nextStep(&state)
        }
        if isOver { return loop.execute { self.flush() } }
      }
    }
  }

  private func nextStep(_ state: inout State) -> FlushStep {
    guard !state.isClosed else { return .stop }
    if !state.outbound.isEmpty {
      state.taken = state.outbound.count
      defer { state.outbound = OutboundQueue() }
      return .write(state.outbound)
    }
    state.isFlushing = false
    if state.shouldClose { return .close }
    if state.shouldFinishWriting { Platform.finishSending(descriptor) }
    defer { state.onDrained = nil }
    return .drained(state.onDrained)
  }

  /// Returns the step after a call that has written nothing: the socket takes no more now, or never again.
  private func stepAfter(_ result: Int, _ state: inout State) -> FlushStep {
    if Platform.isRetry(result) {
      state.awaitsWriting = true
      return .awaitRoom
    }
    state.output = .broken
    state.isFlushing = false
    state.outbound = OutboundQueue()
    return .fail
  }

  /// Puts what was not written in front of what was queued meanwhile.
  private func putBack(_ queue: consuming OutboundQueue, _ state: inout State) {
    state.taken = 0
    if !queue.isEmpty, !state.isClosed {
      var queue = queue
      queue.append(state.outbound)
      state.outbound = queue
    }
  }

  private func writable() {
    let (isReady, onConnect) = state.withLock { state in
      guard !state.isClosed, state.awaitsWriting else {
        return (false, nil as (@Sendable (Int32) -> Void)?)
      }
      state.awaitsWriting = false
      defer { state.onConnect = nil }
      return (true, state.onConnect)
    }
    guard isReady else { return }
    watch()
    onConnect?(Platform.pendingError(of: descriptor))
    flush()
  }

  /// Handles a failed write. What the peer sent before, such as a close frame, is still read first.
  private func writeFailed() {
    let (handler, shouldClose) = state.withLock { ($0.handler, $0.shouldClose) }
    guard !shouldClose else { return shut(reset: false) }
    for _ in 0..<256 {
      guard state.withLock({ !$0.hasEnded && !$0.isClosed }), readOnce(for: handler) > 0 else {
        break
      }
    }
    endInput()
  }

  // MARK: Closing

  /// Closes once everything queued is written, or at the latest after `limit`.
  func close(within limit: Duration) {
    if closeOnceWritten() { return }
    loop.after(limit) { [weak self] in self?.abort() }
  }

  /// Closes once everything queued is written, however long that takes: the caller limits the time.
  ///
  /// - Returns: true if that is now, since nothing is queued.
  @discardableResult
  func closeOnceWritten() -> Bool {
    let isFlushing = state.withLock { state in
      guard !state.isClosed, !state.shouldClose else { return true }
      state.shouldClose = true
      return state.isFlushing || !state.outbound.isEmpty
    }
    if !isFlushing { shut(reset: false) }
    return !isFlushing
  }

  /// Closes at once and drops what is queued; the peer sees a reset.
  func abort() {
    shut(reset: true)
  }

  private func shut(reset: Bool) {
    let isFirst = state.withLock { state in
      guard !state.isClosed else { return false }
      state.isClosed = true
      state.outbound = OutboundQueue()
      (state.onConnect, state.onDrained) = (nil, nil)
      return true
    }
    // Later, since the descriptor may be in use further up on the stack of this thread.
    if isFirst { loop.execute { self.close(reset: reset) } }
  }

  private func close(reset: Bool) {
    if reset { Platform.resetOnClose(descriptor) }
    if let id = state.withLock({ $0.id }) { loop.remove(id) }
    Platform.closeDescriptor(descriptor)
    onClosed()
  }
}

extension SocketTransport: LoopSource {
  func ready(_ events: Readiness) {
    if events.contains(.write) { writable() }
    if events.contains(.read) { readable() }
  }

  /// Gives the connection up: nothing could be received on it. To the handler that is the end, and to one that waits for a
  /// connection a failed attempt.
  func cannotBeWatched() {
    let (onConnect, handler) = state.withLock { state in
      defer { (state.onConnect, state.hasEnded) = (nil, true) }
      return (state.onConnect, state.hasEnded || state.isClosed ? nil : state.handler)
    }
    // First, so that nothing tries to watch it again.
    abort()
    onConnect?(ENOMEM)
    handler?.ended()
  }
}
