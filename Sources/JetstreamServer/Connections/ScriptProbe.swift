/// Tracks which messages a client that does not rebase has received between two of its acknowledgements.
///
/// Such a client submits whole collections. An element that is missing from one was removed if the client knew it, and
/// was inserted by another client meanwhile if it did not. Old clients acknowledge every ten seconds only, so the
/// server sends a WebSocket ping behind messages that insert elements: a *probe*. At most one is under way.
///
/// A browser answers the ping in its network stack. So the pong proves that the browser has received the messages, and
/// that the events for them are in the queue of the page's script or about to be, but not that the script has handled
/// them: a change that it made before that may still arrive behind the pong, without the new elements. Taking that for
/// a removal would lose what another client has inserted, which is worse than undoing a removal. Therefore the pong
/// counts in two steps:
///
/// 1. At once, where a submitted collection is what the client had without the insertions. Then it is either the
///    removal of an inserted element, or an edit that has changed nothing, made between the pong and the event.
/// 2. As an acknowledgement, when the time has passed in which scripts come to the events in their queue.
struct ScriptProbe {
  /// False while messages that the client repeats may still be on their way: they are older than what it has received
  /// by now.
  var isPermitted = true
  /// True after elements were inserted behind the last probe.
  var isWanted = false
  /// The index of the last message in front of the probe that is not answered.
  private var index: Int?
  /// The index up to which the client's WebSocket has received all messages.
  private(set) var received = 0
  /// The index up to which the client's script has handled all messages, each with the time from which that is assumed.
  private var read: [(index: Int, at: Duration)] = []

  /// Begins a probe behind a message and returns true, if one is wanted and none is under way.
  mutating func begin(behind message: Int) -> Bool {
    guard isPermitted, isWanted, index == nil else { return false }
    (index, isWanted) = (message, false)
    return true
  }

  /// Notes that the client's WebSocket has answered; its script is assumed to have handled the messages at `time`.
  mutating func answered(at time: Duration) {
    guard let index else { return }
    self.index = nil
    received = index
    read.append((index, time))
  }

  /// Returns the index up to which the script has handled all messages, if it has grown since the last call.
  mutating func takeRead(by now: Duration) -> Int? {
    let due = read.prefix { $0.at <= now }
    defer { read.removeFirst(due.count) }
    return due.last?.index
  }

  /// Ends the probe with its connection. What the client has received on that connection proves nothing any more.
  mutating func stop() { self = ScriptProbe(isPermitted: false, isWanted: isWanted) }

  private init(isPermitted: Bool, isWanted: Bool) {
    (self.isPermitted, self.isWanted) = (isPermitted, isWanted)
  }

  init() {}
}
