import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// Models that properties begin with, on servers and in logs of clients whose content is older than the properties.
@Suite("Models that a class begins with, on servers")
struct MadeModelHostTests {
  private let booklet = Booklet()
  private let scope: Scope
  private let inner = UUID()

  init() { scope = Scope(name: "Booklet", root: booklet, ticker: .manual()) }

  private func change(
    _ values: JSONObject, _ operations: PropertyOperations = [:]
  ) -> SyncFragment {
    SyncFragment(
      .change, uuid: booklet.uuid, className: "Booklet", properties: values, operations: operations)
  }

  @Test("Hosts of objects and of rows have the same after a history without the properties")
  func sameAsRows() throws {
    var history = ScopeHistory(
      epoch: "e", sequence: 0, state: [change(["title": "older"])], clients: [:])
    let addition = SyncFragment(.add, uuid: inner, className: "Booklet", properties: [:])
    history.records = [
      ScopeRecord(sequence: 1, fragments: [addition, change(["inner": .string(inner.wireText)])])
    ]
    let objects = ModelContent(scope)
    let schema = ScopeSchema(of: Booklet.self)
    let rows = RowsContent(
      name: "Booklet", Document(schema: schema.schema, root: booklet.uuid))
    for content in [objects, rows] as [any HostedContent] {
      try ScopeOrder(
        content: content, epoch: "e", streamLimit: .init(sets: 100, bytes: 100_000)
      ).restore(history)
    }
    #expect(scope.count == 2 && booklet.inner?.cover == nil)
    #expect(objects.sharedState().canonicalJSON == rows.sharedState().canonicalJSON)
  }

  @Test(
    "A pending change of such a property stands in front of none, if the state does not name the property",
    arguments: [false, true])
  func pending(isRejected: Bool) throws {
    let engine = ClientEngine(random: { 0.5 }, perform: { _ in }, report: { _ in })
    let (cover, page) = (UUID(), UUID())
    let set = ChangeSet(
      fragments: [
        SyncFragment(.add, uuid: cover, className: "Leaf", properties: [:]),
        SyncFragment(.add, uuid: page, className: "Leaf", properties: [:]),
        change(["cover": .string(cover.wireText)], ["pages": [.insert(page, .end)]]),
      ], undo: [])
    let reply = FragmentReply(error: isRejected ? .rejected("no") : nil)
    var history = ReplicaHistory(client: UUID(), root: booklet.uuid)
    history.records = [
      .made(number: 1, set),
      .base(
        ReplicaBase(
          position: ScopePosition(epoch: "e", sequence: 3), root: booklet.uuid,
          fragments: [change(["title": "older"])])),
      .decided(
        .init(
          number: 1, replies: [reply, reply, reply], effective: nil,
          sequence: isRejected ? nil : 4)),
    ]
    try engine.fetch(
      scope, params: [:], history: history, now: .zero, store: { _ in }, completion: { _ in })
    #expect(booklet.title == "older")
    #expect(booklet.cover?.uuid == (isRejected ? nil : cover))
    #expect(booklet.pages.map(\.uuid) == (isRejected ? [] : [page]))
    #expect(engine.checkInvariants() == [])
  }
}

private final class Booklet: ModelObject {
  override class var wireName: String { "Booklet" }
  @Property var title = ""
  @Property var inner: Booklet?
  @Property var cover: Leaf? = Leaf()
  @Property var pages: ModelArray<Leaf> = [Leaf()]
}

private final class Leaf: ModelObject {
  override class var wireName: String { "Leaf" }
  @Property var number = 0
}
