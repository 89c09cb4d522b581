import Foundation
import Jetstream

/// The full states of one scope that sessions are sent, and of which its log has snapshots.
///
/// All of them share what was read of the scope. That is kept up to date until none was made for a while. A state of more
/// than one part is read a part at a time, and its texts are made away from the server's actor: other scopes, and other
/// sessions of this one, do not wait for that. Texts are made on the actor if they have no more bytes than a part, or if
/// others are being made already, so that few wait at any time.
///
/// Sessions of version 1 share the same parts. They are sent a state of several parts in one message, whose text is
/// joined from those of the parts.
struct ScopeStates {
  /// A fetch that is answered once the state was read.
  struct Fetch {
    let message: ScopeFetch
    let subscription: Subscription
  }

  /// The work that is done away from the server's actor.
  private enum Errand {
    case none
    /// A part was read, of which no text is needed: others have their turn before the next one is read.
    case turnDue
    case turn
    /// The text of the first of the encodings is being made.
    case text
  }

  private var reader: StateReader?
  /// The copy that was made last, which may be out of date.
  private(set) var last: StateCopy?
  /// The state that clients of version 1 are sent, in one part.
  private var whole: StateCopy?
  /// The fetches that wait for the state.
  private(set) var fetches: [Fetch] = []
  /// The sessions of version 1 whose fetches wait for the texts of the state, by number.
  private var sessions: [Int: ServerSession] = [:]
  /// The number of times that the state was encoded for ``sessions``, or read anew, and had changed meanwhile.
  private var rounds = 0
  /// The actions that wait until the state was read.
  private var preparations: [() -> Void] = []
  /// The parts whose texts are made elsewhere, one at a time, in this order.
  private var encodings: [StatePart] = []
  private var errand = Errand.none
  /// The subscriptions that wait for the text of a part, by the numbers of their sessions.
  private var receivers: [Int: Subscription] = [:]
  /// The time at which a state was last asked for.
  private var usedAt = Duration.zero

  /// Notes that models of the scope were changed, or have come or gone.
  mutating func note(_ uuid: UUID) { reader?.note(uuid) }

  /// Notes that models of the scope have come.
  mutating func note(all uuids: [UUID]) { reader?.note(all: uuids) }

  /// Returns the state of `host` at its sequence; nil if it is still being read.
  ///
  /// - Parameter isSettled: false if the content has changes of the app that no change set has. The state has them too,
  ///   and is not kept: they may be taken back without a trace.
  mutating func state(
    of host: ScopeHost, below root: any HostedModel, isSettled: Bool, partBytes: Int, now: Duration
  ) -> StateCopy? {
    usedAt = now
    if isSettled, let last, last.sequence == host.sequence, last.root == root.uuid { return last }
    begin(host, below: root, partBytes: partBytes)
    guard reader?.hasReadAll == true else { return nil }
    let copy = reader?.copy(at: host.sequence)
    last = copy
    if !isSettled || reader?.isScattered == true { reader = nil }
    if !isSettled { last = nil }
    if let copy { _ = encode(bareIn: copy, partBytes: partBytes) }
    return copy
  }

  /// Begins to read the state unless that was done.
  private mutating func begin(_ host: ScopeHost, below root: any HostedModel, partBytes: Int) {
    guard reader?.root != root.uuid else { return }
    (reader, last) = (StateReader(host.content, root: root.uuid, partBytes: partBytes), nil)
    // Most scopes have no second part.
    if let part = reader?.readPart() { encode([part]) }
  }

  // MARK: Version 1

  /// The number of times that a state is encoded, while its scope goes on changing, before all of it is encoded on the
  /// actor.
  private static let roundLimit = 8

  /// Returns the state of `host` for a client of version 1, if it has one part: depth first. Cost: O(n) after a change.
  mutating func smallState(
    of host: ScopeHost, below root: any HostedModel, isSettled: Bool, now: Duration
  ) -> StateCopy {
    usedAt = now
    if isSettled, let whole, whole.sequence == host.sequence, whole.root == root.uuid {
      return whole
    }
    let made = StateCopy(
      sequence: host.sequence, root: root.uuid, parts: [StatePart(host.content.sharedState())])
    whole = isSettled ? made : nil
    return made
  }

  /// Returns the state of `host` in one part, for a client of version 1, whose protocol has no others; nil if it is
  /// still being read or encoded.
  ///
  /// Texts of no more bytes than a part are made on the actor. Of a scope that changes faster than it is encoded, all
  /// are after a while, so that fetches are always answered. Cost: O(size of the state) after a change, to copy texts.
  mutating func wholeState(
    of host: ScopeHost, below root: any HostedModel, isSettled: Bool, partBytes: Int, now: Duration
  ) -> StateCopy? {
    usedAt = now
    if isSettled, let whole, whole.sequence == host.sequence, whole.root == root.uuid {
      return whole
    }
    guard encodings.isEmpty || rounds > Self.roundLimit else { return nil }
    if reader == nil { rounds += 1 }
    let isLast = rounds > Self.roundLimit
    if isLast {
      begin(host, below: root, partBytes: partBytes)
      while reader?.readPart() != nil {}
    }
    let copy = state(
      of: host, below: root, isSettled: isSettled, partBytes: partBytes, now: now)
    guard let copy else { return nil }
    if !isLast, !encodings.isEmpty || encode(bareIn: copy, partBytes: partBytes) {
      rounds += 1
      if rounds <= Self.roundLimit { return nil }
    }
    rounds = 0
    let made = copy.joined()
    whole = isSettled ? made : nil
    return made
  }

  /// Leaves the fetches of a session of version 1 until the state was encoded.
  mutating func wait(_ session: ServerSession) { sessions[session.number] = session }

  /// Returns true if fetches of a session of version 1 wait.
  func isAwaited(by session: ServerSession) -> Bool { sessions[session.number] != nil }

  /// Returns the sessions of version 1 that have waited, unless the state is still being read or encoded.
  mutating func takeSessions() -> [ServerSession] {
    guard encodings.isEmpty else { return [] }
    defer { sessions = [:] }
    return sessions.sorted { $0.key < $1.key }.map(\.value)
  }

  // MARK: Reading

  /// Leaves a fetch until the state was read.
  mutating func wait(_ fetch: Fetch) { fetches.append(fetch) }

  /// True if fetches, or actions, wait for the state.
  var isAwaited: Bool { isFetched || !preparations.isEmpty }

  private var isFetched: Bool { !fetches.isEmpty || !sessions.isEmpty }

  /// Reads the next part, if it is waited for and nothing is being encoded.
  mutating func readOn() { readOn(isAwaited: isAwaited) }

  private mutating func readOn(isAwaited: Bool) {
    guard isAwaited, encodings.isEmpty, reader?.hasReadAll == false else { return }
    if let part = reader?.readPart(), isFetched {
      encode([part])
    } else if case .none = errand {
      // Also if that was the rest, which is no full part: those who wait are answered in that turn.
      errand = .turnDue
    }
  }

  /// Has the state read, so that ``takeParts(at:below:)`` returns it.
  ///
  /// - Parameter action: runs once it was read, unless that was done before.
  /// - Returns: true if it was read before.
  mutating func prepare(
    _ host: ScopeHost, below root: any HostedModel, partBytes: Int, now: Duration,
    then action: @escaping () -> Void
  ) -> Bool {
    usedAt = now
    begin(host, below: root, partBytes: partBytes)
    readOn(isAwaited: true)
    if reader?.hasReadAll == true { return true }
    preparations.append(action)
    return false
  }

  /// Removes and returns the actions that have waited, if the state was read.
  mutating func takePreparations() -> [() -> Void] {
    guard reader?.hasReadAll ?? true else { return [] }
    defer { preparations = [] }
    return preparations
  }

  /// Returns the parts of the state at `sequence`, which is that of the content, if it was read; nil if it was not. The
  /// app's changes must be sealed. Cost: O(size of the parts with models that have changed since).
  mutating func takeParts(at sequence: Int, below root: UUID?) -> [[SyncFragment]]? {
    guard let root, reader?.root == root, reader?.hasReadAll == true else { return nil }
    defer { if reader?.isScattered == true { reader = nil } }
    return reader?.copy(at: sequence).parts.map(\.fragments)
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

  /// Has the texts made that parts of a copy lack, unless they have no more bytes than a part or others are being made
  /// already. Returns true if they are.
  private mutating func encode(bareIn copy: StateCopy, partBytes: Int) -> Bool {
    guard encodings.isEmpty else { return false }
    let bare = copy.parts.filter { $0.text == nil }
    guard bare.reduce(0, { $0 + $1.bytes }) > partBytes else { return false }
    encode(bare)
    return true
  }

  /// Returns the fragments whose text is to be made next: none, if only a turn is needed. Nil if there is nothing to do
  /// elsewhere, or if that is being done.
  mutating func nextEncoding() -> [SyncFragment]? {
    switch errand {
    case .turn, .text: return nil
    case .none, .turnDue: break
    }
    if let part = encodings.first {
      errand = .text
      return part.fragments
    }
    guard case .turnDue = errand else { return nil }
    errand = .turn
    return []
  }

  /// Takes the text of the fragments that ``nextEncoding()`` has returned. Returns the subscriptions that have waited
  /// for a text.
  mutating func take(_ text: FragmentsText) -> [Subscription] {
    defer { errand = .none }
    // A scope that is not hosted any more has let go of everything.
    guard case .text = errand else { return [] }
    encodings.removeFirst().take(text)
    defer { receivers = [:] }
    return receivers.sorted { $0.key < $1.key }.map(\.value)
  }

  /// Notes that a subscription waits for a text.
  mutating func wait(_ subscription: Subscription) {
    receivers[subscription.session.number] = subscription
  }

  // MARK: Forgetting

  /// Lets go of what was read, for content that changes without notes. Those who wait get what is read anew.
  mutating func forget() { (reader, last, whole, rounds) = (nil, nil, nil, 0) }

  /// Lets go of what was read if no state was asked for since `time`, and nothing waits for one.
  mutating func forget(unusedSince time: Duration) {
    guard usedAt <= time, !isAwaited, encodings.isEmpty else { return }
    forget()
  }

  /// The number of things that are kept; 0 once everything was sent, and a while has passed.
  var size: Int {
    (reader == nil ? 0 : 1) + (last == nil ? 0 : 1) + (whole == nil ? 0 : 1)
      + fetches.count + sessions.count + preparations.count + encodings.count + receivers.count
  }

  func checkInvariants() -> [String] {
    // A client chooses how large these are.
    let large = fetches.count { $0.message.params != .null || $0.message.schema != nil }
    let problems = large > 0 ? ["\(large) fetches wait with parameters or a schema"] : []
    return problems + (reader?.checkInvariants() ?? [])
  }
}
