/// The state of a replica that lasts as long as a session: what the server has granted, and what was asked for and has
/// arrived. The next session begins with a new value.
struct ReplicaSession {
  /// The channel of the session in which the scope is served, as far as the server has said.
  var channel = 0
  /// The scope's index in the session, once the server has granted it.
  var scopeIndex: Int?
  /// The index that the server had granted before the scope was asked for again; see ``ClientEngine/fetchAgain(_:)``.
  var earlierIndex: Int?
  /// True if requests for the scope bring its schema: after the server has asked for it, until it grants the scope or
  /// refuses it for another reason.
  var bringsSchema = false
  /// The sequence up to which the client has acknowledged the server's order.
  var acknowledged = 0
  /// The sequence that the server had when it last answered a client that resumes the session; 0 if it has not named one.
  var latest = 0
  /// True if a state has been applied in this session. The state contains all changes that arrive before it.
  var hasState = false
  /// The last request to the server for remote changes.
  var asked: ScopeFetch.Tell?
  /// True if the server sends everything after ``ReplicaProgress/position``. Otherwise the replica ignores remote
  /// changes, and asks for them again later.
  var isTaking = false
  /// True if the replica may have ignored changes and has not asked for them again.
  var hasMissed = false
  /// True if the server has turned out to have another history, so that nothing can be relied on before its full
  /// state arrives.
  var needsState = false
  /// True if the number of a pending change set stands for another one.
  var needsNewIdentity = false
  /// The resume point that the server sent with the state that it is about to send.
  var stateStanding: ScopeStanding?
  /// True if the state that is on its way is applied in every mode: because nothing can be sent without one, or because
  /// it belongs to another history.
  var needsNextState = false
  /// The parts of a state that have arrived, while more are to come.
  var stateParts: [SyncFragment] = []
  /// The number of attempts to repair the scope since it last equalled the server's state.
  var vainRepairs = 0
  /// The procedures that a server of version 1 was asked to run.
  var procedures = OldProcedures()
  /// The messages with parts of change sets that a server of version 1 has not answered.
  var partMessages: [Int: (number: Int, part: Int)] = [:]
  /// The messages that have arrived while the scope is paused.
  var held = HeldMessages()

  /// True while a state is on its way, or has arrived in part.
  var isTakingState: Bool { stateStanding != nil || !stateParts.isEmpty }
}

/// The messages of the server that wait until a paused scope resumes.
///
/// Until then the client does not acknowledge them, so that a server of version 2 keeps what it may have to send again;
/// but this also affects the other scopes of the session. So beyond a limit, remote changes are dropped, those that are
/// held and those that arrive later, and the server is asked not to send any more. Replies to the replica's own change
/// sets are kept, because the client counts them as decided.
struct HeldMessages {
  /// The messages, in the order in which they have arrived.
  private(set) var messages: [(index: Int, message: Replica.Incoming)] = []
  /// True once too much has arrived: remote changes are dropped, and asked for again when the scope resumes.
  private(set) var isDropping = false
  /// The approximate size of the messages in bytes.
  private var bytes = 0
  /// The sequence up to which the server says that it has sent every change set; 0 if it has not said so.
  private(set) var told = 0

  var isEmpty: Bool { messages.isEmpty }

  /// The index of the first message that has one.
  var firstIndex: Int? { messages.first { $0.index > 0 }?.index }

  mutating func noteTold(upTo sequence: Int) { told = max(told, sequence) }

  /// Adds a message, unless remote changes are being dropped and it is one.
  mutating func append(_ message: Replica.Incoming, index: Int) {
    if isDropping, message.comesAgain { return }
    messages.append((index, message))
    bytes += message.roughSize
  }

  /// Returns true if there is more than the limit, and nothing is dropped yet.
  func isTooMuch(for limit: ReliableChannel.Limit) -> Bool {
    !isDropping && (messages.count > limit.messages || bytes > limit.bytes)
  }

  /// Drops the remote changes, now and from here on.
  mutating func drop() {
    isDropping = true
    messages.removeAll { $0.message.comesAgain }
    bytes = messages.reduce(0) { $0 + $1.message.roughSize }
  }
}

extension Replica.Incoming {
  /// True if the server sends the message again when it is asked for missed changes.
  fileprivate var comesAgain: Bool {
    switch self {
    case .sync, .repair: true
    case .reply, .standing, .state: false
    }
  }

  /// The approximate size of the message in bytes.
  fileprivate var roughSize: Int {
    switch self {
    case .sync(let fragments, _, _, _), .repair(let fragments, _), .state(let fragments, _, _, _):
      fragments.roughSize
    case .reply(_, let replies, _, let effective, _):
      replies.count * 16 + (effective?.roughSize ?? 0)
    case .standing: 0
    }
  }
}
