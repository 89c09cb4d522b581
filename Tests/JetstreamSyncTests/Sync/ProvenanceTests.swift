import Foundation
import Jetstream
import JetstreamServer
import Testing

@Suite("Who has changed what, when and why")
struct ProvenanceTests {
  private let world: InMemoryWorld
  private let ada: WorldClient
  private let grace: WorldClient

  init() {
    world = InMemoryWorld()
    (ada, grace) = (world.addClient(), world.addClient())
  }

  /// Collects what a scope tells of others.
  private final class Reports {
    private(set) var all: [RemoteChanges] = []

    init(_ scope: Scope) {
      scope.onRemoteChanges.listen(self) { me, changes in me.all.append(changes) }
    }

    func take() -> [RemoteChanges] {
      defer { all = [] }
      return all
    }
  }

  private func join() -> (ada: Reports, grace: Reports, server: Reports) {
    let reports = (Reports(ada.scope), Reports(grace.scope), Reports(world.scope))
    ada.join(as: "Ada")
    grace.join(as: "Grace")
    world.settle()
    return reports
  }

  @Test(
    "The whole state is told first, then each change set with all that is known of it, in order")
  func changes() throws {
    world.canvas.name = "before"
    world.scope.flush()
    let date = Date(timeIntervalSince1970: 1_700_000_000.25)
    ada.engine.configuration.date = { date }
    let reports = join()
    for client in [reports.ada, reports.grace] {
      let state = try #require(client.take().first)
      #expect(state.isFullState && state.sequence == 1 && state.author == nil)
      #expect(state.fragments.first?.properties["name"] == "before")
    }
    #expect(reports.server.take().isEmpty)
    ada.scope.modify("rename") { ada.canvas.name = "mine" }
    ada.scope.modify("like") { ada.canvas.likes += 2 }
    world.settle()
    for report in [reports.grace, reports.server] {
      let told = report.take()
      #expect(told.map(\.message) == ["rename", "like"] && told.map(\.sequence) == [2, 3])
      #expect(told.map(\.author) == ["Ada", "Ada"] && told.map(\.date) == [date, date])
      #expect(told.allSatisfy { !$0.isFullState && $0.fragments.count == 1 })
      #expect(Set(told.map(\.client)).count == 1 && told[0].client != nil)
      // It is no name with which others could submit change sets.
      #expect(told[0].client != ada.engine.configuration.clientID)
    }
    #expect(reports.ada.take().isEmpty, "Own changes are not remote.")
    world.scope.modify("tidy", author: "the server") { world.canvas.likes = 0 }
    world.settle()
    let told = reports.ada.take()
    #expect(told.map(\.author) == ["the server"] && told[0].message == "tidy")
    #expect(told[0].client == nil && reports.server.take().isEmpty)
  }

  @Test("They are told when they are visible, and pending changes stay in front of them")
  func visible() {
    let reports = join()
    _ = reports.ada.take()
    var seen: [String?] = []
    let token = ada.scope.onRemoteChanges.listen { [ada] _ in seen.append(ada.canvas.name) }
    grace.canvas.name = "theirs"
    grace.flush()
    while !grace.link!.toServer.isEmpty { world.deliver(grace.link!, toServer: true) }
    world.settle()
    #expect(seen == ["theirs"])
    ada.canvas.name = "pending"
    ada.flush()
    grace.canvas.name = "theirs again"
    world.settle()
    #expect(seen.count == 2 && ada.canvas.name == world.canvas.name)
    token.cancel()
  }

  @Test("What a client says of its user is not believed, and not passed on")
  func claims() throws {
    let reports = join()
    _ = reports.ada.take()
    let peer = RawPeer.joined(world, protocol: 2)
    var sync = ScopeSync(
      scopeIndex: 0,
      fragments: [
        SyncFragment(
          .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "forged"])
      ])
    sync.origin.author = "Ada"
    sync.origin.client = UUID()
    sync.origin.message = "for a reason"
    peer.send(peer.stamp(.scopeSync(sync)))
    world.settle()
    let told = try #require(reports.ada.take().first)
    #expect(told.author == nil && told.client == nil && told.message == "for a reason")
    grace.scope.modify(author: "Ada") { grace.canvas.name = "also forged" }
    world.settle()
    #expect(reports.ada.take().map(\.author) == ["Grace"])
  }

  @Test(
    "A session that is resumed keeps its user; one that was away is told who has done what it has missed"
  )
  func resumed() {
    let reports = join()
    _ = reports.ada.take()
    world.cut(ada.link!)
    world.cut(grace.link!)
    grace.scope.modify("while away") { grace.canvas.name = "missed" }
    world.settle()
    let told = reports.ada.take()
    #expect(told.map(\.author) == ["Grace"] && told.map(\.message) == ["while away"])
  }

  @Test("A message of more than 4 KiB stays here, and the change set is told without it")
  func longMessage() {
    let reports = join()
    _ = reports.ada.take()
    grace.scope.modify(String(repeating: "m", count: 4097)) { grace.canvas.name = "long" }
    world.settle()
    #expect(reports.ada.take().map(\.message) == [nil] && ada.canvas.name == "long")
  }
}

@Suite("Who has changed what, from a log", .live, .timeLimit(.minutes(5)))
@MainActor
struct LoggedProvenanceTests {
  @Test("A server's log has them, and blame and the past of a scope come from it")
  func log() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/server"
    let hosted = Scope(name: "Canvas", root: Canvas())
    let server = Server()
    server.authenticate = { session in
      guard case .object(let params) = session.params, case .string(let name)? = params["user"]
      else { throw WireError.notYou("no user") }
      return Principal("id of \(name)", name: name)
    }
    let log = try FragmentLog(path)
    try await server.host(hosted, log: log)
    let begin = Date()
    var scopes: [Scope] = []
    var clients: [Client] = []
    for name in ["Ada", "Grace", "Barbara"] {
      let client = Client(transport: server.makeTransport())
      let scope = Scope(name: "Canvas", root: Canvas())
      try await client.connect(params: ["user": .string(name)])
      try await client.fetch(scope)
      let canvas = try #require(scope.root as? Canvas)
      scope.modify("set by \(name)") { canvas.name = "of \(name)" }
      try await client.waitForUpload(of: scope)
      clients.append(client)
      scopes.append(scope)
    }
    for client in clients { client.close() }
    try await server.remove(hosted)
    let writes = try LogReader(path).writes(to: "name", of: hosted.root!.uuid)
    #expect(writes.map(\.author) == ["Ada", "Grace", "Barbara"])
    #expect(writes.map(\.message) == ["set by Ada", "set by Grace", "set by Barbara"])
    #expect(writes.allSatisfy { $0.date.map { $0 >= begin - 1 && $0 <= Date() } == true })
    let then = Scope(name: "Then", root: Canvas())
    try LogReader(path).restore(into: then, at: writes[1].sequence)
    #expect((then.root as? Canvas)?.name == "of Grace")
    let difference = try LogReader(path).difference(
      from: writes[2].sequence, to: writes[0].sequence, using: then)
    #expect(difference.fragments.map(\.properties) == [["name": "of Ada"]])
  }

  @Test("A client's log has its own change sets that count and those of others, and its past")
  func clientLog() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/ada"
    let canvas = Canvas()
    let hosted = Scope(name: "Canvas", root: canvas)
    canvas.name = "at first"
    let server = Server()
    server.host(hosted)
    server.authenticate = { $0.params == ["user": "Grace"] ? Principal("Grace") : nil }
    let log = try FragmentLog(path, configuration: LogConfiguration(history: .all))
    let (mine, theirs) = (
      Scope(name: "Canvas", root: Canvas()), Scope(name: "Canvas", root: Canvas())
    )
    let (ada, grace) = (
      Client(transport: server.makeTransport()), Client(transport: server.makeTransport())
    )
    try ada.fetch(mine, log: log)
    try await ada.connect()
    try await ada.waitForDownload(of: mine)
    try await grace.connect(params: ["user": "Grace"])
    try await grace.fetch(theirs)
    let (own, other) = (
      try #require(mine.root as? Canvas), try #require(theirs.root as? Canvas)
    )
    mine.modify("first", author: "Ada") { own.name = "Ada's" }
    try await ada.waitForUpload(of: mine)
    theirs.modify("second") { other.name = "Grace's" }
    try await grace.waitForUpload(of: theirs)
    try await ada.sync(mine)
    await server.stop()
    mine.modify("pending", author: "Ada") { own.name = "pending" }
    mine.flush()
    ada.close()
    try await log.close()
    let reader = try LogReader(path)
    let writes = try reader.writes(to: "name", of: canvas.uuid)
    #expect(writes.map(\.message) == ["first", "second", "pending"])
    #expect(writes.map(\.author) == ["Ada", "Grace", "Ada"])
    #expect(
      writes.map(\.content) == ["Ada's", "Grace's", "pending"].map { .value(.string($0)) })
    #expect(writes.allSatisfy { $0.date != nil })
    // The past as it was shown here, at each of its records.
    let names = try writes.map { write in
      let then = Scope(name: "Then", root: Canvas())
      try reader.restore(into: then, at: write.sequence)
      #expect(then.pendingChangeSets.count == 0)
      return (then.root as? Canvas)?.name
    }
    #expect(names == ["Ada's", "Grace's", "pending"])
    let scratch = Scope(name: "Then", root: Canvas())
    let difference = try reader.difference(
      from: writes[2].sequence, to: writes[0].sequence, using: scratch)
    #expect(difference.fragments.map(\.properties) == [["name": "Ada's"]])
    // Before the server's first state there is nothing but the default values.
    try reader.restore(into: scratch, at: 1)
    #expect(scratch.count == 1 && (scratch.root as? Canvas)?.name == nil)
  }
}
