import Foundation
import Jetstream

/// The change sets in a scope that have begun and are not decided: calls of procedures, and large change sets.
///
/// A client has one at a time. What it sends behind that waits until it is decided: it may follow from what that does. It goes
/// on when its session loses its connection, leaves or expires, and is answered if the client sends it again; it ends
/// undecided when the client's rights are taken away.
struct UndecidedSets {
  /// The sender of change sets: a client that numbers them or, in version 1, a session.
  enum Sender: Hashable {
    case client(UUID)
    case session(Int)
  }

  private var sets: [Sender: UndecidedSet] = [:]
  /// The large ones among them.
  private var large: [Sender: LargeSet] = [:]
  /// The calls that were dropped and whose handlers have not ended: a handler may ignore that it is cancelled.
  private var dropped: [ObjectIdentifier: RunningCall] = [:]

  subscript(sender: Sender) -> UndecidedSet? {
    get { sets[sender] }
    set {
      sets[sender] = newValue
      large[sender] = newValue as? LargeSet
    }
  }

  var isEmpty: Bool { sets.isEmpty }

  var all: some Collection<UndecidedSet> { sets.values }

  /// Returns the calls whose time is over, in the order of their ends.
  func lateCalls(at now: Duration) -> [RunningCall] {
    sets.values.compactMap { $0 as? RunningCall }.filter { $0.request.deadline <= now }
      .sorted { ($0.request.deadline, $0.request.id) < ($1.request.deadline, $1.request.id) }
  }

  /// Notes that a model has come into the scope.
  func noteArrival(of uuid: UUID) {
    for set in large.values { set.noteArrival(of: uuid) }
  }

  /// Returns those for which no session waits any more, and of whose last one `isOrigin` is true, in the order of these.
  func left(by isOrigin: (SessionInfo) -> Bool) -> [UndecidedSet] {
    if sets.isEmpty { return [] }
    return sets.values.filter { $0.session == nil && isOrigin($0.origin) }.sorted {
      ($0.origin.number, $0.sync.number ?? 0) < ($1.origin.number, $1.sync.number ?? 0)
    }
  }

  /// Returns the calls that were dropped and whose handlers have not ended, and of whose last session `isOrigin` is true.
  func dropped(by isOrigin: (SessionInfo) -> Bool) -> [UndecidedSet] {
    dropped.values.filter { isOrigin($0.origin) }
  }

  /// Notes that a change set is dropped.
  mutating func noteDropped(_ set: UndecidedSet) {
    if let call = set as? RunningCall { dropped[ObjectIdentifier(call)] = call }
  }

  /// Notes that the handler of a call has ended, or does not go on with the call.
  mutating func noteEnded(_ call: RunningCall) { dropped[ObjectIdentifier(call)] = nil }

  /// Takes all out. They are to be dropped when this is over: that runs code of the app.
  mutating func takeAll() -> [UndecidedSet] {
    defer { (sets, large, dropped) = ([:], [:], [:]) }
    return Array(sets.values)
  }
}

/// The hosts of an engine with change sets that have begun and are not decided: mostly a few of all that it has.
final class UndecidedHosts {
  private var hosts: [ObjectIdentifier: ScopeHost] = [:]

  var all: [ScopeHost] { Array(hosts.values) }

  func note(_ host: ScopeHost, isUndecided: Bool) {
    if hosts.isEmpty, !isUndecided { return }
    hosts[ObjectIdentifier(host)] = isUndecided ? host : nil
  }
}

/// The change sets that wait for another one of their client to be decided, each with the session as it was when it sent it.
struct SetQueue {
  /// A change set, with its session as it was when it sent it.
  final class Waiting {
    fileprivate(set) var sync: ScopeSync
    let submitter: ScopeOrder.Submitter

    init(_ sync: ScopeSync, _ submitter: ScopeOrder.Submitter) {
      (self.sync, self.submitter) = (sync, submitter)
    }
  }

  private var sets: [Waiting] = []
  /// The number of those in front of ``sets`` that were removed.
  private var head = 0
  private(set) var bytes = 0

  var isEmpty: Bool { count == 0 }

  /// The change set whose turn is next; nil if none waits.
  var first: ScopeSync? { isEmpty ? nil : sets[head].sync }

  /// The sequence up to which the client had seen everything when it sent the first one; nil if none waits. It had seen no
  /// less when it sent the others.
  var proven: Int? { isEmpty ? nil : sets[head].submitter.proven }

  var count: Int { sets.count - head }

  /// Adds a change set. One that waits already, and that its client has sent again, is answered once, in its first place:
  /// by its second one the client may have let the server forget the decision.
  mutating func append(_ sync: ScopeSync, _ submitter: ScopeOrder.Submitter) {
    if !isEmpty, let number = sync.number, let last = sets.last?.sync.number, number <= last,
      let at = sets[head...].firstIndex(where: { $0.sync.number == number })
    {
      var known = sets[at].sync
      (known.index, known.scopeIndex, known.decided) = (sync.index, sync.scopeIndex, sync.decided)
      known.text = sync.text
      if known == sync {
        bytes += Message.scopeSync(known).roughSize - Message.scopeSync(sets[at].sync).roughSize
        sets[at].sync = known
        return
      }
    }
    sets.append(Waiting(sync, submitter))
    bytes += Message.scopeSync(sync).roughSize
  }

  /// Removes the first change set. Cost: O(1) on average.
  mutating func removeFirst() -> Waiting {
    let first = sets[head]
    head += 1
    if head > sets.count / 2 {
      sets.removeFirst(head)
      head = 0
    }
    bytes -= Message.scopeSync(first.sync).roughSize
    return first
  }
}
