import Foundation
import Jetstream
import JetstreamServer
import Pacing
import Testing

/// Scopes of a server's directory whose logs something else has opened, such as the app itself.
@Suite("Scopes whose logs are open elsewhere", .live, .timeLimit(.minutes(3)))
@MainActor
struct LeasedScopeTests {
  @Test("A warning names the log, and the scope is opened once the log is closed")
  func open() async throws {
    let files = try TemporaryDirectory()
    let path = files.path + "/scopes/a"
    let log = try FragmentLog(path)
    let server = Server()
    var warnings: [String] = []
    let token = server.onDiagnostic.listen { note in
      if note.level == .warning, note.scope == "a" { warnings.append(note.text()) }
    }
    server.openScopes(in: try ScopeDirectory(files.path)) { _ in
      .schema(ScopeSchema(of: Canvas.self))
    }
    let client = Client(transport: server.makeTransport())
    let scope = Scope(name: "a", root: Canvas())
    try await client.connect()
    let fetching = Task { try await client.fetch(scope) }
    try await wait { client.syncState(of: scope)?.stall != nil }
    #expect(warnings.first?.contains(path) == true)
    try await log.close()
    try await fetching.value
    client.close()
    await server.stop()
    token.cancel()
  }
}
