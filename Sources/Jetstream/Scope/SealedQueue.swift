/// The change sets of a scope that were made and not delivered yet, in order. Those that listeners make during a delivery
/// come after the one that is being delivered.
struct SealedQueue {
  private var waiting: [SealedChanges] = []
  /// The change set that is being delivered.
  private var current: SealedChanges?
  /// True while change sets are being delivered.
  private(set) var isDelivering = false
  /// The authors of change sets that name none, in the logs that record the scope.
  var defaultAuthors = DefaultAuthors()

  var isEmpty: Bool { waiting.isEmpty }
  var count: Int { waiting.count }
  /// The change sets that some listeners have not been called with: the one that is being delivered, and those behind
  /// it.
  var undelivered: [ChangeSet] { (current.map { [$0.set] } ?? []) + waiting.map(\.set) }
  /// The handles of the change sets.
  var handles: [ChangeSetHandle] { waiting.compactMap(\.handle) }

  mutating func append(_ set: SealedChanges) { waiting.append(set) }

  /// Begins a delivery. Returns false if one is running: it goes on with what was appended meanwhile.
  mutating func beginDelivery() -> Bool {
    if isDelivering { return false }
    isDelivering = true
    return true
  }

  /// Takes the change set that is to be delivered next. Ends the delivery, and returns nil, if there is none.
  mutating func next() -> SealedChanges? {
    if waiting.isEmpty {
      (isDelivering, current) = (false, nil)
      return nil
    }
    // Mostly there is only one, and removing it moves nothing.
    current = waiting.count == 1 ? waiting.removeLast() : waiting.removeFirst()
    return current
  }
}
