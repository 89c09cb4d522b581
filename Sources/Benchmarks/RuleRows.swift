import Foundation
import Jetstream
import JetstreamServer

/// The cost of a rule: that of judging change sets, of hosts that have one, for each difference.
///
/// One thread, without sockets and without JSON. The rule reads a property of the model as it is, and one as it would be.
func ruleRows() -> [Row] {
  RuleWorld.Edit.allCases.map { edit in
    Row(
      name: "a rule for each difference, \(edit.rawValue)", unit: "ns", bar: .most(1_000),
      rounds: 9
    ) {
      let (with, without) = (RuleWorld(hasRules: true), RuleWorld(hasRules: false))
      return Probes(ours: {
        // In turn, so that the allocator and the caches treat both alike.
        let parts = (0..<20).map { _ in (without.measure(edit), with.measure(edit)) }
        return parts.reduce(0) { $0 + $1.1 - $1.0 } / Double(parts.count)
      })
    }
  }
}

/// A server with a scope, and one session that submits change sets.
private final class RuleWorld {
  enum Edit: String, CaseIterable {
    case single = "a value in each change set"
    case many = "100 values in each change set"
    case insertions = "10 new models in each change set"
    case removals = "10 removals in each change set"
  }

  private let canvas: Canvas
  private let shapes: ContiguousArray<Shape>
  private let scope: Scope
  private var server: ServerEngine!
  private var nextIndex = 2
  private var level = 0
  private var added: [UUID] = []

  init(hasRules: Bool) {
    (canvas, shapes) = Shape.canvas(of: 1_000)
    scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    scope.flush()
    var configuration = ServerEngine.Configuration()
    configuration.keptLimit = .init(messages: .max, bytes: .max)
    if hasRules {
      var rules = ScopeRules(otherwise: .deny)
      rules.create(Shape.self, "") { _, shape in shape.level >= 0 }
      rules.delete(Shape.self, "") { _, shape in shape.level >= 0 }
      rules.update(\Shape.level, "") { _, old, new in new.level > old.level }
      rules.insert(into: \Canvas.shapes, "") { _, _, shape in shape.level >= 0 }
      rules.remove(from: \Canvas.shapes, "") { _, _, shape in shape.level >= 0 }
      configuration.rules = { [rules] _ in rules }
    }
    server = ServerEngine(configuration: configuration, hooks: .offering(scope)) {
      [unowned self] action in
      if case .encode(let scope, let fragments) = action {
        server.encoded(FragmentsText(fragments), of: scope, now: .zero)
      }
    }
    server.host(scope)
    server.beginSession(fetching: "Canvas")
  }

  private func submit(_ fragments: [SyncFragment]) {
    server.submit(fragments, index: nextIndex)
    nextIndex += 1
  }

  /// Returns the nanoseconds for each difference of a few change sets.
  func measure(_ edit: Edit) -> Double {
    let sets = edit == .single ? 250 : 5
    let prepared = (0..<sets).map { _ in fragments(of: edit) }
    let before = server.positions.first?.sequence ?? 0
    let clock = ContinuousClock()
    let time = clock.measure { for fragments in prepared { submit(fragments) } }
    let accepted = (server.positions.first?.sequence ?? 0) - before
    precondition(accepted == sets, "\(sets - accepted) change sets were rejected.")
    if edit == .removals || edit == .insertions { restore(edit) }
    // An insertion of a new model makes two differences, and so does a removal of the only place of one.
    let differences = edit == .single ? sets : edit == .many ? 100 * sets : 20 * sets
    return time / .nanoseconds(1) / Double(differences)
  }

  private func fragments(of edit: Edit) -> [SyncFragment] {
    switch edit {
    case .single: return [change(shapes[0])]
    case .many: return (0..<100).map { change(shapes[$0]) }
    case .insertions:
      let uuids = (0..<10).map { _ in UUID() }
      added += uuids
      return uuids.map {
        SyncFragment(.add, uuid: $0, className: "Shape", properties: ["level": 1])
      } + [insertion(uuids.map { .insert($0, .end) })]
    case .removals:
      let start = added.count
      let uuids = (start..<start + 10).map { shapes[$0 % shapes.count].uuid }
      added += uuids
      return [insertion(uuids.map { .remove($0) })]
    }
  }

  private func change(_ shape: Shape) -> SyncFragment {
    level += 1
    return SyncFragment(
      .change, uuid: shape.uuid, className: "Shape", properties: ["level": .integer(Int64(level))])
  }

  private func insertion(_ operations: [PropertyOperation]) -> SyncFragment {
    SyncFragment(
      .change, uuid: canvas.uuid, className: "Canvas", properties: [:],
      operations: ["shapes": operations])
  }

  /// Gives the canvas the shapes that it had.
  private func restore(_ edit: Edit) {
    canvas.shapes = ModelArray(shapes)
    scope.flush()
    added = []
  }
}
