import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("Calls that bring content which the server does not know")
struct UnknownCallTests {
  private let world = InMemoryWorld(unknown: .keep)
  private let constraints = [
    Constraint(.change, "Canvas", allowsAdditionalProperties: true),
    Constraint(.add, "Ghost", allowsAdditionalProperties: true),
  ]
  private final class Runs {
    var count = 0
  }
  private let runs = Runs()

  init() {
    world.procedures["Canvas.edit"] = ServedProcedure(
      takesArguments: false, constraints: constraints
    ) { [world, runs] request in
      do {
        try request.commit { (canvas: Canvas) in
          runs.count += 1
          if canvas.name == "bad" { throw WireError.rejected("That is no name") }
        }
      } catch {
        world.server.ended(request, after: error, Never.self)
      }
    }
  }

  private func change(_ properties: JSONObject, _ operations: PropertyOperations = [:])
    -> SyncFragment
  {
    SyncFragment(
      .change, uuid: world.canvas.uuid, className: "Canvas", properties: properties,
      operations: operations)
  }

  /// Calls the procedure. Returns the errors of the fragments.
  private func call(_ peer: RawPeer, _ fragments: SyncFragment...) -> [String?] {
    var sync = ScopeSync(scopeIndex: peer.scopeIndex, fragments: fragments)
    (sync.procedure, sync.atomic) = ("Canvas.edit", true)
    let message = peer.stamp(.scopeSync(sync))
    peer.send(message)
    return (peer.replies(to: message.index) ?? []).map { $0.error?.message }
  }

  private func expectUntouched(by observer: RawPeer) {
    #expect(world.scope.unknownProperties(of: world.canvas).isEmpty)
    #expect(world.scope.unknownModels.isEmpty && world.canvas.name == nil)
    observer.take()
    #expect(observer.syncs.isEmpty)
    #expect(runs.count == 0 && world.server.checkInvariants() == [])
  }

  @Test(
    "A call with an unknown property is rejected as a whole, whatever its body would do",
    arguments: [1, 2], ["tea", "bad"])
  func unknownProperty(version: Int, name: String) {
    let observer = RawPeer.joined(world, protocol: 2)
    let peer = RawPeer.joined(world, protocol: version)
    let errors = call(peer, change(["name": .string(name), "ghost": 7]))
    #expect(errors.count == 1 && errors[0]?.hasPrefix("No property at 'ghost'") == true)
    expectUntouched(by: observer)
  }

  @Test("A call with operations on an unknown property, or with an unknown class, is rejected")
  func unknownClass() {
    let observer = RawPeer.joined(world, protocol: 2)
    let peer = RawPeer.joined(world, protocol: 2)
    let ghost = UUID()
    let insertion = call(peer, change([:], ["ghosts": [.insert(ghost, .end)]]))
    #expect(insertion[0]?.hasPrefix("No property at 'ghosts'") == true)
    let added = call(
      peer, SyncFragment(.add, uuid: ghost, className: "Ghost", properties: ["fright": 7]),
      change(["name": "tea"]))
    #expect(added[0]?.hasPrefix("No such class type 'Ghost'") == true)
    #expect(added[1]?.contains("Rejected with its atomic set") == true)
    expectUntouched(by: observer)
  }

  @Test("Unknown content of plain change sets stays, also of models that calls change")
  func plain() {
    let observer = RawPeer.joined(world, protocol: 2)
    let peer = RawPeer.joined(world, protocol: 2)
    #expect(peer.submit([change(["ghost": 7])]).map { $0.error?.message } == [nil])
    #expect(call(peer, change(["name": "tea"])) == [nil])
    #expect(world.scope.unknownProperties(of: world.canvas) == ["ghost": 7])
    observer.take()
    #expect(
      observer.syncs.flatMap(\.fragments).map(\.properties) == [["ghost": 7], ["name": "tea"]])
  }

  @Test("A scope that is hosted from a schema rejects calls, and keeps nothing of them")
  func rows() throws {
    let content = RowsContent(name: "Rows", ScopeSchema(of: Canvas.self))
    world.rows["Rows"] = content
    world.server.host(content, unknown: .keep)
    let peer = RawPeer.joined(world, protocol: 2)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Rows"))))
    let before = content.document.canonicalJSON
    let root = try #require(content.root)
    let errors = call(
      peer,
      SyncFragment(
        .change, uuid: root.uuid, className: "Canvas", properties: ["name": "tea", "ghost": 7]))
    #expect(errors[0]?.contains("without its models") == true)
    #expect(content.document.canonicalJSON == before && runs.count == 0)
  }
}
