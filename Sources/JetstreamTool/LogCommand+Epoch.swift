import Foundation
import Jetstream
import JetstreamServer

/// New epochs in the logs of servers.
extension LogCommand {
  /// Begins a new epoch in a log, or in each log of a server's directory, and tells of each what was done.
  static func beginEpochs(_ options: LogOptions) async -> Status {
    // The work must not end halfway because a line cannot be printed, so all lines are printed behind it.
    Console.openClosedStreams()
    signal(SIGPIPE, SIG_IGN)
    var lines: [String] = []
    let status = await beginEpochs(options, telling: &lines)
    signal(SIGPIPE, SIG_DFL)
    for line in lines { Console.line(line) }
    return status
  }

  private static func beginEpochs(
    _ options: LogOptions, telling lines: inout [String]
  ) async -> Status {
    let scopes = (options.directory as NSString).appendingPathComponent("scopes")
    let isServers = isDirectory(scopes)
    let home = isServers ? options.directory : serverDirectory(above: options.directory)
    do throws(LogError) {
      // Held until all is done, so that no server opens the logs meanwhile.
      var directory: ScopeDirectory?
      if let home { directory = try ScopeDirectory(home) }
      defer { withExtendedLifetime(directory) {} }
      var outcomes: [Status] = []
      for log in isServers ? logs(below: scopes) : [options.directory] {
        if let outcome = await beginEpoch(in: log, options, telling: &lines) {
          outcomes.append(outcome)
        }
      }
      return outcomes.max { $0.rawValue < $1.rawValue } ?? noLog(options)
    } catch {
      let home = home ?? options.directory
      if case .inUse = error {
        Console.error("jetstream log: another process serves the scopes in \(home).")
      } else {
        Console.error("jetstream log: \(home) cannot be used: \(error)")
      }
      return .failed
    }
  }

  private static func isDirectory(_ path: String) -> Bool {
    var isDirectory: ObjCBool = false
    return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
      && isDirectory.boolValue
  }

  /// Returns the directory of the server whose scope has its log at `path`; nil if the log is in no such directory, or
  /// in one that no server has used.
  ///
  /// A server keeps the log of a scope open only while clients use the scope, but the lock of its directory always.
  private static func serverDirectory(above path: String) -> String? {
    let folders = URL(fileURLWithPath: path).resolvingSymlinksInPath().pathComponents
    guard let place = folders.dropLast().lastIndex(of: "scopes") else { return nil }
    let directory = NSString.path(withComponents: Array(folders[..<place]))
    let lock = (directory as NSString).appendingPathComponent("lock")
    return FileManager.default.fileExists(atPath: lock) ? directory : nil
  }

  /// Returns the paths of all folders with files of a log.
  private static func logs(below directory: String) -> [String] {
    let all = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []
    let files = all.map { $0 as NSString }.filter { file in
      ["log-", "snapshot-", "lock"].contains { file.lastPathComponent.hasPrefix($0) }
    }
    return Set(files.map(\.deletingLastPathComponent)).sorted().map { "\(directory)/\($0)" }
  }

  /// Begins a new epoch in a log. Returns nil if there is no log.
  private static func beginEpoch(
    in path: String, _ options: LogOptions, telling lines: inout [String]
  ) async -> Status? {
    do throws(LogError) {
      switch try content(of: path, options) {
      case .nothing: return nil
      case .other:
        Console.error("jetstream log: \(path) is not the log of a server.")
        return .failed
      case .history: break
      }
      let log = try RecordLog(
        path, configuration: LogConfiguration(acceptsLoss: options.acceptsLoss),
        afterLoss: ScopeHistory.beginning(of: UUID().wireText))
      for loss in log.opening.losses { lines.append("\(path): lost: \(loss)") }
      // Behind missing records, opening the log has begun one.
      if log.opening.losses.isEmpty, !log.opening.mayHaveLostEnd {
        try await FragmentLog(log).beginEpoch()
      }
      let last = log.lastSequence - 1
      try await log.close()
      lines.append("\(path): a new epoch begins behind record \(last).")
      return .success
    } catch {
      Console.error("jetstream log: \(path): \(error)")
      guard case .damaged = error else { return .failed }
      if !options.acceptsLoss {
        Console.error(
          "--accept-loss goes on with what is left if only records at the end are missing.")
      }
      return .damaged
    }
  }

  /// The content of a log.
  private enum Content {
    /// No state and no change set: an attempt to host the scope may have failed. There may be epochs.
    case nothing
    /// The history of a server.
    case history
    /// A log of an app or a client.
    case other
  }

  private static func content(of path: String, _ options: LogOptions) throws(LogError) -> Content {
    let reader = try LogReader(path)
    do throws(LogError) {
      if try reader.firstSequence() == nil { return .nothing }
    } catch {
      // If all that shows whose log it was is lost, it begins anew.
      guard options.acceptsLoss, case .damaged = error else { throw error }
      return .history
    }
    if let snapshot = try reader.snapshot() { return snapshot.isHistory ? .history : .other }
    // A server's log begins with a snapshot.
    if let damage = try reader.verify().damage.first { throw .damaged(damage) }
    var cursor = try reader.read()
    while let record = try cursor.next() {
      if !record.isEpoch { return .other }
    }
    return .nothing
  }
}
