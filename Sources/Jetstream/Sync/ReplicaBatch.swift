import Foundation

/// The combined effect of the messages of one frame so far.
struct ReplicaBatch {
  /// The models that the batch writes as wholes: those of a full state first, then those that other replicas add.
  var additions: [SyncFragment] = []
  /// The positions of the first `indexedCount` additions, by UUID.
  private var places: [UUID: Int] = [:]
  private var indexedCount = 0
  /// The number of `additions` that come from a full state.
  private var stateCount = 0
  /// The UUID of the root, if the batch replaces the content of the scope by a full state.
  private(set) var stateRoot: UUID?
  /// The completions of the full states, called once these are applied.
  var completions: [(Result<Void, ScopeError>) -> Void] = []
  var direct: [UUID: DirectChanges] = [:]
  private var classNames: [UUID: String] = [:]
  private var order: [UUID] = []
  /// The visible values before the batch, of the covered properties that it changes.
  var seen: [PropertyKey: PropertyContent] = [:]
  private(set) var rejected: [RejectedFragment] = []
  /// The change sets that the server has decided, with the replies to their fragments.
  var decided: [(PendingChangeSet, [FragmentReply], CallOutcome?)] = []
  /// The models that differed from the server's.
  var repaired: [UUID]?
  /// The remote changes to report to listeners.
  var remote: [RemoteChanges] = []
  var isEmpty = true

  /// Notes a model that the batch changes. The batch writes its models in the order in which they appear.
  mutating func appear(_ uuid: UUID, _ className: String) {
    if classNames.updateValue(className, forKey: uuid) == nil { order.append(uuid) }
  }

  /// Adds a model. Its values include what was done to the model before it left and came back.
  mutating func add(_ uuid: UUID, _ className: String) {
    let before = direct.removeValue(forKey: uuid)?.properties
    additions.append(
      SyncFragment(.add, uuid: uuid, className: className, properties: before ?? JSONObject()))
  }

  /// Replaces what the batch holds of the scope's content by a full state.
  ///
  /// - Parameter isShown: returns true for a model of the scope. Pending change sets may go on showing it although the
  ///   state does not have it, and so its addition stays in the batch.
  mutating func replaceContent(
    by state: [SyncFragment], root: UUID, isShown: (UUID) -> Bool
  ) {
    let shown = additions.dropFirst(stateCount).filter { isShown($0.uuid) }
    (additions, stateCount, stateRoot) = (state, state.count, root)
    (places, indexedCount, direct) = ([:], 0, [:])
    for addition in shown where place(of: addition.uuid) == nil { additions.append(addition) }
  }

  /// Returns the position of a model in ``additions``. They are indexed when a position is first asked for, because a
  /// state may have very many models and mostly nothing behind it in its frame.
  mutating func place(of uuid: UUID) -> Int? {
    for at in indexedCount..<additions.count where places[additions[at].uuid] == nil {
      places[additions[at].uuid] = at
    }
    indexedCount = additions.count
    return places[uuid]
  }

  /// Returns `noted` as fragments, in the order in which their models have appeared.
  func changes(_ noted: [UUID: DirectChanges]) -> [SyncFragment] {
    order.compactMap { uuid in
      guard let changes = noted[uuid],
        !changes.properties.isEmpty || !changes.operations.isEmpty
      else { return nil }
      return SyncFragment(
        .change, uuid: uuid, className: classNames[uuid] ?? "",
        properties: changes.properties, operations: changes.operations)
    }
  }

  /// Notes the fragments that the server has rejected for their own sake, each with its consequences.
  mutating func noteRejected(_ set: ChangeSet, _ replies: [FragmentReply]) {
    var places: [Int: Int] = [:]
    for (at, reply) in replies.enumerated() where reply.error != nil {
      guard let error = reply.error, replies.cause(of: at) == nil else { continue }
      places[at] = rejected.count
      rejected.append(RejectedFragment(fragment: set.fragments[at], error: error))
    }
    for at in replies.indices {
      guard let cause = replies.cause(of: at), let place = places[cause] else { continue }
      rejected[place].consequences.append(set.fragments[at])
    }
  }
}

/// A fragment that the server has rejected for its own sake, with those that it has rejected because of it.
struct RejectedFragment {
  let fragment: SyncFragment
  let error: WireError
  var consequences: [SyncFragment] = []
}

/// The remote changes of a model's properties that no pending change set covers.
struct DirectChanges {
  var properties = JSONObject()
  var operations = PropertyOperations()

  mutating func set(_ key: String, to value: JSONValue) {
    properties[key] = value
    operations[key] = []
  }

  mutating func perform(
    _ more: [PropertyOperation], on key: String, within range: CounterRange
  ) {
    if let value = properties[key] {
      properties[key] = PropertyOperation.apply(more, to: value, within: range)
    } else {
      operations[key] += more
    }
  }

  /// Removes and returns the changes of some properties.
  mutating func take(_ keys: Set<String>) -> DirectChanges {
    var taken = DirectChanges()
    properties.removeAll { key, value in
      guard keys.contains(key) else { return false }
      taken.properties.append(newKey: key, value)
      return true
    }
    for entry in operations where keys.contains(entry.key) {
      taken.operations.append(newKey: entry.key, entry.operations)
      operations[entry.key] = []
    }
    return taken
  }

  /// Returns the change of one property; nil if there is none.
  func change(of key: String, within range: CounterRange) -> PendingChange? {
    if let value = properties[key] { return .assign(PropertyContent(value)) }
    let done = operations[key]
    return done.isEmpty ? nil : .operations(done, value: nil, range: range)
  }
}
