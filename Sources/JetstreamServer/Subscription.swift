import Foundation
import Jetstream

/// A scope that a session has fetched, until it leaves it: what its client has been told of it, and has proved to have
/// seen.
final class Subscription {
  /// By which number the messages of the session name the scope.
  let index: Int
  let host: ScopeHost
  /// The session that has fetched the scope. It owns its subscriptions.
  unowned let session: ServerSession
  /// True until the session leaves the scope, or ends.
  private(set) var isLive = true
  /// Under which name the client numbers its sets of it, if it does.
  var client: UUID?
  /// The number up to which the client has provably seen everything.
  var proven: Int
  /// Messages that are not acknowledged: their index, and the number that they bring.
  var sent: [(index: Int, sequence: Int)] = []
  /// Writes of models that the client may have.
  var unacknowledgedWrites = UnacknowledgedWrites()
  /// Up to which number of the order everything was queued.
  var told: Int
  /// Up to where the client wants to be told; nil for one that wants to be told everything.
  private(set) var limit: Int?
  /// Whether something after that waits in the host's stream, because the session has not acknowledged
  /// enough of what it was told, or has no connection. Never for clients of version 1, who acknowledge too seldom.
  private(set) var isBehind = false
  /// What has not been told to a session of version 1 since it has no connection.
  private(set) var missed: Missed?
  /// The models of its state that are still to be told, before anything else.
  var untoldState: UntoldState?
  /// Replies whose place is behind something that waits.
  var later: [(after: Int, reply: ScopeSyncReply)] = []
  /// Up to which number the client was told of its own sets that were decided in an earlier session.
  var ownUpTo = 0

  init(_ index: Int, of session: ServerSession, host: ScopeHost, client: UUID?) {
    (self.index, self.session, self.host, self.client) = (index, session, host, client)
    (proven, told) = (host.sequence, host.sequence)
    guard session.version == 1 else { return }
    host.valueSessions += 1
    updateListening()
  }

  /// Whether the session is told each change as soon as it is kept; see ``ScopeHost/listeners``.
  var listens: Bool { host.listeners[session.number] === self }

  /// The sequence up to which nothing has to be remembered for it. A client that does not want to be told, or
  /// does not acknowledge what it is told, for longer than the stream goes back, gets the full state.
  var seen: Int {
    limit == nil && !isBehind ? proven : max(proven, host.stream.start ?? 0)
  }

  /// The client has seen our messages up to `index`.
  func acknowledge(upTo index: Int) {
    let count = sent.prefix { $0.index <= index }.count
    guard count > 0 else { return }
    proven = sent[count - 1].sequence
    sent.removeFirst(count)
    unacknowledgedWrites.acknowledge(upTo: index)
  }

  /// The client has asked for the scope: what it was told of it before counts no more. The answer has told how
  /// all sets were decided whose replies have waited.
  func begin(_ told: Told) {
    later = []
    untoldState = told.state
    limit = told.isLimited ? told.upTo : nil
    self.told = told.since ?? told.upTo
    // It names what it has taken in, also of what it was told in answers that prove nothing.
    if let since = told.since { proven = max(proven, since) }
    ownUpTo = told.upTo
    isBehind = told.since != nil || told.state != nil
    updateListening()
  }

  /// From now on what is accepted waits in the host's stream.
  func fallBehind() {
    isBehind = true
    updateListening()
  }

  /// Everything that has waited was queued.
  func catchUp() {
    isBehind = false
    updateListening()
  }

  /// From this item on, nothing is told to a session of version 1 until it has a connection again.
  func miss(_ item: StreamItem) {
    missed = Missed(since: item.sequence - 1, totalBytes: host.stream.totalBytes)
    updateListening()
  }

  /// Whether more was missed than may wait for a session of version 1.
  func hasMissed(moreThan limit: ReliableChannel.Limit) -> Bool {
    guard let missed else { return false }
    return host.sequence - missed.since > limit.messages
      || host.stream.totalBytes - missed.totalBytes > limit.bytes
  }

  /// A session of version 1 has a connection again. Gives what it has missed; nil if that is not known any more.
  func takeMissed() -> ArraySlice<StreamItem>? {
    guard let since = missed?.since else { return [] }
    missed = nil
    updateListening()
    return host.stream.items(after: since, upTo: host.sequence)
  }

  /// The session wants no more of the scope, or ends.
  func end() {
    isLive = false
    updateListening()
    if session.version == 1 { host.valueSessions -= 1 }
  }

  private func updateListening() {
    if session.version == 1 {
      host.valueListeners[session.number] = isLive && missed == nil ? self : nil
    } else {
      host.listeners[session.number] = isLive && limit == nil && !isBehind ? self : nil
    }
  }
}

extension Subscription {
  /// What a session is told of a scope that it asks for, once or again.
  struct Told {
    /// What it knows already; nil if it is told nothing that was before, or all of it as a state.
    let since: Int?
    /// All of it.
    let state: UntoldState?
    /// How far the scope is.
    let upTo: Int
    /// Whether it is told nothing that comes after that.
    let isLimited: Bool
  }

  /// A place in a scope's stream.
  struct Missed {
    /// The number of the last item in front of it.
    let since: Int
    /// How many bytes the stream had been given by then.
    let totalBytes: Int
  }

  /// A scope's content, of which a part is told already.
  struct UntoldState {
    let root: UUID
    var fragments: ArraySlice<SyncFragment>

    /// Takes off what fits into one message, but one model at least.
    mutating func takeMessage(_ scopeIndex: Int, bytes: Int) -> ScopeState {
      var size = 0
      var end = fragments.startIndex
      repeat {
        size += fragments[end].roughSize
        end += 1
      } while end < fragments.endIndex && size + fragments[end].roughSize <= bytes
      var message = ScopeState(
        scopeIndex: scopeIndex, rootUUID: root, fragments: Array(fragments[..<end]))
      fragments = fragments[end...]
      message.more = !fragments.isEmpty
      return message
    }
  }
}
