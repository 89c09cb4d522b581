import Dispatch
import Synchronization

/// Receives the events of a transport. Every call comes on the transport's loop, one at a time.
protocol TransportHandler: AnyObject, Sendable {
  /// Takes bytes that were received.
  func received(_ bytes: ArraySlice<UInt8>)
  /// Notes that the peer ended its side or the connection broke. Called once; no bytes are received after it.
  func ended()
  /// Notes that everything queued was handed to the kernel.
  func drained()
}

/// One connected, non-blocking socket with a queue of bytes to write.
///
/// Safe to use from any thread. The descriptor is closed on the loop's queue, after both event sources have confirmed
/// their end. Reads happen on that queue too. Every other call that uses the descriptor first makes sure, under the
/// lock, that the sources are still live. Reading starts paused. A transport lives until it is closed or aborted.
final class SocketTransport: Sendable {
  /// Sendable although the overlay of libdispatch does not declare its sources so: sources are
  /// made to be used from any thread, and everything else in here is Sendable by itself.
  private struct State: @unchecked Sendable {
    weak var handler: (any TransportHandler)?
    var outbound = OutboundQueue()
    /// True while a flush is scheduled, or waits for the socket to take more.
    var isFlushing = false
    var readSource: (any DispatchSourceRead)?
    var writeSource: (any DispatchSourceWrite)?
    var isReadActivated = false
    var isReadPaused = true
    var hasEnded = false
    var isWriteBroken = false
    var shouldFinishWriting = false
    var shouldClose = false
    var isClosed = false
    /// The number of event sources that have not confirmed their end yet.
    var liveSources = 1
    var onConnect: (@Sendable (Int32) -> Void)?
  }

  let loop: IOLoop
  private let descriptor: Int32
  private let onClosed: @Sendable () -> Void
  private let state: Mutex<State>

  /// Takes over `descriptor`. `onClosed` runs once, after the descriptor was closed.
  init(descriptor: Int32, loop: IOLoop, onClosed: @escaping @Sendable () -> Void = {}) {
    self.descriptor = descriptor
    self.loop = loop
    self.onClosed = onClosed
    state = Mutex(State())
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: loop.queue)
    source.setEventHandler { self.readable() }
    source.setCancelHandler { self.sourceEnded() }
    state.withLock { $0.readSource = source }
  }

  /// The number of bytes queued but not yet handed to the kernel.
  var bufferedBytes: Int { state.withLock { $0.outbound.count } }

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
      armWriting(&state)
    }
  }

  // MARK: Reading

  /// Stops reading; the peer is held back by TCP once the kernel's buffers are full.
  func pauseReading() {
    state.withLock { state in
      guard !state.isReadPaused else { return }
      state.isReadPaused = true
      if state.isReadActivated, !state.isClosed { state.readSource?.suspend() }
    }
  }

  /// Resumes reading.
  func resumeReading() {
    state.withLock { state in
      guard state.isReadPaused, !state.hasEnded, !state.isClosed else { return }
      state.isReadPaused = false
      if state.isReadActivated {
        state.readSource?.resume()
      } else {
        activateReading(&state)
      }
    }
  }

  /// Begins to read as soon as no write source exists. On Linux, a read source that libdispatch registers while it has
  /// a write source for the same descriptor may never report that the peer has hung up.
  private func activateReading(_ state: inout State) {
    guard !state.isReadPaused, !state.isReadActivated, state.liveSources == 1 else { return }
    state.isReadActivated = true
    state.readSource?.activate()
  }

  /// Reads a few times as long as there is more, then lets the loop's other sockets have a turn.
  private func readable() {
    for _ in 0..<4 {
      let (isReady, handler) = state.withLock {
        (!$0.isReadPaused && !$0.hasEnded && !$0.isClosed, $0.handler)
      }
      guard isReady else { return }
      let result = readOnce(for: handler)
      if result < IOLoop.readSize { return }
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
      // The end would be reported again and again; the handler closes the transport soon.
      if !state.isReadPaused {
        state.isReadPaused = true
        state.readSource?.suspend()
      }
      return state.handler
    }
    handler?.ended()
  }

  // MARK: Writing

  /// Queues bytes and has them written soon, together with whatever else is queued by then.
  func enqueue(_ frame: EncodedFrame) {
    state.withLock { state in
      guard !state.isClosed, !state.isWriteBroken, !state.shouldClose, !state.shouldFinishWriting
      else { return }
      state.outbound.append(frame)
      scheduleFlush(&state)
    }
  }

  /// Shuts the sending half down once everything queued is written.
  func finishWriting() {
    state.withLock { state in
      guard !state.isClosed, !state.shouldFinishWriting else { return }
      state.shouldFinishWriting = true
      scheduleFlush(&state)
    }
  }

  private func scheduleFlush(_ state: inout State) {
    guard !state.isFlushing else { return }
    state.isFlushing = true
    loop.queue.async { self.flush() }
  }

  private enum FlushEnd {
    case waiting
    case drained((any TransportHandler)?)
    case again
    case close
    case failed
  }

  private func flush() {
    let end: FlushEnd = state.withLock { state in
      guard !state.isClosed else { return .waiting }
      var turns = 0
      while !state.outbound.isEmpty {
        let written = state.outbound.write(to: descriptor)
        if written < 0 {
          if Platform.isRetry(written) {
            armWriting(&state)
            return .waiting
          }
          state.isWriteBroken = true
          state.outbound = OutboundQueue()
          state.isFlushing = false
          return .failed
        }
        turns += 1
        if turns == 16 { return .again }
      }
      state.isFlushing = false
      if state.shouldClose { return .close }
      if state.shouldFinishWriting { Platform.finishSending(descriptor) }
      return .drained(state.handler)
    }
    switch end {
    case .waiting: break
    case .again: loop.queue.async { self.flush() }
    case .drained(let handler): handler?.drained()
    case .close: shut(reset: false)
    case .failed: writeFailed()
    }
  }

  /// Calls `writable` once the socket takes more.
  private func armWriting(_ state: inout State) {
    guard !state.isClosed else { return }
    precondition(state.writeSource == nil, "A wait for room must end before the next one begins.")
    let source = DispatchSource.makeWriteSource(fileDescriptor: descriptor, queue: loop.queue)
    source.setEventHandler { self.writable() }
    source.setCancelHandler { self.sourceEnded() }
    state.liveSources += 1
    state.writeSource = source
    source.activate()
  }

  private func writable() {
    let (isReady, onConnect) = state.withLock { state in
      guard !state.isClosed, let source = state.writeSource else {
        return (false, nil as (@Sendable (Int32) -> Void)?)
      }
      source.cancel()
      state.writeSource = nil
      defer { state.onConnect = nil }
      return (true, state.onConnect)
    }
    guard isReady else { return }
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
    let isFlushing = state.withLock { state in
      guard !state.isClosed, !state.shouldClose else { return true }
      state.shouldClose = true
      return state.isFlushing || !state.outbound.isEmpty
    }
    guard isFlushing else { return shut(reset: false) }
    loop.after(limit) { [weak self] in self?.abort() }
  }

  /// Closes at once and drops what is queued; the peer sees a reset.
  func abort() {
    shut(reset: true)
  }

  private func shut(reset: Bool) {
    state.withLock { state in
      guard !state.isClosed else { return }
      state.isClosed = true
      state.outbound = OutboundQueue()
      state.onConnect = nil
      if reset { Platform.resetOnClose(descriptor) }
      // A source confirms its end only while it is neither inactive nor suspended.
      state.readSource?.cancel()
      if !state.isReadActivated {
        state.readSource?.activate()
      } else if state.isReadPaused {
        state.readSource?.resume()
      }
      state.writeSource?.cancel()
    }
  }

  private func sourceEnded() {
    let isLast = state.withLock { state in
      state.liveSources -= 1
      if !state.isClosed { activateReading(&state) }
      guard state.liveSources == 0 else { return false }
      state.readSource = nil
      state.writeSource = nil
      return true
    }
    guard isLast else { return }
    Platform.closeDescriptor(descriptor)
    onClosed()
  }
}
