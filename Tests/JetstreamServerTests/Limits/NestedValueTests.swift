import Foundation
import JetstreamServer
import Testing

@testable import Jetstream

/// A model with any JSON.
private final class Page: ModelObject {
  @Property var content: JSONValue = .null
  @Property var views = 0
}

extension JSONValue {
  /// A number in as many arrays, one in the other.
  fileprivate static func nested(_ levels: Int) -> JSONValue {
    (0..<levels).reduce(.integer(1)) { value, _ in .array([value]) }
  }
}

@Suite("Values that nest deeply")
struct NestedValueTests {
  private let world = InMemoryWorld()
  private let hosted = Page()
  private let one: WorldClient
  private let two: WorldClient
  private let pages: [Page]

  init() {
    let scope = Scope(name: "Canvas", root: hosted, ticker: world.serverTicker)
    world.replaced = scope
    world.server.host(scope)
    pages = [Page(), Page()]
    (one, two) = (world.addClient(root: pages[0]), world.addClient(root: pages[1]))
    for client in [one, two] { client.join() }
    world.settle()
  }

  /// Lets everything arrive; the connections have to stay.
  private func pass() {
    for _ in 0..<3 { world.pass(1) }
    #expect(one.tokens.count == 1 && two.tokens.count == 1, "no client has connected again")
    #expect(one.engine.pendingCount == 0)
  }

  @Test("What a client may write reaches the others; what no server reads is taken back")
  func written() throws {
    var levels = 0
    var refused: [Int] = []
    for next in 50...70 {
      pages[0].content = .nested(next)
      one.scope.flush()
      pages[0].views += 1
      pass()
      if hosted.content == .nested(next) { levels = next } else { refused.append(next) }
      #expect(pages[1].content == .nested(levels) && pages[0].content == .nested(levels))
      #expect(pages[1].views == next - 49)
    }
    #expect(refused == Array(57...70))
    let conflict = try #require(one.scope.conflicts.items.last)
    guard case .rejected(let error) = conflict.reason else {
      Issue.record("\(conflict.reason)")
      return
    }
    #expect(error.type == "nested-too-deep" && conflict.property == "content")
  }

  @Test("A hostile client that writes as deep as the server reads does no harm to the others")
  func hostile() {
    let peer = RawPeer.joined(world)
    for levels in 57...61 {
      peer.send([
        SyncFragment(
          .change, uuid: hosted.uuid, className: "Page", properties: ["content": .nested(levels)])
      ])
      pass()
      #expect(pages.allSatisfy { $0.content == hosted.content })
    }
    #expect(hosted.content == .nested(60))
  }

  @Test("What the server writes reaches all", arguments: [60, 70, 240])
  func hosted(levels: Int) {
    hosted.content = .nested(levels)
    pass()
    #expect(pages.allSatisfy { $0.content == .nested(levels) })
    let late = Page()
    world.addClient(root: late).join()
    pass()
    #expect(late.content == .nested(levels))
  }

  @Test("A client takes nothing from its server that it could not write again")
  func tooDeepForClient() {
    for levels in [240, 241, 250] {
      let fragment = SyncFragment(
        .change, uuid: hosted.uuid, className: "Page", properties: ["content": .nested(levels)])
      let report = one.scope.apply([fragment])
      #expect(report.errors.count == (levels > 240 ? 1 : 0), "\(levels) levels")
      // As with any other value that does not fit.
      #expect(pages[0].content == (levels > 240 ? .null : .nested(levels)))
    }
  }

  @Test("Values and states are read from a log as they were written")
  func kept() async throws {
    let directory = try TemporaryDirectory()
    let log = try ClientLog(directory.path)
    let root = UUID()
    let fragment = SyncFragment(
      .change, uuid: root, className: "Page", properties: ["content": .nested(240)])
    var expected = ReplicaHistory(client: UUID(), root: root)
    expected.records = [
      .named(client: expected.client, root: root),
      .made(number: 1, ChangeSet(fragments: [fragment], undo: [fragment])),
      .together([.confirmed([fragment], sequence: 1), .confirmed([fragment], sequence: 2)]),
      .decided(.init(number: 1, replies: [FragmentReply()], effective: [fragment], sequence: 3)),
    ]
    for record in expected.records { try await log.append(record).durable() }
    #expect(try log.history() == expected)
    var later = ReplicaHistory(
      client: UUID(), root: root, nextNumber: 2,
      base: ReplicaBase(position: nil, root: root, fragments: [fragment]))
    later.pending = [.init(number: 1, set: ChangeSet(fragments: [fragment], undo: []), basis: nil)]
    try await log.snapshot(later, at: log.records.lastSequence)
    #expect(try log.history() == later)
    try await log.records.close()
  }
}
