import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket

/// The `jetstream serve` command: a server of scopes of any classes.
@Serving
enum ServeCommand {
  typealias Status = JetstreamTool.Status

  /// An error that ends the command, as a sentence.
  private struct Failure: Error {
    let text: String
  }

  nonisolated static func run(_ arguments: [String]) async -> Status {
    let options: ServeOptions
    do throws(ServeOptions.Problem) {
      options = try ServeOptions(arguments)
    } catch {
      Console.error("jetstream serve: \(error.text) Try --help.")
      return .usage
    }
    if options.isHelp {
      Console.line(ServeOptions.usage)
      return .success
    }
    // Before the event loop of the server opens files.
    Console.openClosedStreams()
    do {
      try await serve(options)
      return .success
    } catch {
      Console.error("jetstream serve: \((error as? Failure)?.text ?? "\(error)")")
      return .failed
    }
  }

  /// Serves until the process is asked to end.
  private static func serve(_ options: ServeOptions) async throws {
    // The server stays when the reader of its output has gone, and goes on when the reader does not read.
    signal(SIGPIPE, SIG_IGN)
    let (output, log) = (LineWriter(.standardOutput), LineWriter(.standardError))
    defer { for lines in [output, log] { lines.finish(within: .seconds(1)) } }
    ProcessMemory.limitArenas()
    let stop = await StopSignal()
    let files = OpenFiles.raiseLimit()
    let schema = try options.schema.map(readSchema)
    let keys = try options.keys.map(readKeys)
    let directory = try openDirectory(options)
    var configuration = Server.Configuration()
    // An open scope takes one descriptor, and a second one while it is written. If all are written at once, a third is
    // left for connections.
    configuration.maximumOpenScopes = options.open ?? max(16, files / 3)
    configuration.idleScopeTime = options.idleTime
    configuration.allowedOrigins = options.origins
    configuration.allowedHosts = options.hosts
    configuration.trustedProxies = options.proxies
    let server = Server(configuration: configuration)
    if let keys {
      server.authenticate = { try keys.principal(of: $0) }
      server.access = { session, name in
        let access = keys.access(of: session)
        // With a schema, the server makes each scope that is opened. Without, it waits for that of a client.
        if access == .readOnly, schema != nil, try await !directory.contains(name) {
          throw WireError.notNow(
            "There is no such scope before a client that may change it has fetched it",
            retryAfter: .seconds(5))
        }
        return access
      }
    }
    server.openScopes(in: directory) { _ in schema.map { .schema($0) } ?? .schemaOfClient }
    server.onDiagnostic.listen { event in
      guard event.level >= options.level else { return }
      log.write("\(Date().ISO8601Format()) \("\(event)".inOneLine)")
    }
    do throws(WebSocketError) {
      let port = try await server.listen(
        host: options.host, port: options.port,
        page: { _ in .text("A Jetstream server. Connect to it with a WebSocket.\n") })
      let host = options.host.contains(":") ? "[\(options.host)]" : options.host
      output.write(
        "Serving ws://\(host):\(port), with the scopes in \(options.directory).".inOneLine)
    } catch {
      throw Failure(text: explanation(error, options))
    }
    await stop.wait()
    output.write("Stopping; another signal ends it at once.")
    let unclosed = await server.stopScopes()
    guard unclosed.isEmpty else {
      let nouns = unclosed.count == 1 ? "the history" : "the histories"
      throw Failure(text: "\(nouns) of \(listed(unclosed)) could not be closed.".inOneLine)
    }
    output.write("Stopped.")
  }

  /// Returns names as a text, such as "a, b and c"; of very many, the first ones and the number of the others.
  private static func listed(_ names: [String]) -> String {
    let most = 20
    var parts = Array(names.prefix(most))
    if names.count > most { parts.append("\(names.count - most) more") }
    guard let last = parts.popLast() else { return "" }
    return parts.isEmpty ? last : "\(parts.joined(separator: ", ")) and \(last)"
  }

  private static func openDirectory(_ options: ServeOptions) throws -> ScopeDirectory {
    do throws(LogError) {
      return try ScopeDirectory(
        options.directory,
        configuration: LogConfiguration(durability: options.durability, history: options.history))
    } catch {
      if case .inUse = error {
        throw Failure(text: "another process serves the scopes in \(options.directory).")
      }
      throw Failure(text: "\(options.directory) cannot be used: \(error)")
    }
  }

  private static func readSchema(_ file: String) throws -> ScopeSchema {
    let bytes = try read(file, "schema")
    do {
      return try ScopeSchema(JSONValue(parsing: Array(bytes)))
    } catch {
      throw Failure(text: "\(file) is no schema: \(error)")
    }
  }

  private static func readKeys(_ file: String) throws -> ServeKeys {
    let bytes = try read(file, "keys")
    do throws(ServeKeys.Problem) {
      return try ServeKeys(bytes)
    } catch {
      throw Failure(text: "\(file) cannot be used: \(error.text)")
    }
  }

  /// Reads a file to its end. A pipe has no length, so it is read until the other side has closed it.
  private static func read(_ file: String, _ noun: String) throws -> Data {
    do {
      let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: file))
      defer { try? handle.close() }
      return try handle.readToEnd() ?? Data()
    } catch {
      throw Failure(text: "the \(noun) \(file) cannot be read: \(reason(of: error)).")
    }
  }

  /// Returns the system's reason for an error, such as "No such file or directory".
  private static func reason(of error: any Error) -> String {
    var error = error as NSError
    while let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError { error = cause }
    guard error.domain == NSPOSIXErrorDomain else { return error.localizedDescription }
    return String(cString: strerror(Int32(error.code)))
  }

  private static func explanation(_ error: WebSocketError, _ options: ServeOptions) -> String {
    switch error {
    case .bindFailed(EADDRINUSE):
      "port \(options.port) on \(options.host) is taken; choose another one with --port."
    default: "it cannot listen on port \(options.port) of \(options.host): \(error)"
    }
  }
}

/// The actor of the server: on an event loop, whose thread also reads and writes the server's connections.
@globalActor
actor Serving {
  static let shared = Serving()

  private let loop = EventLoop.next()

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
}

/// The limit of files that the process may have open.
enum OpenFiles {
  /// The limit to ask for where the system refuses the highest one that it names: the largest on macOS, which names none
  /// and takes no infinite limit.
  private static let finite: rlim_t = 10_240

  /// Raises the limit as far as the system permits, and returns it.
  static func raiseLimit() -> Int {
    var limit = rlimit()
    #if canImport(Glibc)
    let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
    let files = RLIMIT_NOFILE
    #endif
    guard getrlimit(files, &limit) == 0 else { return 256 }
    let before = limit.rlim_cur
    for wanted in [limit.rlim_max, min(limit.rlim_max, finite)] where wanted > before {
      limit.rlim_cur = wanted
      if setrlimit(files, &limit) == 0 { return Int(clamping: wanted) }
    }
    return Int(clamping: before)
  }
}
