import Foundation
import Jetstream
import Pacing
import Testing

@testable import JetstreamServer

/// The names under which an app hosts scopes.
@Suite("A name has one scope", .live, .timeLimit(.minutes(3)))
@MainActor
struct HostedNameTests {
  private func text(_ result: ExitTest.Result?) -> String {
    String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
  }

  @Test("A scope is not hosted under the name of another one")
  func taken() async {
    let models = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      await MainActor.run {
        let server = Server()
        server.host(Scope(name: "A", root: Canvas()))
        server.host(Scope(name: "A", root: Canvas()))
      }
    }
    #expect(text(models).contains("A scope is hosted as A already"))
    let rows = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      await MainActor.run {
        let server = Server()
        server.host("A", schema: ScopeSchema(of: Canvas.self))
        server.host(Scope(name: "A", root: Canvas()))
      }
    }
    #expect(text(rows).contains("A scope is hosted as A already"))
  }

  @Test("A scope with a log is not hosted under the name of another one")
  func takenWithLog() async {
    let late = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let files = try TemporaryDirectory()
      try await Task { @MainActor in
        let server = Server()
        server.host(Scope(name: "A", root: Canvas()))
        try await server.host(Scope(name: "A", root: Canvas()), log: FragmentLog(files.path))
      }.value
    }
    #expect(text(late).contains("A scope is hosted as A already"))
    let both = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let files = [try TemporaryDirectory(), try TemporaryDirectory()]
      try await Task { @MainActor in
        let server = Server()
        let hosting = files.map { files in
          Task {
            try await server.host(Scope(name: "A", root: Canvas()), log: FragmentLog(files.path))
          }
        }
        for task in hosting { try await task.value }
      }.value
    }
    #expect(text(both).contains("A scope is hosted as A already"))
  }

  @Test("The same scope may be hosted again, and another one once the first is removed")
  func again() async throws {
    let files = try TemporaryDirectory()
    let server = Server()
    let canvas = Canvas()
    let scope = Scope(name: "A", root: canvas)
    server.host(scope)
    server.host(scope, unknown: .keep)
    try await server.host(scope, log: FragmentLog(files.path))
    canvas.likes = 3
    scope.flush()
    try await server.remove(scope)
    let again = Canvas()
    try await server.host(Scope(name: "A", root: again), log: FragmentLog(files.path))
    #expect(again.likes == 3)
    await server.stop()
  }

  @Test("An app that chooses the scopes itself may host several with one name")
  func chosen() async throws {
    let server = Server()
    let scopes = [1, 2].map { number in
      let canvas = Canvas()
      canvas.likes = number
      return Scope(name: "A", root: canvas)
    }
    server.resolveScope = { _, _, params in .success(scopes[params == ["page": 2] ? 1 : 0]) }
    for scope in scopes { server.host(scope) }
    for number in [1, 2] {
      let client = Client(transport: server.makeTransport())
      let canvas = Canvas()
      try await client.connect()
      try await client.fetch(
        Scope(name: "A", root: canvas), params: ["page": .integer(Int64(number))])
      #expect(canvas.likes == number)
      client.close()
    }
    await server.stop()
  }
}
