import Foundation
import Jetstream
import JetstreamWebSocket

/// Some of a server's scopes, on an event loop, in a channel of their own.
///
/// A shard has scopes that the server hosts from a schema and spreads over loops. The server's own actor creates the
/// sessions and knows which scope is where; once a client has been told the channel of a scope, everything about the scope
/// goes between the socket and the shard, past that actor.
actor ServerShard {
  nonisolated let channel: Int
  private nonisolated let loop = EventLoop.next()
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// The loop on which the server lives; nil if it lives on none. A task of an actor that does not may run on any loop.
  private nonisolated let serverLoop: EventLoop?
  private let offers = Offers()
  private var runner: EngineRunner?

  /// The scopes that clients find by their names.
  private final class Offers {
    var scopes: [String: RowsContent] = [:]
    /// Those of them whose histories are not written any more.
    var closed: Set<ObjectIdentifier> = []

    /// Returns the scope of a name, if nothing of it gets lost.
    subscript(name: String) -> RowsContent? {
      scopes[name].flatMap { closed.contains(ObjectIdentifier($0)) ? nil : $0 }
    }

    func add(_ content: RowsContent) {
      _ = remove(content.name)
      scopes[content.name] = content
      closed.remove(ObjectIdentifier(content))
    }

    func remove(_ name: String) -> RowsContent? {
      let content = scopes.removeValue(forKey: name)
      if let content { closed.remove(ObjectIdentifier(content)) }
      return content
    }
  }

  init(channel: Int, serverLoop: EventLoop?) {
    (self.channel, self.serverLoop) = (channel, serverLoop)
  }

  /// Runs `body` on the loop, in the order of the calls.
  nonisolated func perform(_ body: @escaping @Sendable (isolated ServerShard) -> Void) {
    if serverLoop === loop, EventLoop.current === loop {
      assumeIsolated { body($0) }
    } else {
      loop.post { self.assumeIsolated { body($0) } }
    }
  }

  /// Returns once everything that ``perform(_:)`` was called with before has run. A task that is on the loop already would
  /// overtake it.
  nonisolated func catchUp() async {
    await withCheckedContinuation { done in loop.post { done.resume() } }
  }

  /// Makes the shard's engine. `sessionEnded` is called with the token of each session that ends here.
  func prepare(
    _ configuration: Server.Configuration, of channels: Int, _ hits: LimitHits,
    report: @escaping @Sendable (Diagnostic) -> Void,
    sessionEnded: @escaping @Sendable (String) -> Void
  ) {
    let hooks = ServerEngine.Hooks(
      fetch: { [offers] _, name, _ in
        // A fetch may be on its way while the scope is removed, or hosted elsewhere. The client asks in channel 0 then.
        offers[name].map { .success($0) } ?? .failure(.notServed)
      }, report: report, makeToken: { preconditionFailure("A shard creates no sessions.") },
      random: { Double.random(in: 0..<1) }, date: { Date() },
      sessionEnded: { sessionEnded($0.token) })
    runner = EngineRunner(
      configuration, channel: .init(number: channel, of: channels), on: self, hooks: hooks,
      hits: hits,
      owner: .init(report: report, lost: { [offers] in offers.closed.insert(ObjectIdentifier($0)) })
    )
  }

  /// Runs from now on, until ``stop()``.
  func begin() { runner?.begin() }

  // MARK: Scopes

  func host(_ name: String, _ schema: ScopeSchema) {
    let content = RowsContent(name: name, schema)
    offers.add(content)
    runner?.engine.host(content)
  }

  /// Returns false if the shard was stopped meanwhile: it does not have the scope then.
  func host(
    _ name: String, _ schema: ScopeSchema, log: FragmentLog, snapshotEvery: Int
  ) async throws -> Bool {
    do {
      let content = try await runner?.host(name, schema, log: log, snapshotEvery: snapshotEvery)
      if let content { offers.add(content) }
      return content != nil
    } catch let error as StorageError {
      throw error.cause
    }
  }

  /// Returns true if it serves no scope of that name any more, since its history was lost or the shard was stopped. The
  /// history is let go of then.
  func hasLeft(_ name: String) async -> Bool {
    guard offers[name] == nil else { return false }
    if let content = offers.scopes[name] { await runner?.leaveHistory(of: content) }
    return offers[name] == nil
  }

  /// Forgets a scope that it does not serve any more, and that is served elsewhere.
  func forget(_ name: String) { if offers[name] == nil { _ = offers.remove(name) } }

  func remove(_ name: String, telling error: WireError) async throws {
    guard let content = offers.remove(name) else { return }
    try await runner?.remove(content, telling: error)
  }

  // MARK: Connections

  /// Takes a session that the server has created, with its connection.
  func join(_ join: ServerEngine.Join, _ connection: any ServerConnection) {
    runner?.join(join, connection)
  }

  /// Takes a new connection of a session that has joined, with the principal that the app has named for it. Returns the time
  /// for which nothing is to be read from it.
  func opened(
    _ connection: any ServerConnection, _ id: Int, _ request: HTTPRequest, as principal: Principal?
  ) -> Duration {
    runner?.opened(connection, id, request, as: principal)?.pause ?? .zero
  }

  /// Takes what a connection has received. Returns the time for which nothing more is to be read from it; nil if its
  /// session has not joined.
  func received(_ inputs: [ServerEngine.Input], on id: Int) -> Duration? {
    runner?.received(inputs, on: id)
  }

  /// Waits until the large change sets that are being judged have fewer bytes than the largest one may have.
  func waitForRoom() async { await runner?.waitForRoom() }

  func closed(_ id: Int) { runner?.closed(id) }

  /// Takes note that a connection is left unread on purpose. Returns the time for which it is to be left unread on, if
  /// the time for that is over.
  func rests(on id: Int, isOver: Bool) -> Duration {
    runner?.rests(on: id, isOver: isOver) ?? .zero
  }

  /// Ends a session that has ended on the server's actor.
  func end(_ token: String, isTakenAway: Bool = false) {
    runner?.endSession(token, isTakenAway: isTakenAway)
  }

  // MARK: Rights

  /// Takes out what the sessions of a principal have sent and waits for its turn.
  func dropQueued(by principal: String) { runner?.engine.dropQueued(by: principal) }

  /// Takes out, undecided, what the sessions of a principal have sent before they have ended.
  func dropLeft(by principal: String) { runner?.engine.dropLeft(by: principal) }

  /// The sessions and the names of their scopes in which the rights are known.
  func knownAccess(of principal: String?) -> [(session: SessionInfo, name: String)] {
    runner?.engine.knownAccess(of: principal) ?? []
  }

  func changeAccess(_ token: String, _ name: String, _ answer: Result<ScopeAccess, WireError>) {
    runner?.changeAccess(token, name, answer)
  }

  // MARK: The end

  /// Ends all sessions and closes all connections.
  func stop() {
    offers.closed.formUnion((runner?.storedScopes ?? []).map(ObjectIdentifier.init))
    runner?.stop()
  }

  /// Drops everything, for a server that is released.
  func abandon() { runner = nil }
}
