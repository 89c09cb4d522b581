import Foundation

@testable import Jetstream

/// The replica of the first scope, and ticks.
extension Forest {
  func flush() {
    checkStep()
    for number in places.keys.sorted() {
      guard let scope = places[number]!.scope else { continue }
      isFlushing = true
      scope.flush()
      isFlushing = false
      reference.collect(number)
    }
    keeper.forgetGone()
    checkDelivery()
    compareReplica(isFlushed: true)
  }

  /// Looks at a change set, and gives it to the replica.
  func hear(_ set: ChangeSet, of number: Int) {
    setsHeard += 1
    checkHeat(set.fragments, of: number)
    noteHeat(set.fragments, of: number)
    if number == 0 {
      checkBases(set)
      let isKnown = set.fragments.contains {
        $0.kind == .add && (replica?.model($0.uuid) ?? keeper.find($0.uuid)) != nil
      }
      let before = replica?.fullState() ?? []
      applyToReplica(set.fragments)
      // What was in another scope meanwhile is added to those who have it; that has no way back.
      if !isKnown { checkUndo(set, from: before) }
    }
  }

  /// Taken back and done again, the set leads to the same states.
  private func checkUndo(_ set: ChangeSet, from before: [SyncFragment]) {
    let after = replica?.fullState() ?? []
    applyToReplica(set.undo)
    compare(before, replica?.fullState() ?? [])
    applyToReplica(set.fragments)
    compare(after, replica?.fullState() ?? [])
  }

  /// What the set says that it replaces is what the replica has.
  private func checkBases(_ set: ChangeSet) {
    guard let replica else { return }
    let bases = set.bases
    for fragment in set.fragments where fragment.kind == .change {
      let undo = set.undo.first { $0.kind == .change && $0.uuid == fragment.uuid }
      guard let model = replica.model(fragment.uuid) ?? keeper.find(fragment.uuid) else {
        fail("the others do not know what is changed: \(fragment)")
        continue
      }
      for (key, value) in fragment.properties {
        let old = model.schema[wireName: key].map(model.json(of:))
        let base = bases[fragment.uuid]?[key]
        expect(base == old, "the base of \(key) is \(text(base)) instead of \(text(old))")
        expect(value != old, "\(key) was \(text(old)) before")
      }
      for (key, operations) in fragment.operations.map({ ($0.key, $0.operations) }) {
        let old = model.schema[wireName: key].map(model.json(of:))
        let range = model.schema.counterRange(of: key)
        let new = PropertyOperation.apply(operations, to: old, within: range)
        let back = PropertyOperation.apply(undo?.operations[key] ?? [], to: new, within: range)
        expect(new != old, "\(operations) leave \(key) as it was")
        expect(back == old, "taking back \(operations) leaves \(text(back)) of \(text(old))")
      }
    }
  }

  private func text(_ json: JSONValue?) -> String { json?.canonicalText ?? "nothing" }

  func applyToReplica(_ fragments: [SyncFragment]) {
    // Fragments of both sides that crossed may name what is gone on the other.
    let known: (UUID) -> ModelObject? = { [keeper] in keeper.find($0) }
    guard let report = replica?.apply(fragments, alsoKnown: known) else { return }
    let errors = report.errors.filter {
      // What a model was sent while it was gone, and is no value, is reported when it is back.
      if case .invalidValue = $0.error { false } else { true }
    }
    if !errors.isEmpty { fail("the replica refused \(errors) of \(fragments)") }
  }

  /// Nobody is told of another heat before the interval has passed, but by a flush.
  func checkHeat(_ fragments: [SyncFragment], of number: Int) {
    if isFlushing { return }
    for fragment in fragments where fragment.kind == .change && fragment.properties["heat"] != nil {
      let end = heated[number]?[fragment.uuid] ?? .zero
      expect(end <= ticker.now, "the heat is told at \(ticker.now), before \(end)")
    }
  }

  /// Remembers for how long no heat of a node may be told.
  func noteHeat(_ fragments: [SyncFragment], of number: Int) {
    for fragment in fragments where fragment.properties["heat"] != nil {
      heated[number, default: [:]][fragment.uuid] = ticker.now + .milliseconds(40)
      for (id, node) in reference.nodes where node.uuid == fragment.uuid {
        reference.bases[id]?["heat"] = nil
      }
    }
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
    for scope in fixed { scope.root = nil }
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
  private var byUUID: [UUID: ModelObject] = [:]

  func find(_ uuid: UUID) -> ModelObject? { byUUID[uuid] }

  /// Both sides are settled: nothing that is under way names what is gone.
  func forgetGone() { byUUID = byUUID.filter { $0.value.scope != nil } }

  func modelEntered(_ model: ModelObject) {
    models.append(model)
    byUUID[model.uuid] = model
  }

  func modelLeft(_ model: ModelObject) {}

  func release() {
    for model in models { (model as? Plant)?.letGo() }
    models = []
    byUUID = [:]
  }
}

/// Finds the models that have ever been in one of the scopes, while they are there.
final class Visitors: MembershipObserver {
  private struct Visitor { weak var plant: Plant? }

  private var visitors: [UUID: Visitor] = [:]

  func modelEntered(_ model: ModelObject) {
    visitors[model.uuid] = Visitor(plant: model as? Plant)
  }

  func modelLeft(_ model: ModelObject) {}

  func plant(_ uuid: UUID) -> Plant? { visitors[uuid]?.plant }
}
