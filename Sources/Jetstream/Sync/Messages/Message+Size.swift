extension Message {
  /// The approximate number of bytes that the message takes on the wire. Cheaper than encoding it: counts strings by
  /// their UTF-8 without escapes, and numbers by a flat rate.
  package var roughSize: Int {
    switch self {
    case .scopeState(let body):
      128 + (body.text?.bytes.count ?? body.fragments.roughSize)
    case .scopeSync(let body):
      64 + body.origin.roughSize + (body.procedure?.utf8.count ?? 0)
        + (body.arguments?.roughSize ?? 0)
        + (body.text?.bytes.count ?? body.fragments.roughSize)
    case .scopeSyncReply(let body):
      64 + body.roughSizeOfFields
    case .sessionCreate(let body): 64 + body.params.roughSize
    case .scopeFetch(let body): 64 + body.name.utf8.count + body.params.roughSize
    case .scopeFetchReply(let body):
      128 + (body.standing?.decisions.reduce(0) { $0 + $1.roughWireSize } ?? 0)
    case .sessionCreateReply, .scopeLeave: 128
    case .ping(let body):
      128 + 48 * (body.seen.count + body.told.count + body.latest.count)
        + 96 * body.checks.count + 4224 * body.differences.count
    }
  }
}

extension [FragmentReply] {
  /// The approximate number of bytes that the replies take on the wire.
  var roughSize: Int {
    var size = 0
    let replies = span
    for at in replies.indices { size += replies[at].roughSize }
    return size
  }

  /// True if each fragment was accepted as it is.
  package var areAllPlain: Bool {
    let replies = span
    for at in replies.indices where !replies[at].isPlain { return false }
    return true
  }
}

extension FragmentReply {
  /// The approximate number of bytes that the reply takes on the wire.
  package var roughSize: Int {
    if isPlain { return 3 }
    return 3 + (error?.roughSize ?? 0) + (modifications?.roughSize ?? 0)
      + lost.reduce(0) { $0 + 4 + $1.utf8.count }
  }
}

extension ScopeStanding.Decision {
  /// The approximate number of bytes that the decision takes on the wire.
  fileprivate var roughWireSize: Int {
    48 + (outcome?.roughSize ?? 0) + fragmentReplies.roughSize
  }
}

extension WireError {
  fileprivate var roughSize: Int { 24 + message.utf8.count + (type?.utf8.count ?? 0) }
}

extension CallOutcome {
  /// The approximate number of bytes that the outcome takes on the wire.
  package var roughSize: Int {
    switch self {
    case .output(let value): 16 + value.roughSize
    case .failure(let error, let thrown): 16 + error.roughSize + (thrown?.roughSize ?? 0)
    }
  }
}

extension [SyncFragment] {
  /// The approximate number of bytes that the fragments take on the wire.
  package var roughSize: Int {
    var size = 0
    // They are read where they stand: each copy would be retained field by field.
    let fragments = span
    for at in fragments.indices { size += fragments[at].roughSize }
    return size
  }
}

extension SyncFragment {
  /// The approximate number of bytes that the fragment takes on the wire.
  package var roughSize: Int {
    96 + className.utf8.count + properties.roughSize + operations.roughSize
      + (bases.isEmpty ? 0 : 10 + bases.roughSize)
  }
}

extension PropertyOperations {
  fileprivate var roughSize: Int {
    var size = 0
    let entries = entries.span
    for at in entries.indices {
      size += 4 + entries[at].key.utf8.count
      for operation in entries[at].operations { size += operation.roughSize }
    }
    return size
  }
}

extension PropertyOperation {
  /// The approximate size of the operation. A model's UUID takes 39 bytes, including quotes and comma.
  fileprivate var roughSize: Int {
    switch self {
    case .insert(_, .after(let others)), .move(_, .after(let others)): 16 + 39 * (1 + others.count)
    default: 55
    }
  }
}

extension JSONValue {
  /// The approximate number of bytes that the value takes on the wire.
  package var roughSize: Int {
    switch self {
    case .null, .bool: 4
    case .integer, .unsigned, .double, .float: 8
    case .string(let text): text.utf8.count + 2
    case .array(let elements): elements.reduce(2) { $0 + 1 + $1.roughSize }
    case .object(let object): object.roughSize
    }
  }
}

extension JSONObject {
  fileprivate var roughSize: Int {
    var size = 2
    let members = members.span
    for at in members.indices {
      size += 4 + members[at].key.utf8.count + members[at].value.roughSize
    }
    return size
  }
}
