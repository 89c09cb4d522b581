/// A list of callbacks that are called, in the order of registration, for each payload that is
/// fired.
///
/// ```swift
/// scope.onChanges.listen(self) { me, changeSet in me.store(changeSet) }
/// ```
///
/// The observer is held weakly and handed to the callback. Callbacks may add listeners, cancel
/// tokens and fire the signal again. A listener that is added during a delivery gets the next
/// payload; a listener that is cancelled during a delivery gets nothing more. A signal belongs to
/// one isolation domain.
public final class Signal<Payload> {
  // Changed only while no other code runs: removed listeners are released after the access.
  //
  // A cancelled listener stays in the list until half of them are cancelled, so that cancelling one costs O(1) on average.
  @exclusivity(unchecked) private var listeners: [Listener] = [] {
    didSet { listenerCount = listeners.count - cancelledCount }
  }
  /// The number of listeners in the list that are cancelled.
  private var cancelledCount = 0 {
    didSet { listenerCount = listeners.count - cancelledCount }
  }
  /// The number of listeners that are not cancelled. A number of its own: other targets would ask the array by way of its
  /// generic type, which costs as much as hundreds of instructions.
  private(set) var listenerCount = 0
  private var schedule = PruneSchedule()
  /// Called when the first listener is added.
  var whenListened: (() -> Void)?
  /// Calls the listeners that a running tick has not called yet; nil if the signal is not fired by ticks.
  var callDue: (() -> Void)?

  /// Makes a signal without listeners.
  package init() {}

  /// True while the signal has listeners. A listener whose observer was released may count until
  /// the next ``fire(_:)``.
  package var hasListeners: Bool { listenerCount > 0 }

  /// True if the signal has exactly one listener.
  var hasOneListener: Bool { listenerCount == 1 }

  /// Calls `handler` with the observer and each payload that `filter` lets through, until the
  /// observer is released or the token is cancelled.
  @discardableResult
  public func listen<Observer: AnyObject>(
    _ observer: Observer, filter: ((Payload) -> Bool)? = nil,
    _ handler: @escaping (Observer, Payload) -> Void
  ) -> ObservationToken {
    add(
      Listener(observer: observer, filter: filter) { [weak observer] in
        if let observer { handler(observer, $0) }
      })
  }

  /// Calls `handler` with each payload that `filter` lets through, until the token is cancelled.
  @discardableResult
  public func listen(
    filter: ((Payload) -> Bool)? = nil, _ handler: @escaping (Payload) -> Void
  ) -> ObservationToken {
    add(Listener(observer: nil, filter: filter, handler))
  }

  /// Calls `handler` with each payload that `filter` lets through. `observer` bounds the lifetime
  /// of the registration, if there is one, and is not handed to `handler`.
  func listen(
    for observer: AnyObject?, filter: ((Payload) -> Bool)? = nil,
    _ handler: @escaping (Payload) -> Void
  ) -> ObservationToken {
    add(Listener(observer: observer, filter: filter, handler))
  }

  /// Calls `handler` with the observer and the next payload that `filter` lets through, then ends
  /// the observation. It ends earlier if the observer is released or the token is cancelled.
  @discardableResult
  package func listenOnce<Observer: AnyObject>(
    _ observer: Observer, filter: ((Payload) -> Bool)? = nil,
    _ handler: @escaping (Observer, Payload) -> Void
  ) -> ObservationToken {
    let listener = Listener(observer: observer, filter: filter) { [weak observer] in
      if let observer { handler(observer, $0) }
    }
    listener.firesOnce = true
    return add(listener)
  }

  /// Calls `handler` with the next payload that `filter` lets through, then ends the observation.
  /// It ends earlier if the token is cancelled.
  @discardableResult
  package func listenOnce(
    filter: ((Payload) -> Bool)? = nil, _ handler: @escaping (Payload) -> Void
  ) -> ObservationToken {
    let listener = Listener(observer: nil, filter: filter, handler)
    listener.firesOnce = true
    return add(listener)
  }

  /// Calls `handler` at most once per tick of `ticker`, with the observer and the last payload
  /// fired since the tick before, until the observer is released or the token is cancelled.
  ///
  /// With a `delay`, the call waits for the first tick that is at least this long after the first
  /// undelivered payload.
  @discardableResult
  package func listenCoalesced<Observer: AnyObject>(
    _ observer: Observer, on ticker: Ticker, delay: Duration = .zero,
    _ handler: @escaping (Observer, Payload) -> Void
  ) -> ObservationToken {
    coalesced(for: observer, on: ticker, delay) { [weak observer] in
      if let observer { handler(observer, $0) }
    }
  }

  /// Calls `handler` at most once per tick of `ticker`, with the last payload fired since the tick
  /// before, until the token is cancelled.
  ///
  /// With a `delay`, the call waits for the first tick that is at least this long after the first
  /// undelivered payload.
  @discardableResult
  package func listenCoalesced(
    on ticker: Ticker, delay: Duration = .zero, _ handler: @escaping (Payload) -> Void
  ) -> ObservationToken {
    coalesced(for: nil, on: ticker, delay, handler)
  }

  private func coalesced(
    for observer: AnyObject?, on ticker: Ticker, _ delay: Duration,
    _ handler: @escaping (Payload) -> Void
  ) -> ObservationToken {
    let pending = PendingPayload<Payload>()
    let listener = Listener(observer: observer, filter: nil) { payload in
      let isFirst = pending.payload == nil
      pending.payload = payload
      guard isFirst else { return }
      ticker.perform(after: delay) {
        guard let last = pending.payload else { return }
        pending.payload = nil
        if !pending.isCancelled { handler(last) }
      }
    }
    listener.onForget = { pending.isCancelled = true }
    return add(listener)
  }

  /// Calls every listener with `payload`, in the order of registration. Cost: O(n) for n listeners.
  package func fire(_ payload: Payload) {
    guard !listeners.isEmpty else { return }
    var foundDead = false
    for listener in listeners where !listener.call(payload) { foundDead = true }
    if foundDead { dropDead() }
  }

  /// Returns the calls that ``fire(_:)`` makes now, to be made one by one.
  func calls(with payload: Payload) -> any PendingCalls { audience.calls(with: payload) }

  /// The listeners at this moment. A change takes them when it is made: a listener that is added before the change has
  /// called all of them gets the next one. Cost: O(1).
  var audience: Audience { Audience(of: self) }

  /// The listeners of a signal at one moment.
  struct Audience {
    let signal: Signal
    private let listeners: [Listener]
    private var next = 0

    init(of signal: Signal) { (self.signal, listeners) = (signal, signal.listeners) }

    /// Takes the next listener. Returns nil if there is none left.
    mutating func takeNext() -> Listener? {
      guard next < listeners.count else { return nil }
      defer { next += 1 }
      return listeners[next]
    }

    /// Removes the dead listeners from the signal if some of these are dead. Called after the last one was taken.
    func dropDead() {
      if listeners.contains(where: { !$0.isLive }) { signal.dropDead() }
    }

    /// Returns the calls of these listeners that are not cancelled when their turn comes.
    func calls(with payload: Payload) -> any PendingCalls {
      Calls(audience: self, payload: payload)
    }
  }

  private final class Calls: PendingCalls {
    private var audience: Audience
    private let payload: Payload

    init(audience: Audience, payload: Payload) {
      (self.audience, self.payload) = (audience, payload)
    }

    func callNext() -> Bool {
      // The listener may ask for the calls after this one.
      guard let listener = audience.takeNext() else {
        audience.dropDead()
        return false
      }
      _ = listener.call(payload)
      return true
    }
  }

  /// Cancels every listener of this signal that was registered with `observer`.
  package func removeListeners(of observer: AnyObject) {
    for listener in listeners where listener.observer === observer { listener.cancel() }
  }

  /// Removes the dead listeners. They are released only after the access to the list has ended, because the
  /// release of an object that a callback captured may use the signal.
  private func dropDead() {
    let all = listeners
    let live = all.filter(\.isLive)
    if live.count < all.count {
      // One whose observer was released may be cancelled later.
      for listener in all where !listener.isLive { listener.signal = nil }
      cancelledCount = 0
      listeners = live
    }
    withExtendedLifetime(all) {}
  }

  /// Notes that a listener of the list was cancelled.
  private func didCancel() {
    cancelledCount += 1
    if 2 * cancelledCount >= listeners.count { dropDead() }
  }

  private func add(_ listener: Listener) -> ObservationToken {
    if schedule.isDue(at: listeners.count) {
      dropDead()
      schedule.didPrune(to: listeners.count)
    }
    listener.signal = self
    listeners.append(listener)
    if listenerCount == 1 { whenListened?() }
    return listener
  }

  final class Listener: ObservationToken {
    @exclusivity(unchecked) var filter: ((Payload) -> Bool)?
    @exclusivity(unchecked) var handler: ((Payload) -> Void)?
    var firesOnce = false
    var onForget: (() -> Void)?
    weak var signal: Signal?

    init(
      observer: AnyObject?, filter: ((Payload) -> Bool)?, _ handler: @escaping (Payload) -> Void
    ) {
      self.filter = filter
      self.handler = handler
      super.init(observer: observer)
    }

    /// Calls the handler, unless the listener is muted or its filter says no. Returns false if the listener is dead.
    func call(_ payload: Payload) -> Bool {
      guard isLive else { return false }
      if isMuted { return true }
      if let filter, !filter(payload) { return true }
      let handler = handler
      if firesOnce { cancel() }
      handler?(payload)
      return true
    }

    override func callIfDue() { signal?.callDue?() }

    override func forgetHandler() {
      filter = nil
      handler = nil
      onForget?()
      onForget = nil
    }

    override func leaveHolder() { signal?.didCancel() }
  }
}

/// Calls of listeners that are to be made one by one.
protocol PendingCalls: AnyObject {
  /// Makes the next call. Returns false if there is none left.
  func callNext() -> Bool
}

/// The last payload that has not been delivered yet to a coalescing listener.
private final class PendingPayload<Payload> {
  var payload: Payload?
  var isCancelled = false
}
