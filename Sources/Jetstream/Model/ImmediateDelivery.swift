import CJetstream

/// The delivery of the events of one change to immediate observers.
///
/// An observer may make another change while it is called. Before that change calls its observers, it makes the calls
/// that are left of this one, so that each observer is called with changes in the order in which they were made:
///
/// ```
/// x = 1                     A and B observe x
///   A is called with 0, 1, and writes x = 2
///     B is called with 0, 1, the call that was left of the first change
///     A is called with 1, 2
///     B is called with 1, 2
/// ```
///
/// The deliveries that run on a thread form a chain, the innermost first. One that has begun has completed all those
/// around it. Each keeps its place before it makes a call, so that it can be continued within that call, and ends
/// without another one when control comes back to it.
final class ImmediateDelivery {
  private var events: ImmediateEvents
  /// The calls of the event that was taken last.
  private var calls: (any PendingCalls)?
  private let outer: ImmediateDelivery?
  private var hasBegun = false

  private init(_ events: ImmediateEvents, within outer: ImmediateDelivery?) {
    (self.events, self.outer) = (events, outer)
  }

  /// Delivers `events`, after all that is left of earlier changes. Changes that the observers make are local changes,
  /// even while remote changes are applied.
  static func deliver(_ events: ImmediateEvents) {
    ModelTree.suspendRemoteWriting { deliverLocally(events) }
  }

  private static func deliverLocally(_ events: ImmediateEvents) {
    let outer = running
    if outer == nil, events.deliverAlone() { return }
    let delivery = ImmediateDelivery(events, within: outer)
    let pointer = jetstream_delivery()
    jetstream_set_delivery(Unmanaged.passUnretained(delivery).toOpaque())
    defer { jetstream_set_delivery(pointer) }
    withExtendedLifetime(delivery) { delivery.complete() }
  }

  /// Makes the calls that are left of the changes whose observers are being called.
  static func completeAll() { running?.complete() }

  /// The innermost delivery that runs on the calling thread.
  ///
  /// Safe because observers cannot suspend: the pointer is set and reset on one thread, and the frame that has set it
  /// keeps the delivery alive.
  private static var running: ImmediateDelivery? {
    jetstream_delivery().map {
      Unmanaged<ImmediateDelivery>.fromOpaque($0).takeUnretainedValue()
    }
  }

  private func complete() {
    if !hasBegun { outer?.complete() }
    hasBegun = true
    while true {
      if let calls {
        if calls.callNext() { continue }
        // An observer may have made another change, which has gone on to a later event.
        if self.calls === calls { self.calls = nil }
        continue
      }
      switch events.next() {
      case .refusal(let error, let tree)?: tree?.refuse(error)
      case .bridge(let bridge, let index)?: bridge.didChange(index)
      case .calls(let next)?: calls = next
      case nil: return
      }
    }
  }
}
