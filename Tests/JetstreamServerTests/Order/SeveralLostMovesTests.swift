import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

@Suite("A fragment with several lost moves")
struct SeveralLostMovesTests {
  private let canvas = Canvas()
  private let scope: Scope
  private let host: ScopeOrder

  init() {
    scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    host = ScopeOrder(
      content: ModelContent(scope), epoch: "e", policy: .init(unknown: .keep),
      streamLimit: .init(sets: 100, bytes: 100_000))
  }

  private func submit(_ fragment: SyncFragment) -> FragmentReply {
    scope.sealChanges()
    var submitter = ScopeOrder.Submitter(
      session: 1, proven: host.sequence, rebases: true, missed: .init())
    submitter.usesOperations = true
    return host.submit([fragment], isAtomic: false, by: submitter).replies[0]
  }

  /// Puts shapes into the canvas, and moves each of them from a collection of its own that the server does not know, and that
  /// does not hold it.
  private func moves(_ count: Int) -> SyncFragment {
    for _ in 0..<count { canvas.shapes.append(Shape()) }
    let models = canvas.shapes.map(\.uuid)
    var operations: PropertyOperations = ["hidden": models.map { .insert($0, .end) }]
    for (at, model) in models.enumerated() {
      operations.append(newKey: "unknown \(at)", [.remove(model)])
    }
    return SyncFragment(
      .change, uuid: canvas.uuid, className: "Canvas", properties: [:], operations: operations)
  }

  @Test("The reply names each collection once, in order, and nothing of it is applied")
  func names() {
    let reply = submit(moves(3))
    #expect(reply == FragmentReply(lost: ["hidden", "unknown 0", "unknown 1", "unknown 2"]))
    #expect(canvas.shapes.count == 3 && canvas.hidden.isEmpty)
  }
}
