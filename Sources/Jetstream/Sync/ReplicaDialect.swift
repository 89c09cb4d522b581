/// The protocol as a replica speaks it with its server, and the limits that follow from it.
///
/// From version 2 on, change sets are sent as they were made. A server of version 1 is sent values, can be sent only so
/// many of them in one message, and cannot be told to wait.
struct ReplicaDialect {
  /// The version of the protocol that the session uses.
  let version: Int
  /// The form in which dates are sent in the session.
  let dateForm: DateForm
  /// True if the server drops a change set that it cannot read, and answers the others in their order.
  let dropsUnreadable: Bool
  /// The most fragments that a server of version 1 is sent in one message, unless they have to stay together.
  let fragmentLimit: Int
  /// The most that is held while the scope is paused.
  private let heldLimit: ReliableChannel.Limit

  init(version: Int, _ configuration: ClientEngine.Configuration) {
    self.version = version
    dateForm = configuration.dateForm ?? DateForm(version: version)
    dropsUnreadable = version == 1 && configuration.answersAreOrdered
    fragmentLimit = configuration.limits.maximumFragments
    heldLimit = configuration.limits.pausedLimit
  }

  /// True if the server does not support operations, reports no positions, and cannot be told to wait.
  var isOfValues: Bool { version == 1 }

  /// Returns true if the fragments of a change set have to be sent in several messages.
  func splits(_ set: ChangeSet, _ fragments: [SyncFragment]) -> Bool {
    !set.isAtomic && set.oldProcedure == nil && fragments.count > fragmentLimit
  }

  /// Returns true if more messages are held than is allowed. A server of version 1 cannot be asked to send less: it
  /// keeps what is not acknowledged.
  func drops(_ held: HeldMessages) -> Bool { !isOfValues && held.isTooMuch(for: heldLimit) }
}
