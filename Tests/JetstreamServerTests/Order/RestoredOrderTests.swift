import Foundation
@testable import Jetstream
import JetstreamServer
import Testing

@Suite("Change sets that come back from a log")
struct RestoredOrderTests {
  private let canvas = Canvas()
  private let scope: Scope
  private let engine = ClientEngine(random: { 0.5 }, perform: { _ in }, report: { _ in })

  init() { scope = Scope(name: "Canvas", root: canvas, ticker: .manual()) }

  /// Reads a log: a state with some values, a change set that an observer answers, something that makes a set of that,
  /// and `then`.
  private func restore(
    from state: JSONObject = [:], _ set: ChangeSet, _ then: [ReplicaRecord] = []
  ) throws {
    var history = ReplicaHistory(client: UUID(), root: canvas.uuid)
    let base = ReplicaBase(
      position: ScopePosition(epoch: "e", sequence: 3), root: canvas.uuid,
      fragments: [change(state)])
    history.records =
      [.base(base), .made(number: 1, set), .confirmed([change(["selected": .null])], sequence: 4)]
      + then
    try engine.fetch(
      scope, params: [:], history: history, now: .zero, store: { _ in }, completion: { _ in })
    #expect(engine.checkInvariants() == [])
  }

  private func change(_ values: JSONObject) -> SyncFragment {
    SyncFragment(.change, uuid: canvas.uuid, className: "Canvas", properties: values)
  }

  private func set(_ values: JSONObject) -> ChangeSet {
    ChangeSet(fragments: [change(values)], undo: [])
  }

  @Test("A change set that an observer makes while the log is read stands behind those of the log")
  func order() throws {
    canvas.observeChangeImmediately(canvas, \.name) { canvas, _, _ in canvas.likes += 1 }
    let first = set(["name": "mine"])
    try restore(first)
    let pending = scope.pendingChangeSets.handles.map(\.changeSet)
    #expect(pending.map(\.id).first == first.id && pending.count == 2)
    #expect(pending.last?.fragments.first?.operations.isEmpty == false)
  }

  @Test("What an observer writes while the log is read stays in front of a change set of the log")
  func visible() throws {
    canvas.observeChangeImmediately(canvas, \.likes) { canvas, _, _ in canvas.name = "observer" }
    let second = set(["name": "log"])
    try restore(set(["likes": 1]), [.made(number: 2, second)])
    #expect(canvas.name == "observer")
    #expect(scope.pendingChangeSets.handles.map(\.changeSet.id)[1] == second.id)
    #expect(engine.pendingCount == 3)
  }

  @Test(
    "What an observer writes while the log is read is sent although a rejected change set has written the same"
  )
  func same() throws {
    canvas.observeChangeImmediately(canvas, \.likes) { canvas, _, _ in canvas.name = "mine" }
    let rejection = FragmentReply(error: .rejected("no"))
    try restore(
      from: ["likes": 1], set(["name": "mine"]),
      [.decided(.init(number: 1, replies: [rejection], effective: nil, sequence: nil))])
    #expect(canvas.name == "mine" && engine.pendingCount == 1)
  }

  @Test(
    "What a state of the log has overwritten is a conflict, unless the change set that follows it settles it",
    arguments: [false, true])
  func overwritten(isSettled: Bool) throws {
    func base(_ name: String, at sequence: Int) -> ReplicaRecord {
      .base(
        ReplicaBase(
          position: ScopePosition(epoch: "e", sequence: sequence), root: canvas.uuid,
          fragments: [change(["name": .string(name)])]))
    }
    func decided(_ number: Int, _ name: String) -> ReplicaRecord {
      .decided(
        .init(
          number: number, replies: [FragmentReply()],
          effective: [change(["name": .string(name)])], sequence: nil))
    }
    var history = ReplicaHistory(client: UUID(), root: canvas.uuid)
    history.records = [
      base("before", at: 3), .made(number: 1, set(["name": "mine"])), decided(1, "mine"),
      base("theirs", at: 9),
    ]
    if isSettled {
      history.records += [.made(number: 2, set(["name": "newer"])), decided(2, "newer")]
    }
    try engine.fetch(
      scope, params: [:], history: history, now: .zero, store: { _ in }, completion: { _ in })
    let conflicts = scope.conflicts.items.map { "\($0.property ?? "") \($0.reason)" }
    #expect(conflicts == (isSettled ? [] : ["name overwritten"]))
    #expect(engine.checkInvariants() == [])
  }

  @Test(
    "Steps of a counter that were decided behind a state of the log count, whether the state names the counter or not",
    arguments: [false, true], [false, true])
  func steps(isNamed: Bool, isRenamed: Bool) throws {
    let root = isRenamed ? UUID() : canvas.uuid
    func step(_ amount: Int64, of uuid: UUID) -> SyncFragment {
      SyncFragment(
        .change, uuid: uuid, className: "Canvas", properties: [:],
        operations: ["likes": [.add(amount)]])
    }
    let state = SyncFragment(
      .change, uuid: root, className: "Canvas", properties: isNamed ? ["likes": 7] : [:])
    let base = ReplicaBase(
      position: ScopePosition(epoch: "e", sequence: 0), root: root, fragments: [state])
    func decided(_ number: Int) -> ReplicaRecord {
      .decided(
        .init(number: number, replies: [FragmentReply()], effective: nil, sequence: number))
    }
    func made(_ number: Int, _ amount: Int64) -> ReplicaRecord {
      .made(
        number: number, ChangeSet(fragments: [step(amount, of: canvas.uuid)], undo: []))
    }
    var history = ReplicaHistory(client: UUID(), root: canvas.uuid)
    history.records = [made(1, -11), made(2, 33), .base(base), decided(1), decided(2)]
    try engine.fetch(
      scope, params: [:], history: history, now: .zero, store: { _ in }, completion: { _ in })
    #expect(canvas.likes == (isNamed ? 29 : 22))
    #expect(engine.checkInvariants() == [])
  }
}
