import Foundation

/// The part of a ``FragmentLog`` that a client keeps of one scope: the confirmed state, and the change sets that the
/// server has not decided.
///
/// Each change set is one record, which is written to the file before the tick that delivers it has ended, and is on
/// stable storage before the client sends it. So an app that is killed (`SIGKILL`, a crash) shows after its next start
/// what it has shown before, except changes that are in no change set yet, such as values that a minimal sync interval
/// holds back, and changes that were waiting because the disk failed or because more than a mebibyte was waiting; and the
/// client sends what the server has not decided, which the server applies once. A power cut, or a crash of the system,
/// also takes what was not synced: the change sets of the last moments,
/// which the server has not seen. With a ``LogConfiguration/durability`` other than each change set, the server may
/// have seen them.
package struct ClientLog: Sendable {
  /// In a snapshot: a pending change set.
  private static let pending = LogKind("pending")
  /// In a snapshot: a model that pending change sets name but that the confirmed state no longer has.
  private static let departed = LogKind("departed")
  /// In a snapshot: a conflict of the ledger.
  private static let conflict = LogKind("conflict")
  /// In a snapshot: an accepted change set that was made here.
  private static let write = LogKind("write")

  /// The underlying log of records.
  package let records: RecordLog

  /// Uses a log that is already open.
  package init(_ records: RecordLog) { self.records = records }

  /// Appends records behind those up to a sequence number, and calls `done` on a queue of the log once they are durable,
  /// with the sequence number of the last durable record, or an attempt to write them has failed. They outlive the
  /// process at once, within the limits of ``RecordLog/writeNow()``.
  ///
  /// - Parameter ignoringBacklog: true to take the records however many bytes wait to be written.
  package func append(
    _ records: [RecordContent], after expected: Int, ignoringBacklog: Bool = false,
    then done: @escaping @Sendable (Result<Int, LogError>) -> Void
  ) {
    do throws(LogError) {
      let outcome = try self.records.append(
        records, after: expected, outlivingProcess: true, ignoringBacklog: ignoringBacklog)
      switch outcome {
      case .appended(let receipt), .repeated(let receipt): receipt.whenDurableUpTo(done)
      case .conflict(let last) where last < expected:
        // The log has refused those before them. That is reported first, and then all are appended again.
        done(.failure(.backlog(bytes: 0)))
      case .conflict(let last):
        preconditionFailure(
          "Record \(expected + 1) of a client's log is appended to \(last): a log has one use.")
      }
    } catch {
      done(.failure(error))
    }
  }

  /// Writes a snapshot that replaces the records up to `sequence`, and removes what need not be kept.
  func snapshot(_ history: ReplicaHistory, at sequence: Int) async throws(LogError) {
    try await records.snapshot(
      at: sequence, standingFor: ReplicaRecord.Kind.all, keeping: .nothing,
      state: { Self.state(of: history) })
  }

  /// Writes a snapshot without waiting. Calls `done` on a queue of the log.
  package func snapshot(
    _ history: ReplicaHistory, at sequence: Int,
    then done: @escaping @Sendable (Result<WrittenSnapshot<LogError>, LogError>) -> Void
  ) {
    records.snapshot(
      at: sequence, standingFor: ReplicaRecord.Kind.all, keeping: .nothing,
      state: { Self.state(of: history) },
      then: done)
  }

  private static func state(of history: ReplicaHistory) -> [RecordContent] {
    var result: [RecordContent] = []
    for fragment in history.base?.fragments ?? [] {
      var payload: [UInt8] = []
      fragment.write(to: &payload)
      result.append(RecordContent(.fragment, payload))
    }
    var place: JSONObject = [
      "client": .string(history.client.wireText), "root": .string(history.root.wireText),
      "next": .integer(Int64(history.nextNumber)),
    ]
    if let position = history.base?.position { place["position"] = .object(position.json) }
    if !history.authors.isEmpty {
      place["authors"] = .array(history.authors.map(Self.author).sorted { $0.text < $1.text })
    }
    let kind = history.pending.isEmpty ? LogKind.place : .placeAmongPending
    result.append(RecordContent(kind, Array(JSONValue.object(place).text.utf8)))
    for fragment in history.departed {
      var payload: [UInt8] = []
      fragment.write(to: &payload)
      result.append(RecordContent(departed, payload))
    }
    func append(_ kind: LogKind, _ json: JSONValue) {
      result.append(RecordContent(kind, Array(json.text.utf8)))
    }
    for entry in history.pending { append(pending, entry.json) }
    for item in history.conflicts { append(conflict, item.json) }
    for entry in history.writes { append(write, entry.json) }
    return result
  }

  /// Encodes the author of a property's confirmed value.
  private static func author(of name: PropertyKey, _ author: String) -> JSONValue {
    [
      "model": .string(name.uuid.wireText), "name": .string(name.name), "author": .string(author),
    ]
  }

  /// Reads the newest snapshot and the records after it, also those that were appended and not written yet. Returns nil if the
  /// log is new.
  ///
  /// - Throws: ``LogError/damaged(_:)``, ``LogError/file(_:)``, ``LogError/backlog(bytes:)`` while records cannot be written,
  ///   or ``LogError/unreadable(sequence:problem:)`` with the sequence of the record that is not valid.
  package func history() throws(LogError) -> ReplicaHistory? {
    try records.writeAll()
    return try Self.history(in: LogReader(records.directory)).history
  }

  /// Reads the log up to the record `end`. The history is nil if no client has used the log until then. Also returns the
  /// sequence of the last record read.
  static func history(
    in reader: LogReader, upTo end: Int = .max
  ) throws(LogError) -> (history: ReplicaHistory?, last: Int) {
    var history: ReplicaHistory?
    var last = 0
    if let snapshot = try reader.snapshot(upTo: end) {
      history = try Self.read(snapshot)
      last = snapshot.sequence
    }
    var cursor = try reader.read(from: last + 1)
    while last < end, let line = try cursor.next() {
      last = line.sequence
      guard ReplicaRecord.Kind.all.contains(line.kind), let record = try Self.record(line) else {
        continue
      }
      if case .named(let client, let root) = record, history == nil {
        history = ReplicaHistory(client: client, root: root)
      }
      guard history != nil else {
        throw .unreadable(sequence: line.sequence, problem: "no earlier record names the client")
      }
      history?.records.append(record)
    }
    return (history, last)
  }

  /// Decodes a line of the log; nil if it is not a replica's record.
  static func record(_ line: LogRecord) throws(LogError) -> ReplicaRecord? {
    try line.read { json throws(FragmentError) in try ReplicaRecord(line.kind, json: json) }
  }

  static func read(_ snapshot: LogSnapshot) throws(LogError) -> ReplicaHistory {
    var fragments: [SyncFragment] = []
    var conflicts: [Conflict] = []
    var writes: [OwnWrites.Entry] = []
    var pending: [ReplicaHistory.Undecided] = []
    var departed: [SyncFragment] = []
    var history: ReplicaHistory?
    for line in snapshot.state {
      switch line.kind {
      case .fragment: fragments.append(try SyncFragment(line))
      case .place, .placeAmongPending:
        history = try line.read(ReplicaHistory.init(place:))
      case Self.conflict: conflicts.append(try line.read(Conflict.init(json:)))
      case Self.write: writes.append(try line.read(OwnWrites.Entry.init(json:)))
      case Self.departed: departed.append(try line.read(SyncFragment.init(json:)))
      case Self.pending: pending.append(try line.read(ReplicaHistory.Undecided.init(json:)))
      default: break
      }
    }
    guard var history else {
      throw .unreadable(sequence: snapshot.sequence, problem: "the snapshot is not one of a client")
    }
    history.conflicts = conflicts
    history.writes = writes
    history.pending = pending
    history.departed = departed
    if fragments.isEmpty { history.base = nil } else { history.base?.fragments = fragments }
    return history
  }
}

extension ReplicaHistory {
  /// Reads the `place` of a snapshot.
  ///
  /// - Throws: ``FragmentError`` naming the first field that is missing or wrong.
  fileprivate init(place json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    guard let next = object["next"]?.wholeNumber else { throw .missing(field: "next") }
    let root = try object.uuid("root")
    self.init(client: try object.uuid("client"), root: root, nextNumber: next)
    let position = try object["position"].map { json throws(FragmentError) in
      try ScopePosition(json: json)
    }
    base = ReplicaBase(position: position, root: root, fragments: [])
    guard case .array(let elements)? = object["authors"] else { return }
    for case .object(let element) in elements {
      guard let name = try element.optionalString("name") else { throw .missing(field: "name") }
      let key = PropertyKey(uuid: try element.uuid("model"), name: name)
      authors[key] = try element.optionalString("author")
    }
  }
}

extension ReplicaHistory.Undecided {
  /// - Throws: ``FragmentError`` naming the first field that is missing or wrong.
  init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    guard let number = object["number"]?.wholeNumber else { throw .missing(field: "number") }
    let basis = try object["basis"].map { json throws(FragmentError) in
      try ScopePosition(json: json)
    }
    self.init(number: number, set: try ChangeSet(json: json), basis: basis)
    if let json = object["decision"] { decision = try ScopeStanding.Decision(json: json) }
    guard let list = object["counters"] else { return }
    guard case .array(let elements) = list else { throw .missing(field: "counters") }
    for element in elements {
      guard case .object(let element) = element else { throw .missing(field: "counters") }
      guard let name = try element.optionalString("name") else { throw .missing(field: "name") }
      guard let value = element["value"] else { throw .missing(field: "value") }
      counters[PropertyKey(uuid: try element.uuid("model"), name: name)] = value
    }
  }

  var json: JSONValue {
    guard case .object(var object) = set.json else {
      preconditionFailure("A change set is a JSON object.")
    }
    object["number"] = .integer(Int64(number))
    if let basis { object["basis"] = .object(basis.json) }
    if let decision { object["decision"] = decision.json }
    if !counters.isEmpty {
      let elements = counters.map { key, value -> JSONValue in
        ["model": .string(key.uuid.wireText), "name": .string(key.name), "value": value]
      }
      object["counters"] = .array(elements.sorted { $0.text < $1.text })
    }
    return .object(object)
  }
}
