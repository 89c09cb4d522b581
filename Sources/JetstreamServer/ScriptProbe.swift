/// What the server knows of the messages that a client has received which does not rebase, between two of its
/// acknowledgements.
///
/// Such a client submits whole collections. An element that is missing from one was removed if the client knew it, and
/// was inserted by another client meanwhile if it did not. Old clients acknowledge every ten seconds only, so the
/// server sends a WebSocket ping behind messages that insert elements: a *probe*. At most one is under way.
///
/// A browser answers it in its network stack. So the pong proves that the browser has received the messages, and
/// that the events for them are in the queue of the page's script or about to be, but not that the script has
/// handled them: a change that it made before that may still arrive behind the pong, without the new elements.
/// To take that for a removal would lose what another client has inserted, which is worse than to undo a removal.
/// Therefore the pong counts in two steps:
///
/// 1. At once, where a submitted collection is what the client had without the insertions. Then it is either the
///    removal of an inserted element, or an edit that has changed nothing, made between the pong and the event.
/// 2. As an acknowledgement, when the time has passed in which scripts come to the events in their queue.
struct ScriptProbe {
  /// False while it is not known that messages which the client repeats have all arrived: they are older than
  /// what it has received by now.
  var isPermitted = true
  /// True after elements were inserted behind the last probe.
  var isWanted = false
  /// The index of the last message in front of the probe that is not answered.
  private var index: Int?
  /// The index up to which the client's WebSocket has received all messages.
  private(set) var received = 0
  /// The index up to which its script has handled all messages, each with the time from which that is assumed.
  private var read: [(index: Int, at: Duration)] = []

  /// Begins a probe behind a message if one is wanted, and none is under way.
  mutating func begin(behind message: Int) -> Bool {
    guard isPermitted, isWanted, index == nil else { return false }
    (index, isWanted) = (message, false)
    return true
  }

  /// The client's WebSocket has answered; its script is taken to have handled the messages at a time.
  mutating func answered(at time: Duration) {
    guard let index else { return }
    self.index = nil
    received = index
    read.append((index, time))
  }

  /// Gives the index up to which the script has handled all messages, if that has grown.
  mutating func takeRead(by now: Duration) -> Int? {
    let due = read.prefix { $0.at <= now }
    defer { read.removeFirst(due.count) }
    return due.last?.index
  }

  /// The connection is gone, with the answer. What the client has received on it is no proof any more.
  mutating func stop() { self = ScriptProbe(isPermitted: false, isWanted: isWanted) }

  private init(isPermitted: Bool, isWanted: Bool) {
    (self.isPermitted, self.isWanted) = (isPermitted, isWanted)
  }

  init() {}
}
