import Foundation
import Jetstream

/// The full states of one scope that sessions are sent.
///
/// All sessions that fetch the scope share what was read of it. That is kept up to date until no session has begun with
/// it for a while. A state of more than one part is read a part at a time, and its texts are made away from the server's
/// actor: other scopes, and other sessions of this one, do not wait for that. Texts are made on the actor if they have no
/// more bytes than a part, or if others are being made already, so that few wait at any time.
struct ScopeStates {
  /// A fetch that is answered once the state was read.
  struct Fetch {
    let message: ScopeFetch
    let subscription: Subscription
  }

  private var reader: StateReader?
  /// The copy that was made last, which may be out of date.
  private(set) var last: StateCopy?
  /// The state that clients of version 1 are sent: in one part, depth first.
  private var whole: StateCopy?
  /// The fetches that wait for the state.
  private(set) var fetches: [Fetch] = []
  /// The parts whose texts are made elsewhere, one at a time, in this order.
  private var encodings: [StatePart] = []
  /// True while the text of the first of ``encodings`` is being made.
  private var isEncoding = false
  /// The subscriptions that wait for the text of a part, by the numbers of their sessions.
  private var receivers: [Int: Subscription] = [:]
  /// The time at which a session has last begun with a state.
  private var usedAt = Duration.zero

  /// Notes that models of the scope were changed, or have come or gone.
  mutating func note(_ uuid: UUID) { reader?.note(uuid) }

  /// Returns the state of `host` at its sequence; nil if it is still being read.
  ///
  /// - Parameter isSettled: false if the content has changes of the app that no change set has. The state has them too,
  ///   and is not kept: they may be taken back without a trace.
  mutating func state(
    of host: ScopeHost, below root: any HostedModel, isSettled: Bool, partBytes: Int, now: Duration
  ) -> StateCopy? {
    usedAt = now
    if isSettled, let last, last.sequence == host.sequence, last.root == root.uuid { return last }
    if reader?.root != root.uuid {
      (reader, last) = (StateReader(host.content, root: root.uuid, partBytes: partBytes), nil)
      // Most scopes have no second part.
      if let part = reader?.readPart() { encode([part]) }
    }
    guard reader?.hasReadAll == true else { return nil }
    let copy = reader?.copy(at: host.sequence)
    last = copy
    if !isSettled || reader?.isScattered == true { reader = nil }
    if !isSettled { last = nil }
    guard encodings.isEmpty else { return copy }
    let bare = copy?.parts.filter { $0.text == nil } ?? []
    if bare.reduce(0, { $0 + $1.bytes }) > partBytes { encode(bare) }
    return copy
  }

  /// Returns the state of `host` for a client of version 1, whose protocol has no parts. Cost: O(n) after a change.
  mutating func wholeState(
    of host: ScopeHost, below root: any HostedModel, now: Duration
  ) -> StateCopy {
    usedAt = now
    if let whole, whole.sequence == host.sequence { return whole }
    let made = StateCopy(
      sequence: host.sequence, root: root.uuid, parts: [StatePart(host.content.sharedState())])
    whole = made
    return made
  }

  // MARK: Reading

  /// Leaves a fetch until the state was read.
  mutating func wait(_ fetch: Fetch) { fetches.append(fetch) }

  /// Reads the next part, if fetches wait for it and nothing is being encoded.
  mutating func readOn() {
    guard !fetches.isEmpty, encodings.isEmpty, let part = reader?.readPart() else { return }
    encode([part])
  }

  /// Returns the fetches that have waited, if the state was read.
  mutating func takeFetches() -> [Fetch] {
    guard reader?.hasReadAll ?? true else { return [] }
    defer { fetches = [] }
    return fetches
  }

  // MARK: Encoding

  private mutating func encode(_ parts: [StatePart]) {
    for part in parts { part.awaitText() }
    encodings += parts
  }

  /// Returns the part whose text is to be made next; nil if there is none, or if one is being made.
  mutating func nextEncoding() -> StatePart? {
    guard !isEncoding, let part = encodings.first else { return nil }
    isEncoding = true
    return part
  }

  /// Takes the text of the part that ``nextEncoding()`` has returned. Returns the subscriptions that have waited for a
  /// text.
  mutating func take(_ text: FragmentsText) -> [Subscription] {
    // A scope that is not hosted any more has let go of everything.
    guard isEncoding else { return [] }
    encodings.removeFirst().take(text)
    isEncoding = false
    defer { receivers = [:] }
    return receivers.sorted { $0.key < $1.key }.map(\.value)
  }

  /// Notes that a subscription waits for a text.
  mutating func wait(_ subscription: Subscription) {
    receivers[subscription.session.number] = subscription
  }

  // MARK: Forgetting

  /// Lets go of what was read if no session has begun with it since `time`, and none waits for it.
  mutating func forget(unusedSince time: Duration) {
    guard usedAt <= time, fetches.isEmpty, encodings.isEmpty else { return }
    (reader, last, whole) = (nil, nil, nil)
  }

  /// The number of things that are kept; 0 once everything was sent, and a while has passed.
  var size: Int {
    (reader == nil ? 0 : 1) + (last == nil ? 0 : 1) + (whole == nil ? 0 : 1)
      + fetches.count + encodings.count + receivers.count
  }

  func checkInvariants() -> [String] { reader?.checkInvariants() ?? [] }
}
