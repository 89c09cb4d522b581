import Foundation
import Jetstream
import Testing

/// A server that has just been started may not have a scope ready for which its clients ask.
@Suite("Scopes that a server refuses for now")
struct RefusedScopeTests {
  private let server = ScriptedServer()
  private var scope: Scope { server.scope }
  private let canvas: Canvas
  private let first = ScopePosition(epoch: "one", sequence: 7)

  init() { canvas = server.canvas }

  private func refuse(_ pause: Duration? = nil, index: Int = 1) {
    let fetches = server.takeSent().compactMap { message -> Int? in
      if case .scopeFetch = message { message.index } else { nil }
    }
    #expect(fetches.count == 1)
    let error = WireError(message: "being opened", retryAfter: pause)
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(
          index: index,
          replyTo: fetches.first ?? 0, error: error)))
  }

  private var fetchCount: Int {
    server.takeSent().count { if case .scopeFetch = $0 { true } else { false } }
  }

  @Test(
    "A scope that is refused with a retry time after a restart keeps what is changed and asks again"
  )
  func refusedAfterRestart() throws {
    server.joinAtPosition(first)
    canvas.name = "before"
    scope.flush()
    server.loseSession()
    refuse(.seconds(5))
    canvas.name = "after"
    scope.flush()
    #expect(scope.pendingChangeSets.count == 2 && server.engine.pendingCount == 2)
    #expect(server.engine.state(of: scope)?.stall == .refused("being opened"))
    server.advance(by: .seconds(4))
    #expect(fetchCount == 0)
    server.advance(by: .seconds(2))
    let sent = server.takeSent()
    guard case .scopeFetch(let fetch)? = sent.last else {
      Issue.record("The client does not ask again: \(sent)")
      return
    }
    #expect(fetch.since == first)
    var reply = ScopeFetchReply(
      index: 2, replyTo: fetch.index, scopeIndex: 0,
      standing: ScopeStanding(position: first, resumes: true))
    reply.index = 2
    server.receive(.scopeFetchReply(reply))
    #expect(server.takeSyncs().map(\.number) == [1, 2])
    #expect(server.engine.state(of: scope)?.stall == nil)
  }

  @Test("A server of version 1 that refuses a scope that was there before is asked again")
  func refusedByOldServer() {
    server.join()
    server.close(4097)
    server.advance(by: .seconds(1))
    server.open()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "next")))
    refuse()
    let handle = scope.modify { canvas.name = "after" }
    #expect(handle.state == .pending && server.engine.pendingCount == 1)
    server.advance(by: .seconds(1))
    #expect(fetchCount == 1)
  }

  @Test("Refusals in a row are asked about ever more seldom")
  func repeated() {
    server.joinAtPosition(first)
    server.loseSession()
    var index = 1
    for _ in 0..<4 {
      let fetch = server.takeSent().last { if case .scopeFetch = $0 { true } else { false } }
      server.receive(
        .scopeFetchReply(
          ScopeFetchReply(
            index: index, replyTo: fetch?.index ?? 0, error: WireError(message: "not yet"))))
      index += 1
      server.advance(by: .seconds(5))
    }
    #expect(fetchCount == 1)
    let fetch = index
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(index: fetch, replyTo: fetch, error: WireError(message: "not yet"))))
    server.advance(by: .seconds(5))
    #expect(fetchCount == 0)
    server.advance(by: .seconds(5))
    #expect(fetchCount == 1)
  }

  @Test("A first fetch that is refused with a retry time waits for the next answer")
  func firstFetch() {
    server.connect()
    server.open()
    server.fetch()
    server.receive(.sessionCreateReply(SessionCreateReply(sessionToken: "secret", protocol: 2)))
    refuse(.seconds(2))
    #expect(server.fetched.isEmpty)
    server.advance(by: .seconds(3))
    guard case .scopeFetch(let fetch)? = server.takeSent().last else {
      Issue.record("The client does not ask again.")
      return
    }
    server.receive(
      .scopeFetchReply(
        ScopeFetchReply(
          index: 2, replyTo: fetch.index, scopeIndex: 0, standing: ScopeStanding(position: first))),
      server.state(3))
    #expect(server.fetched.count == 1)
    #expect((try? server.fetched[0].get()) != nil)
  }

  @Test("A sync of a scope that is refused fails with the refusal")
  func syncFails() {
    server.joinAtPosition(first)
    server.loseSession()
    var result: Result<Void, SyncError>?
    server.engine.sync(scope, now: server.now) { result = $0 }
    refuse(.seconds(5))
    let error = WireError(message: "being opened", retryAfter: .seconds(5))
    #expect(throws: SyncError.scopeDenied(scope: "Canvas", error: error)) { try result?.get() }
    #expect(server.engine.pendingCount == 0)
  }

  @Test("A sync asks at once for a scope that was refused, and does not wait for the retry time")
  func syncAsksAgain() throws {
    server.joinAtPosition(first)
    server.loseSession()
    refuse(.seconds(3600))
    var results: [Result<Void, SyncError>] = []
    func sync() { server.engine.sync(scope, now: server.now) { results.append($0) } }
    sync()
    refuse(.seconds(3600), index: 2)
    #expect(results.count == 1)
    let error = WireError(message: "being opened", retryAfter: .seconds(3600))
    #expect(throws: SyncError.scopeDenied(scope: "Canvas", error: error)) {
      try results.first?.get()
    }
    #expect(fetchCount == 0)
    // The app may ask as often as it likes, but not twice at a time.
    sync()
    sync()
    #expect(fetchCount == 1)
  }
}
