import Foundation
import Jetstream
import Synchronization

/// A directory with the histories of scopes that a server opens when clients fetch them; see
/// ``Server/openScopes(in:snapshotEvery:resolve:)``.
///
/// Each scope has a log in a folder of its own below `scopes`, which the commands of `jetstream log` read. It costs
/// nothing until the scope is opened: 100,000 scopes in a directory cost as much to start with as none.
///
/// A directory belongs to one process at a time. It is released with the last reference to it.
public final class ScopeDirectory: Sendable {
  /// The path of the directory.
  public let path: String
  let configuration: LogConfiguration
  /// Held locked, so that no other process uses the directory.
  private let lock: any LogFile
  /// The schemas that were read, which many scopes have in common.
  private let schemas = Mutex(SchemaCache())

  /// Opens a directory, and creates it and those above it if they do not exist.
  ///
  /// - Parameters:
  ///   - path: The path of the directory.
  ///   - configuration: The settings of the scopes' logs. With `acceptsLoss`, a scope whose log has lost its end goes
  ///     on in a new epoch when it is opened: clients that have seen more than the log has notice that, and
  ///     ``Server/onDiagnostic`` reports the loss.
  /// - Throws: `LogError.inUse` if a process uses the directory already, this one or another; `LogError.file`.
  public init(
    _ path: String, configuration: LogConfiguration = LogConfiguration()
  ) throws(LogError) {
    self.path = path
    self.configuration = configuration
    do {
      let directory = try POSIXLogDirectory(path)
      guard let lock = try directory.lock("lock") else { throw LogError.inUse(path: path) }
      self.lock = lock
    } catch let error as LogError {
      throw error
    } catch let error as LogFileError {
      throw .file(error)
    } catch {
      preconditionFailure("A directory throws file errors only.")
    }
  }

  deinit { lock.close() }

  /// The file with the schema that a client has brought.
  private static let schemaFile = "schema.json"

  /// Returns the schema in the folder of a scope; nil if there is no file with one.
  ///
  /// - Throws: ``StorageError/unreadable(place:problem:)`` with the path of the file, if it is there and cannot be
  ///   read: it must not be taken for missing, or the next client's schema would replace it.
  private func schema(in folder: POSIXLogDirectory) throws(StorageError) -> ScopeSchema? {
    let place = folder.path + "/" + Self.schemaFile
    var bytes: [UInt8] = []
    do throws(LogFileError) {
      let file = try folder.open(Self.schemaFile, for: .reading)
      defer { file.close() }
      _ = try file.read(at: 0, file.size(), appendingTo: &bytes)
    } catch {
      if error.code == ENOENT { return nil }
      throw .unreadable(place: place, problem: String(cString: strerror(error.code)))
    }
    do {
      return try schemas.withLock { try $0.schema(bytes) }
    } catch {
      throw .unreadable(place: place, problem: "\(error)")
    }
  }

  /// Returns the folder of a scope; nil if there is none.
  private func existingFolder(of place: ScopePlace) throws(LogFileError) -> POSIXLogDirectory? {
    do throws(LogFileError) {
      return try POSIXLogDirectory(existing: folder(of: place))
    } catch {
      if error.code == ENOENT { return nil }
      throw error
    }
  }

  /// Returns true if there is a scope of a name.
  ///
  /// - Throws: `WireError` if no scope can have that name; ``StorageError``.
  package func contains(_ name: String) async throws -> Bool {
    _ = try ScopePlace(name)
    return try await !find(name).isNew
  }

  private func folder(of place: ScopePlace) -> String { path + "/scopes/" + place.path }
}

/// Each scope has a `FragmentLog`, whose lock is the lease, and the schema that a client has brought, in a file beside it.
extension ScopeDirectory: ScopeStorage {
  package func find(_ name: String) async throws(StorageError) -> StoredScope {
    let place = try place(of: name)
    return try await run { [self] in
      guard let folder = try existingFolder(of: place) else {
        return StoredScope(isNew: true, schema: nil)
      }
      let schema = try schema(in: folder)
      let isNew = try LogReader(folder).holdsNothing(acceptingLoss: configuration.acceptsLoss)
      return StoredScope(isNew: isNew, schema: schema)
    }
  }

  package func keep(_ schema: ScopeSchema, of name: String) async throws(StorageError) {
    let place = try place(of: name)
    try await run { [self] in
      let directory = try POSIXLogDirectory(folder(of: place))
      let file = try directory.open(Self.schemaFile + ".tmp", for: .creating)
      try file.writeAll(Array(schema.json.text.utf8), at: 0)
      try file.syncFully()
      file.close()
      try directory.rename(Self.schemaFile + ".tmp", to: Self.schemaFile)
      try directory.sync()
    }
  }

  package func lease(_ name: String) async throws(StorageError) -> any ScopeLease {
    let place = try place(of: name)
    do throws(StorageError) {
      return try await run { [self] in
        let epoch = ScopeHistory.beginning(of: UUID().wireText)
        let log = try RecordLog(
          folder(of: place), configuration: configuration, afterLoss: epoch)
        return LogLease(FragmentLog(log), opening: log.opening)
      }
    } catch {
      if case .log(.inUse(let path)) = error { throw .leased(name, log: path) }
      throw error
    }
  }

  package func follow(_ name: String, after sequence: Int) -> StoredRecords {
    StoredRecords { [self] in
      var records: LogRecords.Iterator?
      return { () async throws(StorageError) in
        while records == nil {
          if Task.isCancelled { return nil }
          records = try self.records(of: name, after: sequence)
          if records == nil { try? await Task.sleep(for: .milliseconds(50)) }
        }
        do throws(LogError) { return try await records?.next() } catch { throw StorageError(error) }
      }
    }
  }

  /// Returns the records of a scope; nil if it has no history yet.
  private func records(
    of name: String, after sequence: Int
  ) throws(StorageError) -> LogRecords.Iterator? {
    let place = try place(of: name)
    do throws(LogFileError) {
      guard let folder = try existingFolder(of: place) else { return nil }
      return LogReader(folder).follow(from: sequence + 1).makeAsyncIterator()
    } catch {
      throw .log(.file(error))
    }
  }

  private func place(of name: String) throws(StorageError) -> ScopePlace {
    do { return try ScopePlace(name) } catch {
      throw .unreadable(place: "'\(name)'", problem: error.message)
    }
  }

  /// Runs `body` where files are read.
  private func run<Value: Sendable>(
    _ body: @escaping @Sendable () throws -> Value
  ) async throws(StorageError) -> Value {
    do {
      return try await StorageQueue.run { try body() }
    } catch let error as StorageError {
      throw error
    } catch let error as LogError {
      throw StorageError(error)
    } catch let error as LogFileError {
      throw .log(.file(error))
    } catch {
      throw .unreadable(place: path, problem: "\(error)")
    }
  }
}

/// The schemas that were read last, by their texts: scopes of the same classes share them.
private struct SchemaCache {
  /// The largest number of bytes of all texts.
  private static let largest = 4 << 20

  private var schemas: [[UInt8]: ScopeSchema] = [:]
  private var bytes = 0

  /// Returns the schema of a text.
  mutating func schema(_ text: [UInt8]) throws -> ScopeSchema {
    if let known = schemas[text] { return known }
    let schema = try ScopeSchema(JSONValue(parsing: text))
    if bytes + text.count > Self.largest { (schemas, bytes) = ([:], 0) }
    schemas[text] = schema
    bytes += text.count
    return schema
  }
}
