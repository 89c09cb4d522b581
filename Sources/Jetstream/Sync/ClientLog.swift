import Foundation

/// What a client has of one scope on disk: the confirmed state, and the change sets that the server has not
/// decided.
///
/// ```swift
/// let log = try ClientLog("/home/ada/.local/share/app/canvas")
/// try await client.fetch(scope, log: log)
/// ```
///
/// Each change set is one record, written before it is sent; so an app that is killed at any moment shows
/// after its next start what it has shown, and sends what the server has not decided, which the server
/// applies once. The app's own change sets can be read as those of a ``FragmentLog``.
public struct ClientLog: Sendable {
  /// In a snapshot, whose it is and which place in the server's order it has.
  private static let place = LogKind("place")
  /// In a snapshot, what was changed here and does not count.
  private static let conflict = LogKind("conflict")
  /// In a snapshot, a set that was made here and counts.
  private static let write = LogKind("write")

  /// The records.
  public let records: RecordLog

  /// Opens the log in the directory at `path`, which is made if it is not there.
  ///
  /// - Throws: as ``RecordLog/init(_:configuration:)-(String,_)`` does.
  public init(
    _ path: String, configuration: LogConfiguration = LogConfiguration(history: .nothing)
  ) throws(LogError) {
    records = try RecordLog(path, configuration: configuration)
  }

  /// Uses a log that is open.
  public init(_ records: RecordLog) { self.records = records }

  /// Appends a record, which is encoded here and written elsewhere.
  package func append(_ record: ReplicaRecord) throws(LogError) -> LogReceipt {
    let (kind, payload) = record.line
    return try records.append(kind, payload)
  }

  /// Writes what the records up to `sequence` have come to, and removes what need not be kept.
  func snapshot(_ history: ReplicaHistory, at sequence: Int) async throws(LogError) {
    try await records.snapshot(
      at: sequence, standingFor: ReplicaRecord.Kind.all, state: { Self.state(of: history) })
  }

  /// The same without waiting: `done` is called on a queue of the log.
  package func snapshot(
    _ history: ReplicaHistory, at sequence: Int,
    then done: @escaping @Sendable (Result<Void, LogError>) -> Void
  ) {
    records.snapshot(
      at: sequence, standingFor: ReplicaRecord.Kind.all, state: { Self.state(of: history) },
      then: done)
  }

  private static func state(of history: ReplicaHistory) -> [(kind: LogKind, payload: [UInt8])] {
    var result: [(kind: LogKind, payload: [UInt8])] = []
    for fragment in history.base?.fragments ?? [] {
      var payload: [UInt8] = []
      fragment.write(to: &payload)
      result.append((.fragment, payload))
    }
    var place: JSONObject = [
      "client": .string(history.client.wireText), "root": .string(history.root.wireText),
      "next": .integer(Int64(history.nextNumber)),
    ]
    if let position = history.base?.position { place["position"] = .object(position.json) }
    result.append((Self.place, Array(JSONValue.object(place).text.utf8)))
    for item in history.conflicts { result.append((conflict, Array(item.json.text.utf8))) }
    for entry in history.writes { result.append((write, Array(entry.json.text.utf8))) }
    return result
  }

  /// Reads all of it: the newest snapshot, and the records after it. Nil if the log is new.
  ///
  /// - Throws: ``LogError/damaged(_:)``, ``LogError/file(_:)``, or ``LogError/unreadable(_:_:)`` with the
  ///   number of the record that is not what it should be.
  package func history() throws(LogError) -> ReplicaHistory? {
    let reader = LogReader(records.directory)
    var history: ReplicaHistory?
    var first = 1
    if let snapshot = try reader.snapshot() {
      history = try Self.read(snapshot)
      first = snapshot.sequence + 1
    }
    var cursor = try reader.read(from: first)
    while let line = try cursor.next() {
      guard ReplicaRecord.Kind.all.contains(line.kind), let record = try Self.record(line) else {
        continue
      }
      if case .named(let client, let root) = record, history == nil {
        history = ReplicaHistory(client: client, root: root)
      }
      guard history != nil else {
        throw .unreadable(line.sequence, "nobody has said whose it is")
      }
      history?.records.append(record)
    }
    return history
  }

  private static func record(_ line: LogRecord) throws(LogError) -> ReplicaRecord? {
    do {
      return try ReplicaRecord(line.kind, json: try JSONValue(parsing: line.payload))
    } catch {
      throw .unreadable(line.sequence, "\(error)")
    }
  }

  private static func read(_ snapshot: LogSnapshot) throws(LogError) -> ReplicaHistory {
    var fragments: [SyncFragment] = []
    var conflicts: [Conflict] = []
    var writes: [OwnWrites.Entry] = []
    var history: ReplicaHistory?
    for line in snapshot.state {
      switch line.kind {
      case .fragment: fragments.append(try SyncFragment(line))
      case Self.place:
        do {
          history = try ReplicaHistory(place: try JSONValue(parsing: line.payload))
        } catch {
          throw .unreadable(line.sequence, "\(error)")
        }
      case Self.conflict:
        do {
          conflicts.append(try Conflict(json: try JSONValue(parsing: line.payload)))
        } catch {
          throw .unreadable(line.sequence, "\(error)")
        }
      case Self.write:
        do {
          writes.append(try OwnWrites.Entry(json: try JSONValue(parsing: line.payload)))
        } catch {
          throw .unreadable(line.sequence, "\(error)")
        }
      default: break
      }
    }
    guard var history else {
      throw .unreadable(snapshot.sequence, "the snapshot is not one of a client")
    }
    history.conflicts = conflicts
    history.writes = writes
    if fragments.isEmpty { history.base = nil } else { history.base?.fragments = fragments }
    return history
  }
}

extension ReplicaHistory {
  /// Reads what a snapshot says besides its state.
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
  }
}
