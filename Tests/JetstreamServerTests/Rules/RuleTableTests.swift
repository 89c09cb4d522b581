import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("The table of rules in the article")
struct RuleTableTests {
  private let world: InMemoryWorld
  private let shape = Shape()
  private let other = Shape()

  init() {
    var configuration = ServerEngine.Configuration()
    configuration.rules = { _ in
      var rules = ScopeRules()
      rules.create(Shape.self, "no create") { session, _ in session.principal != nil }
      rules.delete(Shape.self, "no delete") { session, _ in session.principal != nil }
      rules.update(\Canvas.name, "no update") { session, _, _ in session.principal != nil }
      rules.insert(into: \Canvas.hidden, "no insert") { session, _, _ in session.principal != nil }
      rules.remove(from: \Canvas.hidden, "no remove") { session, _, _ in session.principal != nil }
      rules.move(in: \Canvas.shapes, "no move") { session, _, _ in session.principal != nil }
      return rules
    }
    world = InMemoryWorld(configuration: configuration)
    world.canvas.shapes = [shape, other]
    world.canvas.hidden = [other]
    world.scope.flush()
  }

  /// The operations of the article's table, as its first column names them.
  private func operations() throws -> [String] {
    let article = URL(filePath: #filePath).appending(
      path: "../../../../Sources/JetstreamServer/JetstreamServer.docc/RulesForChanges.md")
    let text = try String(contentsOf: article.standardized, encoding: .utf8)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let start = try #require(lines.firstIndex { $0.hasPrefix("| operation | judged when |") })
    return try lines[(start + 2)...].prefix { $0.hasPrefix("|") }.map { line in
      try String(#require(line.firstMatch(of: /[`\/]([a-z]+)[`(]/)).1)
    }
  }

  /// A change set that does one thing to the canvas.
  private func fragments(_ operation: ScopeRules.Operation) -> [SyncFragment] {
    func change(_ key: String, _ operations: PropertyOperation...) -> SyncFragment {
      var fragment = SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas", properties: [:])
      fragment.operations[key] = operations
      return fragment
    }
    switch operation {
    case .create:
      let new = UUID()
      return [
        SyncFragment(.add, uuid: new, className: "Shape", properties: [:]),
        change("shapes", .insert(new, .end)),
      ]
    case .delete: return [change("shapes", .remove(shape.uuid))]
    case .update:
      return [
        SyncFragment(
          .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "x"])
      ]
    case .insert: return [change("hidden", .insert(shape.uuid, .end))]
    case .remove: return [change("hidden", .remove(other.uuid))]
    case .move: return [change("shapes", .move(shape.uuid, .end))]
    }
  }

  @Test(
    "It has each operation once, each has a rule that stops a stranger, and a user notices nothing")
  func table() throws {
    let named = try operations()
    #expect(named.sorted() == ScopeRules.Operation.allCases.map(\.rawValue).sorted())
    let stranger = RawPeer.joined(world, protocol: 2)
    let user = world.addClient()
    user.join(as: "Ann")
    world.settle()
    for operation in ScopeRules.Operation.allCases {
      let before = world.scope.canonicalJSON
      let replies = stranger.submit(fragments(operation))
      let errors = replies.compactMap(\.error)
      #expect(errors.contains { $0.message == "no \(operation)" }, "\(operation): \(replies)")
      #expect(world.scope.canonicalJSON == before, "\(operation)")
      user.canvas.likes += 1
      world.settle()
      #expect(user.scope.canonicalJSON == world.scope.canonicalJSON)
    }
    // The same change sets of a user are accepted.
    let insider = RawPeer(world)
    insider.createSession(as: "Ben")
    insider.send(insider.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    for operation in ScopeRules.Operation.allCases where operation != .delete {
      #expect(insider.submit(fragments(operation)).allSatisfy { $0.error == nil }, "\(operation)")
    }
    #expect(insider.submit(fragments(.delete)).allSatisfy { $0.error == nil })
    #expect(world.limitHits.isEmpty && user.rejections.isEmpty)
  }
}
