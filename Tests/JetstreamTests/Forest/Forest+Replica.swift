import Foundation

@testable import Jetstream

/// The replica of the first scope, and ticks.
extension Forest {
  func flush() {
    checkStep()
    for number in places.keys.sorted() { places[number]!.scope?.flush() }
    checkDelivery()
    compareReplica(isFlushed: true)
  }

  /// The replica equals the scope: after a flush altogether, else but for what is held back.
  func compareReplica(isFlushed: Bool = false) {
    guard let replica else { return }
    if isFlushed {
      compare(scope(0).fullState(), replica.fullState())
    } else {
      compare(scope(0).sharedState(), replica.fullState())
    }
    expect(!replica.hasCollectedChanges, "the replica has changes of its own")
  }

  func compare(_ state: [SyncFragment], _ copy: [SyncFragment]) {
    let texts = Set(state.map(\.json.canonicalText))
    let copies = Set(copy.map(\.json.canonicalText))
    if texts == copies { return }
    func words(_ texts: Set<String>) -> String {
      var words = texts.sorted().joined(separator: "\n    ")
      for id in order {
        words = words.replacingOccurrences(of: plants[id]!.uuid.wireText, with: "#\(id)")
      }
      return words
    }
    fail(
      "the replica has\n    \(words(copies.subtracting(texts)))\n  where the scope has\n    "
        + words(texts.subtracting(copies)))
  }

  /// When the first scope has got another root, so does the replica: nothing says that on the wire.
  func followRoot() {
    let root = reference.roots[0]
    guard root != replicaRoot else { return }
    replica = nil
    keeper.release()
    replicaRoot = root
    guard let root else { return }
    flush()
    let plant = plants[root]!
    let copy = type(of: plant).init()
    copy.ensureRecord().uuidIfMade = plant.uuid
    let made = Scope(name: "Replica", root: copy, models: [Bush.self], ticker: .manual())
    keeper.models = [copy]
    made.addMembershipObserver(keeper)
    do {
      let report = try made.applyFullState(scope(0).fullState(), rootUUID: plant.uuid)
      expect(report.isComplete, "the replica refused \(report.errors)")
    } catch {
      fail("the replica refused its state: \(error)")
    }
    replica = made
    compareReplica()
  }

  /// Lets go of everything; the observers stay.
  func release() {
    for id in order { plants[id]!.letGo() }
    for scope in fixed { scope.releaseRoot() }
    for number in places.keys.sorted() { places[number]!.scope?.flush() }
    ticker.advance(by: .seconds(1))
    replica = nil
    keeper.release()
    saved = nil
    plants = [:]
    order = []
    fixed = []
  }

}

extension Plant {
  /// Whom it holds, in order.
  var held: [Plant] {
    [left, right, (self as? Bush)?.crown].compactMap { $0 } + items + others + picks
  }

  /// Lets go of all that it holds: models that hold each other stay for good otherwise.
  func letGo() {
    for key in ListKey.allCases { self[key] = [] }
    left = nil
    right = nil
    (self as? Bush)?.crown = nil
  }
}

/// Knows all models that have ever been in the replica, so that cycles of them can be broken.
final class ReplicaKeeper: MembershipObserver {
  var models: [ModelObject] = []
  func modelEntered(_ model: ModelObject) { models.append(model) }
  func modelLeft(_ model: ModelObject) {}

  func release() {
    for model in models { (model as? Plant)?.letGo() }
    models = []
  }
}
