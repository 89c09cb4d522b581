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
  /// Reads and opens logs: a few at a time, so that many that are opened at once do not take a thread each.
  private let queue: OperationQueue

  /// Opens a directory, and creates it and those above it if they do not exist.
  ///
  /// - Parameters:
  ///   - path: The path of the directory.
  ///   - configuration: The settings of the scopes' logs.
  /// - Throws: `LogError.inUse` if a process uses the directory already, this one or another; `LogError.file`.
  public init(
    _ path: String, configuration: LogConfiguration = LogConfiguration()
  ) throws(LogError) {
    self.path = path
    self.configuration = configuration
    queue = OperationQueue()
    queue.maxConcurrentOperationCount = 4
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

  /// The findings in the folder of a scope before it is opened.
  struct Stored: Sendable {
    /// True if there is no history.
    let isNew: Bool
    /// The schema that a client has brought; nil if none has.
    let schema: ScopeSchema?
  }

  /// Reads the folder of a scope, without opening the log.
  func stored(_ place: ScopePlace) async throws -> Stored {
    try await run { [self] in
      let schema = try schema(of: place)
      guard FileManager.default.fileExists(atPath: folder(of: place)) else {
        return Stored(isNew: true, schema: schema)
      }
      let reader = try LogReader(folder(of: place))
      return Stored(isNew: try reader.holdsNothing(), schema: schema)
    }
  }

  /// The log of a scope, and what was read from it.
  struct Opened: Sendable {
    let log: FragmentLog
    let history: ScopeHistory?
  }

  /// Opens the log of a scope and reads its history.
  func open(_ place: ScopePlace) async throws -> Opened {
    try await run { [self] in try openLog(of: place) }
  }

  /// Opens the log of a scope, reads its history, and makes rows of a schema from it.
  func open(
    _ place: ScopePlace, _ name: String, as schema: ScopeSchema
  ) async throws -> (opened: Opened, content: RowsContent) {
    try await withCheckedThrowingContinuation { done in
      queue.addOperation { [self] in
        do {
          let opened = try openLog(of: place)
          let content = try RowsContent(name: name, schema, from: opened.history)
          done.resume(returning: (opened, content))
        } catch {
          done.resume(throwing: error)
        }
      }
    }
  }

  private func openLog(of place: ScopePlace) throws -> Opened {
    let log = try FragmentLog(folder(of: place), configuration: configuration)
    return Opened(log: log, history: try ScopeLog(log.records).history())
  }

  /// Keeps the schema of a scope for all later openings.
  func keep(_ schema: ScopeSchema, of place: ScopePlace) async throws {
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

  /// The file with the schema that a client has brought.
  private static let schemaFile = "schema.json"

  private func schema(of place: ScopePlace) throws -> ScopeSchema? {
    let file = folder(of: place) + "/" + Self.schemaFile
    guard let bytes = FileManager.default.contents(atPath: file) else { return nil }
    do {
      return try schemas.withLock { try $0.schema(Array(bytes)) }
    } catch {
      throw ScopeFileError(file: file, problem: "\(error)")
    }
  }

  private func folder(of place: ScopePlace) -> String { path + "/scopes/" + place.path }

  /// Runs `body` on the queue.
  private func run<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { done in
      queue.addOperation { done.resume(with: Swift.Result { try body() }) }
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

extension LogReader {
  /// Returns true if the log has neither a state nor a record: an opening has ended before it wrote the first one.
  fileprivate func holdsNothing() throws(LogError) -> Bool {
    guard let first = try firstSequence() else { return true }
    // A log whose first records were dropped has a state behind them.
    guard first == 1 else { return false }
    var cursor = try read(from: first)
    if try cursor.next() != nil { return false }
    return try snapshot(upTo: 0) == nil
  }
}

/// A file of a ``ScopeDirectory`` that cannot be read.
struct ScopeFileError: Error, CustomStringConvertible {
  let file: String
  let problem: String

  var description: String { "\(file): \(problem)" }
}
