import Foundation
import Jetstream
import JetstreamWebSocket

/// A scope that a session has fetched, until the session leaves it: what its client has been sent, and has proved to
/// have seen.
///
/// A subscription of version 2 is in one of these states:
///
/// - Listening: each accepted change set is queued as soon as it is durable.
/// - Behind (``isBehind``): the client has not acknowledged as much as the window allows, or has no connection, or it is
///   still being sent the state. Change sets wait in the host's stream, which all sessions share, and replies in
///   ``later``. When the client acknowledges, or the text of a part was made, the engine sends the rest of
///   ``untoldState``, then the stream, and the subscription listens again. It sends the stream in groups, without the
///   values that later change sets of a group replace; see ``CatchUpGroup``.
/// - Lapsed (``hasLapsed``): it was behind, and the stream no longer reaches back far enough, or the full state is less than
///   what it has missed. The client is told how far the stream has come, so that it fetches the scope again; until then it
///   is sent the replies to its own change sets.
/// - New: the state that it begins with is still being read. It is sent nothing.
/// - Limited (``limit``): the client wants no change sets after its fetch, only the replies to its own. It may be
///   behind until it has been sent the earlier ones.
///
/// So a client that stops reading costs the server what ``ServerEngine/Configuration/window`` allows for each scope, and the
/// frame that exceeds it, however long it does not read. Its session ends when the client has sent nothing for
/// ``ServerEngine/Configuration/expiry``. One that goes on sending keeps its session, until more than
/// ``ServerEngine/Configuration/keptLimit`` waits for it; its connection is sent a ping in each
/// ``ServerEngine/Configuration/pingInterval``, and dropped when too many bytes wait in it.
///
/// A subscription of version 1 listens, or has missed change sets (``ValueDelivery/missed``) since its session lost its
/// connection. It begins when its first fetch is answered; see ``OpenFetches``.
final class Subscription {
  // In front: what is looked at for each change set of the scope. It is mostly not in a cache by then.
  /// The session that has fetched the scope. It owns its subscriptions.
  unowned let session: ServerSession
  // No access to this is open while code runs that uses it: the closures that change it read the scope's stream.
  /// The session's place in the scope's stream.
  @exclusivity(unchecked) private var cursor: StreamCursor
  let host: ScopeHost
  /// The number by which the messages of the session name the scope.
  let index: Int
  /// True until the session leaves the scope, or ends.
  @exclusivity(unchecked) private(set) var isLive = true
  /// The client that numbers its change sets of the scope; nil if it does not.
  @exclusivity(unchecked) private(set) var numbering: NumberingClient?
  /// The sequence up to which the client has provably seen everything.
  private(set) var proven: Int
  /// The messages that are not acknowledged: their index, and the sequence that they bring the client to. In version 2
  /// only the last one with a state: what follows has no index.
  @exclusivity(unchecked) var sent: [(index: Int, sequence: Int)] = []
  /// The state of a session of version 1; of no use to others.
  @exclusivity(unchecked) var values = ValueDelivery()
  private var streamEnd = StreamEnd.open
  /// True while change sets wait in the host's stream, because the session has not acknowledged enough of what it was
  /// sent, or has no connection. Never for clients of version 1, which acknowledge too seldom.
  @exclusivity(unchecked) private(set) var isBehind = false
  /// The part of the full state that is still to be sent, before anything else.
  var untoldState: UntoldState?
  /// The replies that wait for earlier change sets to be sent, each with the sequence that it comes after.
  @exclusivity(unchecked) var later: [(after: Int, reply: ScopeSyncReply)] = []
  /// The change sets that wait for another one of the client to be decided.
  @exclusivity(unchecked) var queued = SetQueue()
  /// True while these are taken in turn.
  var takesQueued = false
  /// True from a fetch until the end of the turn, when it is sent what the client has missed.
  var awaitsCatchUp = false
  /// The indices of the fetches that are not answered yet.
  var openFetches: [Int] = []
  /// The sequence up to which the client is sent more of the stream once that is durable; nil if that does not wait.
  var catchesUpTo: Int?
  /// The sequence up to which the client's own change sets in the stream were decided before it fetched the scope: it
  /// is sent their decisions, and no replies.
  var ownUpTo = 0

  init(_ index: Int, of session: ServerSession, host: ScopeHost, client: NumberingClient?) {
    (self.index, self.session, self.host) = (index, session, host)
    numbering = client
    proven = host.sequence
    cursor = StreamCursor(at: host.sequence, in: host.order.stream)
    host.add(self)
    if session.version == 1 { updateListening() }
  }

  /// The identity under which the client numbers its change sets of the scope; nil if it does not.
  var client: UUID? { numbering?.id }

  /// Notes the identity with which the client has fetched the scope once more. Under the same one, a number that the
  /// client has given to another change set stays refused: it may have sent this fetch, and change sets behind it,
  /// before it knew.
  func fetched(by client: NumberingClient?) {
    if client?.id != numbering?.id { numbering = client }
  }

  /// Notes that the client has given a number to another change set than the one that was decided, or is being decided.
  func noteReuse(of number: Int) { numbering?.reusedNumber = number }

  /// True while the session is sent each change set as soon as it is durable; see ``ScopeAudience/listeners``.
  var listens: Bool { host.audience.includes(self) }

  /// The last sequence that the client is sent; nil if it is sent everything.
  var limit: Int? {
    switch streamEnd {
    case .open: nil
    case .wanted(let sequence), .lapsed(let sequence): sequence
    }
  }

  /// True if the client has to fetch the scope again, since it is not sent more of the stream.
  var hasLapsed: Bool { if case .lapsed = streamEnd { true } else { false } }

  /// True once a fetch was granted.
  var hasBegun: Bool { listens || isBehind || limit != nil }

  /// The sequence up to which the host need not remember anything for the session. A client gets the full state if it does
  /// not want change sets, or does not acknowledge them, until the stream no longer reaches back to what it was sent. Until
  /// then it goes on from there, so it may name all that it had when it last acknowledged.
  var seen: Int {
    let start = host.order.stream.start ?? 0
    let goesOn = limit == nil && (!isBehind || told >= start)
    return goesOn ? proven : max(proven, start)
  }

  /// Notes that the client has seen the messages up to `index`.
  func acknowledge(upTo index: Int) {
    let count = sent.prefix { $0.index <= index }.count
    guard count > 0 else { return }
    // A sequence that the client has named in a later fetch counts as well.
    proven = max(proven, sent[count - 1].sequence)
    sent.removeFirst(count)
    // The changes that the client is told while its own wait count as missed by these, whenever it acknowledges them.
    if !isUndecided { values.unacknowledgedWrites.acknowledge(upTo: index) }
  }

  /// True while change sets of the client wait to be decided.
  private var isUndecided: Bool {
    !queued.isEmpty || takesQueued || (!host.undecided.isEmpty && host.undecided[sender] != nil)
  }

  /// Notes that the client has applied the order up to a sequence.
  ///
  /// - Parameter proves: false if messages may follow that the client has made before.
  func acknowledge(sequence: Int, proves: Bool) {
    // A session that does not listen may have replies to its own change sets behind what it was told.
    guard sequence <= (isBehind || limit != nil ? host.sequence : told) else { return }
    if proves { proven = max(proven, sequence) }
    if sequence > cursor.acknowledged.sequence {
      move { $0.acknowledge(upTo: sequence, in: host.order.stream) }
    }
  }

  /// The sequence up to which everything was queued.
  var told: Int { cursor.told }

  /// The part of the stream that was queued and is not acknowledged.
  var waiting: StreamAmount { cursor.waiting }

  /// Notes that everything up to a sequence was queued.
  func tell(upTo sequence: Int) { move { $0.tell(upTo: sequence, in: host.order.stream) } }

  /// Notes that everything up to a sequence was queued, with `sent` bytes in place of those that the stream has.
  func tell(upTo sequence: Int, sent: Int) {
    move { $0.tell(upTo: sequence, sent: sent, in: host.order.stream) }
  }

  /// Notes that everything up to a place in the stream was queued.
  func tell(upTo place: StreamPlace) { move { $0.tell(upTo: place) } }

  /// Changes the place in the stream, and with it what waits for the session in all of its scopes.
  private func move(_ change: (inout StreamCursor) -> Void) {
    let before = cursor.waiting
    change(&cursor)
    let session = session
    session.waiting -= before
    session.waiting += cursor.waiting
  }

  /// Leaves everything that is not acknowledged in the host's stream, to be sent again: a connection has lost it, perhaps.
  /// The replies to the client's own change sets are in the channel, and come before it.
  func rewind() {
    guard session.version > 1, untoldState == nil, cursor.waiting.sets > 0 else { return }
    ownUpTo = max(ownUpTo, told)
    move { $0.rewind() }
    fallBehind()
  }

  /// Restarts the subscription after a fetch. What the client was sent before no longer counts. The reply to the fetch
  /// contains the decisions on all change sets whose replies have waited.
  func begin(_ told: Told) {
    later = []
    untoldState = told.state
    streamEnd = told.isLimited ? .wanted(told.upTo) : .open
    move { $0 = StreamCursor(at: told.since ?? told.upTo, in: host.order.stream) }
    // The client names the sequence that it has applied, including what it was sent in replies, which prove nothing.
    if let since = told.since { proven = max(proven, since) }
    ownUpTo = told.upTo
    isBehind = told.since != nil || told.state != nil
    updateListening()
  }

  /// Leaves change sets in the host's stream from now on.
  func fallBehind() {
    isBehind = true
    updateListening()
  }

  /// Returns true if the full state is less than the items that wait. Those of a client that wants only what it had missed
  /// at its fetch were compared then; those of others again when as much again has come as the state is worth.
  func isStateLess(than items: ArraySlice<StreamItem>) -> Bool {
    guard limit == nil, session.link.isOpen, let worth = host.order.stream.bytesWorthState,
      host.order.isMore(items, than: worth, behind: cursor.comparedBytes)
    else { return false }
    cursor.comparedBytes = host.order.stream.totalBytes
    return host.order.isStateLess(than: items, for: client)
  }

  /// Gives up what the client was not sent of the host's stream.
  func lapse() { streamEnd = .lapsed(told) }

  /// Notes that everything that has waited was queued.
  func catchUp() {
    isBehind = false
    updateListening()
  }

  /// Notes that a session of version 1 without a connection misses `item` and everything after it, until it has a
  /// connection again.
  func miss(_ item: StreamItem) {
    values.missed = StreamPlace(item.sequence - 1, in: host.order.stream)
    updateListening()
  }

  /// Returns whether a session of version 1 has missed more than may wait for it.
  func hasMissed(moreThan limit: ReliableChannel.Limit) -> Bool {
    guard let missed = values.missed else { return false }
    return host.sequence - missed.sequence > limit.messages
      || host.order.stream.totalBytes - missed.totalBytes > limit.bytes
  }

  /// Returns what a session of version 1 has missed before it got a connection again; nil if the stream no longer
  /// contains all of it.
  func takeMissed() -> ArraySlice<StreamItem>? {
    guard let since = values.missed?.sequence else { return [] }
    values.missed = nil
    updateListening()
    return host.order.stream.items(after: since, upTo: host.sequence)
  }

  /// Ends the subscription, since the session leaves the scope or ends.
  func end() {
    isLive = false
    (queued, later, untoldState) = (SetQueue(), [], nil)
    move { $0 = StreamCursor(at: $0.told, in: host.order.stream) }
    host.remove(self)
  }

  private func updateListening() {
    let waits = session.version == 1 ? values.missed != nil : limit != nil || isBehind
    host.audience.update(self, listens: isLive && !waits)
  }
}

/// A client that numbers its change sets.
struct NumberingClient {
  /// The identity under which it numbers them, and its principal's own: a client that claims another's identity gets another
  /// one, and neither takes over the other's numbers nor learns of its decisions.
  let id: UUID
  /// The name of the client that other clients see. With the client's own identity, they could pose as it.
  let publicName: UUID
  /// The last number that the client has given to another change set; nil if there was none. No further change set is decided
  /// then: the client sends all that are not decided again, under another identity.
  var reusedNumber: Int?

  init(_ claimed: UUID, of principal: Principal?) {
    id =
      principal.map { UUID(named: "Jetstream client \(claimed.wireText) of \($0.id)") } ?? claimed
    publicName = UUID(named: "Jetstream client \(claimed.wireText)")
  }
}

extension Subscription {
  /// The end of what a session is sent of a scope's stream.
  private enum StreamEnd {
    case open
    /// The client wants nothing behind a sequence.
    case wanted(Int)
    /// The client is not sent what comes behind a sequence, but the full state once it fetches the scope.
    case lapsed(Int)
  }

  /// The beginning of a subscription: what a session is sent after a fetch.
  struct Told {
    /// The sequence that the client knows already; nil if it is sent no earlier change sets, or the full state.
    let since: Int?
    /// The full state, if the client is sent it.
    let state: UntoldState?
    /// The scope's sequence at the fetch.
    let upTo: Int
    /// True if the client is sent nothing after ``upTo``.
    let isLimited: Bool
  }

  /// The values that a session of version 1 was sent, or was not.
  struct ValueDelivery {
    /// The writes that the client may not have seen yet, to models that it may have.
    var unacknowledgedWrites = UnacknowledgedWrites()
    /// The place behind which the session was sent nothing, since it has lost its connection.
    var missed: StreamPlace?
  }

  /// The full state of a scope, of which some parts were sent already.
  struct UntoldState {
    private let copy: StateCopy
    private var next = 0

    init(_ copy: StateCopy) { self.copy = copy }

    /// The number of messages that are still to be sent.
    var count: Int { copy.parts.count - next }

    /// True if the text of the next message is still being made.
    var waitsForText: Bool { copy.parts[next].isBeingEncoded }

    /// Removes and returns the next message.
    mutating func takeMessage(_ scopeIndex: Int) -> ScopeState {
      defer { next += 1 }
      return copy.message(next, scopeIndex: scopeIndex)
    }
  }
}
