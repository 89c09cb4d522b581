import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct SignalTests {
  @Test("Listeners are called in order, each time")
  func order() {
    let signal = Signal<Int>()
    var log: [String] = []
    signal.listen { log.append("a\($0)") }
    signal.listen { log.append("b\($0)") }
    signal.fire(1)
    signal.fire(2)
    #expect(log == ["a1", "b1", "a2", "b2"])
  }

  @Test("ListenOnce fires exactly once, also when it fires the signal itself")
  func once() {
    let signal = Signal<Int>()
    let listener = Listener()
    let token = signal.listenOnce(listener) { me, value in
      me.log.append("\(value)")
      if value < 5 { signal.fire(value + 1) }
    }
    signal.fire(1)
    signal.fire(9)
    #expect(listener.log == ["1"])
    #expect(token.isCancelled)
    #expect(!signal.hasListeners)
  }

  @Test("Cancelling many listeners leaves the others in order")
  func cancelMany() {
    let signal = Signal<Int>()
    var log: [Int] = []
    let tokens = (0..<50_000).map { number in signal.listen { _ in log.append(number) } }
    for (number, token) in tokens.enumerated() where !number.isMultiple(of: 10_000) {
      token.cancel()
    }
    #expect(signal.listenerCount == 5)
    signal.fire(1)
    #expect(log == [0, 10_000, 20_000, 30_000, 40_000])
    var wasEmpty = false
    signal.whenListened = { wasEmpty = true }
    for token in tokens { token.cancel() }
    #expect(!signal.hasListeners && signal.listenerCount == 0)
    signal.listen { log.append(-$0) }
    #expect(wasEmpty && signal.hasOneListener)
    signal.fire(2)
    #expect(log.last == -2 && log.count == 6)
  }

  @Test("A token whose listener is gone already may be cancelled")
  func cancelledTwice() {
    let signal = Signal<Int>()
    var observer: Listener? = Listener()
    let token = signal.listen(observer!) { _, _ in }
    let other = (0..<5).map { _ in signal.listen { _ in } }
    observer = nil
    signal.fire(1)
    #expect(signal.listenerCount == 5)
    token.cancel()
    #expect(signal.listenerCount == 5)
    for token in other {
      #expect(signal.hasListeners)
      token.cancel()
    }
    #expect(!signal.hasListeners)
  }

  @Test("A filter drops payloads that do not match, and listenOnce waits for one that does")
  func filter() {
    let signal = Signal<Int>()
    let listener = Listener()
    signal.listen(listener, filter: { $0.isMultiple(of: 2) }) { me, _ in me.called() }
    signal.listenOnce(listener, filter: { $0 > 2 }) { me, value in me.log.append("\(value)") }
    for value in 1...5 { signal.fire(value) }
    #expect(listener.count == 2)
    #expect(listener.log == ["3"])
  }

  @Test("ListenCoalesced gives the last payload once a tick")
  func coalesced() {
    let signal = Signal<Int>()
    let ticker = Ticker.manual()
    let listener = Listener()
    signal.listenCoalesced(listener, on: ticker) { me, value in me.log.append("\(value)") }
    signal.fire(1)
    signal.fire(2)
    #expect(listener.log.isEmpty)
    ticker.tick()
    ticker.tick()
    #expect(listener.log == ["2"])
    signal.fire(3)
    ticker.tick()
    #expect(listener.log == ["2", "3"])
  }

  @Test("Without an observer, once and coalesced")
  func withoutObserver() {
    let ticker = Ticker.manual()
    let signal = Signal<Int>()
    var log: [String] = []
    signal.listenOnce(filter: { $0 > 1 }) { log.append("once \($0)") }
    let token = signal.listenCoalesced(on: ticker) { log.append("coalesced \($0)") }
    for value in 1...3 { signal.fire(value) }
    #expect(log == ["once 2"])
    ticker.tick()
    #expect(log == ["once 2", "coalesced 3"])
    signal.fire(4)
    token.cancel()
    ticker.tick()
    #expect(log.count == 2)
    #expect(!signal.hasListeners)
  }

  @Test("ListenCoalesced with a delay waits from the first payload on")
  func delayed() {
    let signal = Signal<Int>()
    let ticker = Ticker.manual()
    let listener = Listener()
    signal.listenCoalesced(listener, on: ticker, delay: .seconds(1)) { me, value in
      me.log.append("\(value)")
    }
    signal.fire(1)
    ticker.advance(by: .milliseconds(600))
    signal.fire(2)
    ticker.advance(by: .milliseconds(399))
    #expect(listener.log.isEmpty)
    ticker.advance(by: .milliseconds(1))
    #expect(listener.log == ["2"])
    #expect(ticker.isIdle)
  }

  @Test("A coalescing listener that is cancelled while a payload waits hears nothing")
  func cancelCoalesced() {
    let signal = Signal<Int>()
    let ticker = Ticker.manual()
    let listener = Listener()
    let token = signal.listenCoalesced(listener, on: ticker) { me, _ in me.called() }
    signal.fire(1)
    token.cancel()
    ticker.tick()
    #expect(listener.count == 0)
  }

  @Test("Cancelling ends it at once, twice is harmless, others go on")
  func cancel() {
    let signal = Signal<Int>()
    let listener = Listener()
    let first = signal.listen(listener) { me, _ in me.called() }
    signal.listen(listener) { me, _ in me.log.append("other") }
    signal.fire(1)
    first.cancel()
    first.cancel()
    signal.fire(2)
    #expect(listener.count == 1)
    #expect(listener.log == ["other", "other"])
  }

  @Test("A listener cancelled by another during a delivery hears nothing more")
  func cancelDuringFire() {
    let signal = Signal<Int>()
    let listener = Listener()
    var second: ObservationToken?
    var own: ObservationToken?
    own = signal.listen { _ in
      second?.cancel()
      own?.cancel()
    }
    second = signal.listen(listener) { me, _ in me.called() }
    signal.fire(1)
    #expect(listener.count == 0)
    #expect(!signal.hasListeners)
  }

  @Test("A listener added during a delivery hears the next payload")
  func addDuringFire() {
    let signal = Signal<Int>()
    let listener = Listener()
    signal.listenOnce(listener) { me, _ in
      signal.listen(me) { me, value in me.log.append("\(value)") }
    }
    signal.fire(1)
    #expect(listener.log.isEmpty)
    signal.fire(2)
    #expect(listener.log == ["2"])
  }

  @Test("A released observer ends the observation and frees what the callback holds")
  func observerReleased() {
    let signal = Signal<Int>()
    var listener: Listener? = Listener()
    weak let weakListener = listener
    var captured: Listener? = Listener()
    weak let weakCaptured = captured
    signal.listen(listener!) { [captured] _, _ in captured?.called() }
    signal.fire(1)
    #expect(captured?.count == 1)
    captured = nil
    #expect(weakCaptured != nil)
    listener = nil
    #expect(weakListener == nil)
    signal.fire(2)
    #expect(weakCaptured == nil)
    #expect(!signal.hasListeners)
  }

  @Test("RemoveListeners(of:) removes all of one observer and only those")
  func removeListeners() {
    let signal = Signal<Int>()
    let gone = Listener()
    let stays = Listener()
    let tokens = (0..<3).map { _ in signal.listen(gone) { me, _ in me.called() } }
    signal.listen(stays) { me, _ in me.called() }
    signal.removeListeners(of: gone)
    signal.fire(1)
    #expect(gone.count == 0)
    #expect(stays.count == 1)
    #expect(tokens.filter { $0.isCancelled }.count == 3)
  }

  @Test("A token retains neither side, and dropping it cancels nothing")
  func tokenRetainsNothing() {
    var signal: Signal<Int>? = Signal()
    weak let weakSignal = signal
    var listener: Listener? = Listener()
    weak let weakListener = listener
    let token = signal!.listen(listener!) { me, _ in me.called() }
    signal!.listen(listener!) { me, _ in me.log.append("dropped token") }
    signal!.fire(1)
    #expect(listener?.count == 1)
    #expect(listener?.log == ["dropped token"])
    signal = nil
    listener = nil
    #expect(weakSignal == nil)
    #expect(weakListener == nil)
    #expect(!token.isCancelled)
    token.cancel()
  }

  @Test("The end of a captured object may use the signal again")
  func releaseDuringCleanup() {
    final class Closer {
      let signal: Signal<Int>
      init(_ signal: Signal<Int>) { self.signal = signal }
      deinit { signal.listen { _ in } }
    }
    let signal = Signal<Int>()
    var listener: Listener? = Listener()
    do {
      let closer = Closer(signal)
      signal.listen(listener!) { _, _ in _ = closer.signal }
    }
    listener = nil
    signal.fire(1)
    #expect(signal.hasListeners)
  }

  @Test("Listeners whose observers are gone do not pile up while nothing fires")
  func deadListenersAreDropped() {
    let signal = Signal<Int>()
    var alive = 0
    final class Counted {
      let end: () -> Void
      init(_ end: @escaping () -> Void) { self.end = end }
      deinit { end() }
    }
    for _ in 0..<1_000 {
      alive += 1
      let captured = Counted { alive -= 1 }
      signal.listen(Listener()) { _, _ in _ = captured }
    }
    #expect(alive < 100)
  }
}
