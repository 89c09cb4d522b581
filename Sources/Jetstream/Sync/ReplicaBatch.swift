import Foundation

/// The combined effect of the messages of one frame so far.
struct ReplicaBatch {
  var additions: [SyncFragment] = []
  private(set) var additionIndex: [UUID: Int] = [:]
  var direct: [UUID: DirectChanges] = [:]
  private var classNames: [UUID: String] = [:]
  private var order: [UUID] = []
  /// The visible values before the batch, of the covered properties that it changes.
  var seen: [PropertyKey: PropertyContent] = [:]
  private(set) var rejected: [RejectedFragment] = []
  /// The change sets that the server has decided, with the replies to their fragments.
  var decided: [(PendingChangeSet, [FragmentReply])] = []
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
    additionIndex[uuid] = additions.count
    let before = direct.removeValue(forKey: uuid)?.properties
    additions.append(
      SyncFragment(.add, uuid: uuid, className: className, properties: before ?? JSONObject()))
  }

  /// Returns the fragments to write into the scope: the additions, and `changes` in the order in which their models
  /// have appeared.
  func fragments(_ changes: [UUID: DirectChanges]) -> [SyncFragment] {
    additions
      + order.compactMap { uuid in
        guard let noted = changes[uuid],
          !noted.properties.isEmpty || !noted.operations.isEmpty
        else { return nil }
        return SyncFragment(
          .change, uuid: uuid, className: classNames[uuid] ?? "",
          properties: noted.properties, operations: noted.operations)
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

  /// Removes and returns the changes of one property.
  mutating func take(_ key: String, within range: CounterRange) -> PendingChange? {
    let (value, done) = (properties[key], operations[key])
    properties[key] = nil
    operations[key] = []
    if let value { return .assign(PropertyContent(value)) }
    return done.isEmpty ? nil : .operations(done, value: nil, range: range)
  }
}
