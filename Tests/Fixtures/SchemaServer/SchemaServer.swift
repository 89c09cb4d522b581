import Foundation
import Jetstream
import JetstreamServer

/// Hosts a scope whose model classes it does not have, from a schema in a file, until its input ends.
///
///     SchemaServer SCHEMA NAME LOG PORT
///
/// It prints `listening on URL`.
@main
@MainActor
struct SchemaServer {
  static func main() async {
    do {
      try await run(CommandLine.arguments)
    } catch {
      FileHandle.standardError.write(Data("SchemaServer: \(error)\n".utf8))
      exit(1)
    }
  }

  private static func run(_ arguments: [String]) async throws {
    let text = try String(contentsOfFile: arguments[1], encoding: .utf8)
    let schema = try ScopeSchema(JSONValue(parsing: text))
    let server = Server()
    try await server.host(
      arguments[2], schema: schema, log: FragmentLog(arguments[3]), snapshotEvery: 50)
    let port = try await server.listen(port: UInt16(arguments[4]) ?? 0)
    print("listening on ws://127.0.0.1:\(port)")
    fflush(nil)
    await Task.detached { while readLine() != nil {} }.value
    await server.stop()
  }
}
