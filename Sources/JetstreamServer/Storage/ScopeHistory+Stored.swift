import Foundation
import Jetstream

/// The records of a server's history: everything that was accepted, and what was decided of the clients' change sets.
///
/// Accepted changes are records of change sets, so that a `LogReader` and the `jetstream` command read them like those
/// of an app.
extension LogKind {
  /// The decision on a change set of which nothing was accepted.
  fileprivate static let decision = LogKind("decision")
  /// The beginning of a new epoch.
  fileprivate static let epoch = LogKind("epoch")
  /// In a snapshot: the epoch and the sequence of its state.
  fileprivate static let history = LogKind("history")
  /// In a snapshot: the decisions on the change sets of one client.
  fileprivate static let client = LogKind("client")
}

extension ScopeRecord {
  /// The record as it is stored.
  ///
  /// - Parameter date: the date of a change set that has none.
  package func content(date: Date? = nil) -> RecordContent {
    var record = self
    if record.sequence != nil {
      record.id = record.id ?? UUID()
      record.origin.date = record.origin.date ?? date
    }
    var payload: [UInt8] = []
    payload.append(written: { output in output.object { record.write(to: &$0) } })
    return RecordContent(record.sequence == nil ? .decision : .set, payload)
  }

  /// True if the record must outlive the process from when it was made. Clients see a submission only once it is durable,
  /// but the server's app shows its own changes at once.
  package var mustOutliveProcess: Bool { decision == nil }
}

extension ScopeHistory {
  /// The kinds of record that a snapshot replaces.
  static let kinds: Set<LogKind> = [.set, .decision, .epoch]

  /// Returns a record with which a new epoch begins.
  package static func beginning(of epoch: String) -> RecordContent {
    RecordContent(.epoch, Array(JSONValue.string(epoch).text.utf8))
  }

  /// The state, and what is known of the clients, as a snapshot stores it.
  package var content: [RecordContent] {
    var result: [RecordContent] = []
    for part in parts {
      for fragment in part {
        var payload: [UInt8] = []
        fragment.write(to: &payload)
        result.append(RecordContent(.fragment, payload))
      }
    }
    var place: JSONObject = [
      "epoch": .string(epoch), "sequence": .integer(Int64(sequence)),
      "forgotten": .integer(Int64(forgottenUpTo)),
    ]
    place["written"] = written.map { .array($0.sorted().map { .string($0) }) }
    result.append(RecordContent(.history, Array(JSONValue.object(place).text.utf8)))
    for (uuid, client) in clients {
      var json: JSONObject = [
        "client": .string(uuid.uuidString.lowercased()),
        "seen": .integer(Int64(client.seenAt)),
        "decided": .integer(Int64(client.decided)),
        "decisions": .array(client.decisions.map(\.json)),
      ]
      if !client.traces.isEmpty { json["known"] = .array(client.traces.map(\.json)) }
      if client.forgotten.isAll { json["forgotten"] = true }
      if client.forgotten.isTold { json["told"] = true }
      if client.forgotten.number > 0 {
        json["forgottenUpTo"] = .integer(Int64(client.forgotten.number))
      }
      result.append(RecordContent(.client, Array(JSONValue.object(json).text.utf8)))
    }
    return result
  }

  /// Reads a history as it is stored; nil if there is none, or if it has neither a state nor a change set.
  ///
  /// - Throws: `LogError.unreadable` with the number of the record whose content is not valid.
  package init?(_ stored: StoredHistory) throws(LogError) {
    guard let snapshot = stored.snapshot else {
      // A new epoch may have been begun where there was nothing.
      let first = stored.records.first { $0.kind == .set || $0.kind == .decision }
      guard let first else { return nil }
      throw .unreadable(sequence: first.sequence, problem: "there is no state that it departs from")
    }
    self.init(epoch: "", state: [])
    for record in snapshot.state { try read(record) }
    guard !epoch.isEmpty else {
      throw .unreadable(sequence: snapshot.sequence, problem: "the snapshot is not one of a server")
    }
    // Older servers began histories of scopes without a root, too. Such a history has nothing that could be restored.
    if state.isEmpty, !stored.records.contains(where: { $0.kind == .set }) { return nil }
    for record in stored.records {
      if record.kind == .epoch { epoch = Self.epoch(in: record) }
      guard record.kind == .set || record.kind == .decision else { continue }
      records.append(
        try record.read(ScopeRecord.init(json:)))
    }
  }

  /// Returns the epoch that a record begins, which older versions have written without quotes.
  private static func epoch(in record: LogRecord) -> String {
    if case .string(let epoch)? = try? JSONValue(parsing: record.payload) { return epoch }
    return String(decoding: record.payload, as: UTF8.self)
  }

  private mutating func read(_ record: LogRecord) throws(LogError) {
    switch record.kind {
    case .fragment: parts[0].append(try SyncFragment(record))
    case .history:
      (epoch, sequence, forgottenUpTo, written) = try record.read {
        json throws(FragmentError) in
        guard case .object(let object) = json else { throw .notAnObject }
        guard case .string(let epoch)? = object["epoch"] else { throw .missing(field: "epoch") }
        guard case .integer(let sequence)? = object["sequence"] else {
          throw .missing(field: "sequence")
        }
        // Servers that wrote older logs never dropped clients.
        let forgotten =
          if case .integer(let number)? = object["forgotten"] { Int(number) } else { 0 }
        return (epoch, Int(sequence), forgotten, try Self.written(object["written"]))
      }
    case .client:
      let place = sequence
      let (uuid, client) = try record.read { json throws(FragmentError) in
        try Self.client(json, at: place)
      }
      clients[uuid] = client
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
  private static func client(
    _ json: JSONValue, at sequence: Int
  ) throws(FragmentError) -> (UUID, ScopeHistory.Client) {
    guard case .object(let object) = json else { throw .notAnObject }
    guard case .string(let text)? = object["client"], let uuid = UUID(uuidString: text) else {
      throw .invalid(field: "client", problem: "should be a UUID")
    }
    guard case .integer(let decided)? = object["decided"] else { throw .missing(field: "decided") }
    guard case .array(let elements)? = object["decisions"] else {
      throw .missing(field: "decisions")
    }
    // Older logs have none.
    guard case .array(let known) = object["known"] ?? [] else {
      throw .invalid(field: "known", problem: "should be an array")
    }
    var traces: [ScopeHistory.Client.Trace] = []
    for element in known { traces.append(try ScopeHistory.Client.Trace(json: element)) }
    var decisions: [ScopeStanding.Decision] = []
    for element in elements { decisions.append(try ScopeStanding.Decision(json: element)) }
    // Older logs do not say: the client may have been seen until the snapshot was made.
    let seenAt = if case .integer(let seen)? = object["seen"] { Int(seen) } else { sequence }
    let last = if case .integer(let number)? = object["forgottenUpTo"] { Int(number) } else { 0 }
    if object["forgotten"] == true {
      let isTold = object["told"] == true
      return (uuid, .emptied(upTo: max(last, Int(decided)), isTold: isTold, seenAt: seenAt))
    }
    var client = ScopeHistory.Client(
      decided: Int(decided), decisions: decisions, traces: traces, forgottenUpTo: last)
    client.seenAt = seenAt
    return (uuid, client)
  }
}

extension ScopeHistory.Client.Trace {
  /// Reads a trace as ``json`` writes it.
  fileprivate init(json: JSONValue) throws(FragmentError) {
    guard case .array(let elements) = json, elements.count == 4,
      case .integer(let number) = elements[0], case .integer(let raw) = elements[3],
      let outcome = Outcome(rawValue: Int(raw))
    else { throw .invalid(field: "known", problem: "should have arrays of four numbers") }
    self.init(number: Int(number), sequence: nil, checksum: nil, outcome: outcome)
    if case .integer(let place) = elements[1] { sequence = Int(place) }
    if case .integer(let sum) = elements[2] { checksum = UInt32(exactly: sum) }
  }

  /// The trace as an array, which is short: a snapshot has some for each client.
  fileprivate var json: JSONValue {
    .array([
      .integer(Int64(number)), sequence.map { .integer(Int64($0)) } ?? .null,
      checksum.map { .integer(Int64($0)) } ?? .null, .integer(Int64(outcome.rawValue)),
    ])
  }
}

extension LogSnapshot {
  /// True if it is one of a server's history.
  package var isHistory: Bool { state.contains { $0.kind == .history } }
}

extension LogReader {
  /// Returns true if the log has no history that an opening goes on with, as ``ScopeHistory/init(_:)`` reads it:
  /// neither a state with a root nor a change set. Cost: independent of the number of records, unless there is no root.
  ///
  /// - Parameter acceptingLoss: true to count records that are missing as not there, as an opening does that accepts
  ///   the loss. If the log is damaged in another way, opening it throws.
  func holdsNothing(acceptingLoss: Bool) throws(LogError) -> Bool {
    do throws(LogError) {
      return try holdsNothing()
    } catch {
      guard acceptingLoss, case .damaged = error else { throw error }
      return try newestState()?.isFound != true
    }
  }

  private func holdsNothing() throws(LogError) -> Bool {
    guard let first = try firstSequence() else { return true }
    let snapshot = try newestState()
    if snapshot?.isFound == true { return false }
    // A log whose first records were dropped has a state behind them.
    if snapshot == nil, first > 1 { return false }
    var cursor = try read(from: (snapshot?.sequence ?? 0) + 1)
    while let record = try cursor.next() {
      if record.kind == .set || (snapshot == nil && record.kind == .decision) { return false }
    }
    return true
  }

  /// Looks for the models of a state, which are the first records of a snapshot: it has others also without a root.
  private func newestState() throws(LogError) -> (sequence: Int, isFound: Bool)? {
    try newestSnapshot { $0.kind != .history && $0.kind != .client }
  }
}

extension LogRecord {
  /// True if it begins an epoch of a server's history.
  package var isEpoch: Bool { kind == .epoch }
}

extension FragmentLog {
  /// Begins another history of a scope at the end of the server's log. Call it before the log is hosted, after a backup
  /// was put in place of a log that had gone on since. The command `jetstream log new-epoch` does the same.
  ///
  /// Without it the server would give out sequences for the second time, and a client that knows what they stood for would
  /// believe that it has missed nothing. With it clients get the full state, and `Client.onHistoryLoss` tells them.
  ///
  /// - Throws: `LogError` if it cannot be written.
  public func beginEpoch() async throws(LogError) {
    try records.append([ScopeHistory.beginning(of: UUID().wireText)])
    try await records.sync()
    await records.acceptEnd()
  }
}
