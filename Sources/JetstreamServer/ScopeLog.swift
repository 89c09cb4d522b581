import Foundation
import Jetstream

/// The part of a `FragmentLog` that a server keeps of a hosted scope: everything that was accepted, and what was decided
/// of the clients' change sets. A server that is killed goes on from there.
///
/// Accepted changes are records of change sets, so that a `LogReader` and the `jetstream` command read them like those
/// of an app.
package struct ScopeLog: Sendable {
  /// The decision on a change set of which nothing was accepted.
  private static let decision = LogKind("decision")
  /// The beginning of a new epoch.
  private static let epoch = LogKind("epoch")
  /// In a snapshot: the epoch and the sequence of its state.
  private static let history = LogKind("history")
  /// In a snapshot: the decisions on the change sets of one client.
  private static let client = LogKind("client")

  /// The kinds of record that a snapshot replaces.
  private static let kinds: Set<LogKind> = [.set, decision, epoch]

  /// The records; each change set is one.
  package let records: RecordLog

  /// Makes a log of records that are open already.
  package init(_ records: RecordLog) { self.records = records }

  /// Appends a record, which is encoded before the call returns. A change of the server's own app is also handed to the
  /// operating system before that; a client's submission is written later, on the log's queue.
  ///
  /// - Throws: `LogError.backlog`, `LogError.tooLong` or `LogError.closed`; then nothing was appended. Errors of the
  ///   disk are reported by the receipt.
  package func append(
    _ record: ScopeRecord, date: Date? = nil
  ) throws(LogError) -> LogReceipt {
    // Clients see a submission only once it is durable, but the server's app shows its own changes at once.
    defer { if record.decision == nil { records.writeNow() } }
    var record = record
    if record.sequence != nil {
      record.id = record.id ?? UUID()
      record.origin.date = record.origin.date ?? date
    }
    var payload: [UInt8] = []
    payload.append(written: { output in output.object { record.write(to: &$0) } })
    return try records.append(record.sequence == nil ? Self.decision : .set, payload)
  }

  /// Writes a snapshot, and removes the records that the configuration does not ask to keep.
  ///
  /// - Parameter sequence: the number of the last record that the history contains; nil for the last of all.
  package func snapshot(
    _ history: ScopeHistory, at sequence: Int? = nil
  ) async throws(LogError) {
    try await records.snapshot(
      at: sequence ?? records.lastSequence, standingFor: Self.kinds,
      state: { Self.state(of: history) })
  }

  /// Writes a snapshot without waiting; `done` is called on a queue of the log.
  package func snapshot(
    _ history: ScopeHistory, at sequence: Int,
    then done: @escaping @Sendable (Result<Void, LogError>) -> Void
  ) {
    records.snapshot(
      at: sequence, standingFor: Self.kinds, state: { Self.state(of: history) }, then: done)
  }

  /// Appends the name of the epoch that begins here.
  package func appendEpoch(_ name: String) throws(LogError) -> LogReceipt {
    try records.append(Self.epoch, Array(name.utf8))
  }

  private static func state(of history: ScopeHistory) -> [(kind: LogKind, payload: [UInt8])] {
    var result: [(kind: LogKind, payload: [UInt8])] = []
    for part in history.parts {
      for fragment in part {
        var payload: [UInt8] = []
        fragment.write(to: &payload)
        result.append((.fragment, payload))
      }
    }
    var place: JSONObject = [
      "epoch": .string(history.epoch), "sequence": .integer(Int64(history.sequence)),
      "forgotten": .integer(Int64(history.forgottenUpTo)),
    ]
    place["written"] = history.written.map { .array($0.sorted().map { .string($0) }) }
    result.append((Self.history, Array(JSONValue.object(place).text.utf8)))
    for (uuid, client) in history.clients {
      let json: JSONValue = [
        "client": .string(uuid.uuidString.lowercased()),
        "seen": .integer(Int64(client.seenAt)),
        "decided": .integer(Int64(client.decided)), "checksum": .integer(Int64(client.checksum)),
        "decisions": .array(client.decisions.map(\.json)),
        "checksums": .object(
          JSONObject(client.checksums.map { ("\($0.key)", .integer(Int64($0.value))) })),
      ]
      result.append((Self.client, Array(json.text.utf8)))
    }
    return result
  }

  /// Reads the whole history: the newest snapshot and the records after it. Returns nil if the log is new.
  ///
  /// - Throws: `LogError.damaged`, `LogError.file`, or `LogError.unreadable` with the number of the record whose
  ///   content is not valid.
  package func history() throws(LogError) -> ScopeHistory? {
    let reader = LogReader(records.directory)
    guard let snapshot = try reader.snapshot() else {
      if records.lastSequence == 0 { return nil }
      throw .unreadable(sequence: 1, problem: "there is no state that it departs from")
    }
    var history = ScopeHistory(epoch: "", state: [])
    for record in snapshot.state { try Self.read(record, into: &history) }
    guard !history.epoch.isEmpty else {
      throw .unreadable(sequence: snapshot.sequence, problem: "the snapshot is not one of a server")
    }
    var cursor = try reader.read(from: snapshot.sequence + 1)
    while let record = try cursor.next() {
      if record.kind == Self.epoch {
        history.epoch = String(decoding: record.payload, as: UTF8.self)
      }
      guard record.kind == .set || record.kind == Self.decision else { continue }
      history.records.append(
        try Self.json(record) { json throws(FragmentError) in try ScopeRecord(json: json) })
    }
    return history
  }

  private static func read(
    _ record: LogRecord, into history: inout ScopeHistory
  ) throws(LogError) {
    switch record.kind {
    case .fragment: history.parts[0].append(try SyncFragment(record))
    case Self.history:
      (history.epoch, history.sequence, history.forgottenUpTo, history.written) = try json(record) {
        json throws(FragmentError) in
        guard case .object(let object) = json else { throw .notAnObject }
        guard case .string(let epoch)? = object["epoch"] else { throw .missing(field: "epoch") }
        guard case .integer(let sequence)? = object["sequence"] else {
          throw .missing(field: "sequence")
        }
        // Servers that wrote older logs never dropped clients.
        let forgotten =
          if case .integer(let number)? = object["forgotten"] { Int(number) } else { 0 }
        return (epoch, Int(sequence), forgotten, try written(object["written"]))
      }
    case Self.client:
      let place = history.sequence
      let (uuid, client) = try json(record) { json throws(FragmentError) in
        try read(json, at: place)
      }
      history.clients[uuid] = client
    default: break
    }
  }

  /// Reads the names of the written properties; nil for older logs, which do not contain them.
  private static func written(_ json: JSONValue?) throws(FragmentError) -> Set<String>? {
    guard let json else { return nil }
    guard case .array(let elements) = json else {
      throw .invalid(field: "written", problem: "should be an array")
    }
    var result: Set<String> = []
    for element in elements {
      guard case .string(let name) = element else {
        throw .invalid(field: "written", problem: "should have texts")
      }
      result.insert(name)
    }
    return result
  }

  /// Reads the decisions on the change sets of one client.
  ///
  /// - Parameter sequence: the sequence of the snapshot.
  private static func read(
    _ json: JSONValue, at sequence: Int
  ) throws(FragmentError) -> (UUID, ScopeHistory.Client) {
    guard case .object(let object) = json else { throw .notAnObject }
    guard case .string(let text)? = object["client"], let uuid = UUID(uuidString: text) else {
      throw .invalid(field: "client", problem: "should be a UUID")
    }
    guard case .integer(let decided)? = object["decided"] else { throw .missing(field: "decided") }
    guard case .integer(let number)? = object["checksum"], let checksum = UInt32(exactly: number)
    else { throw .invalid(field: "checksum", problem: "should be a number of 32 bits") }
    guard case .array(let elements)? = object["decisions"] else {
      throw .missing(field: "decisions")
    }
    var client = ScopeHistory.Client(decided: Int(decided), checksum: checksum, decisions: [])
    for element in elements {
      client.decisions.append(try ScopeStanding.Decision(json: element))
    }
    // Older logs have neither: the client may have been seen until the snapshot was made.
    client.seenAt = sequence
    if case .integer(let seen)? = object["seen"] { client.seenAt = Int(seen) }
    if case .object(let members)? = object["checksums"] {
      for (key, value) in members {
        guard let number = Int(key), case .integer(let whole) = value,
          let checksum = UInt32(exactly: whole)
        else { throw .invalid(field: "checksums", problem: "should have numbers of 32 bits") }
        client.checksums[number] = checksum
      }
    }
    return (uuid, client)
  }

  private static func json<Value>(
    _ record: LogRecord, _ read: (JSONValue) throws(FragmentError) -> Value
  ) throws(LogError) -> Value {
    let json: JSONValue
    do { json = try JSONValue(parsing: record.payload) } catch {
      throw .unreadable(sequence: record.sequence, problem: "\(error)")
    }
    do { return try read(json) } catch {
      throw .unreadable(sequence: record.sequence, problem: "\(error)")
    }
  }
}

extension FragmentLog {
  /// Begins another history of a scope at the end of the server's log. Call it before the log is hosted, after a backup
  /// was put in place of a log that had gone on since.
  ///
  /// Without it the server would give out sequences for the second time, and a client that knows what they stood for would
  /// believe that it has missed nothing. With it clients get the full state, and `Client.onHistoryLoss` tells them.
  ///
  /// - Throws: `LogError` if it cannot be written.
  public func beginEpoch() async throws(LogError) {
    try await ScopeLog(records).appendEpoch(UUID().wireText).durable()
  }
}
