import Foundation
import Jetstream

/// The memory of what is gone from a hosted scope and may be named by a session that does not know that, or may return:
/// models that have left, additions that were rejected, and the elements of collections.
///
/// One horizon is for all of it: what every session has seen is forgotten.
struct Tombstones {
  /// The models that have left, each with the sequence of the change set with which it has.
  private(set) var models: [UUID: (model: any HostedModel, sequence: Int)] = [:]
  /// The models whose addition was rejected, each with the sequence up to which it is remembered: fragments that refer
  /// to them were sent before the client knew of the rejection.
  private(set) var rejected: [UUID: Int] = [:]
  /// The insertions and removals of elements, by collection.
  private(set) var elements: [PropertyKey: CollectionHistory] = [:]
  /// The models that some session may already have although the next change set adds them: those that have come back
  /// since the last change set, and those that are added once more.
  private(set) var revived: Set<UUID> = []
  /// The horizon of the last call of ``forget(upTo:)``; nil before it.
  private var horizon: Int?
  /// The number of changes that no sequence tells of: something was forgotten, or an addition was rejected.
  private(set) var revision = 0

  /// Notes a model that leaves with a change set.
  mutating func note(_ model: any HostedModel, leftAt sequence: Int) {
    models[model.uuid] = (model, sequence)
  }

  /// Makes room for a number of models that are about to leave. A table that would grow no more than once for them is
  /// left as it is: otherwise each change set could cost O(n) in all models that have left.
  mutating func reserve(_ count: Int) {
    if count > models.count / 2 { models.reserveCapacity(models.count + count) }
  }

  /// Notes a model that comes in: if it had left before, it has come back.
  mutating func noteReturn(of uuid: UUID) {
    if models.isEmpty { return }
    if models.removeValue(forKey: uuid) != nil { revived.insert(uuid) }
  }

  /// Notes that a submission adds a model that the scope already has.
  mutating func noteAddedAgain(_ uuid: UUID) { revived.insert(uuid) }

  /// Returns the models that a change set adds and that no session had before. With it, the models that have come back
  /// until now are known to all.
  mutating func takeNewcomers(among fragments: [SyncFragment]) -> Set<UUID> {
    defer { revived = [] }
    return Set(fragments.lazy.filter { $0.kind == .add }.map(\.uuid)).subtracting(revived)
  }

  /// Forgets which models have come back: no session has seen what a history tells.
  mutating func forgetRevived() { revived = [] }

  /// The largest number of rejected additions that are remembered: those of the largest change set.
  static let rejectedLimit = 100_000

  /// Notes whether an addition was rejected.
  ///
  /// While nothing is accepted the horizon stays, and nothing is forgotten: a client that goes on sending what is rejected
  /// makes the scope begin anew with its memory.
  ///
  /// - Parameter sequence: the sequence up to which a rejection is remembered.
  mutating func note(addition uuid: UUID, isRejected: Bool, upTo sequence: Int) {
    revision += 1
    if isRejected, rejected.count >= Self.rejectedLimit { rejected = [:] }
    rejected[uuid] = isRejected ? sequence : nil
  }

  /// Forgets which additions were rejected: no session has sent fragments that refer to them.
  mutating func forgetRejected() {
    if rejected.isEmpty { return }
    revision += 1
    rejected = [:]
  }

  /// Notes a change of a collection that names it as a whole.
  mutating func note(
    _ key: PropertyKey, from old: [UUID], to new: [UUID], sequence: Int, origin: Int?
  ) {
    elements[key, default: CollectionHistory()].note(
      from: old, to: new, sequence: sequence, origin: origin)
  }

  /// Notes the operations on the collections of one model.
  mutating func note(
    _ operations: PropertyOperations, of uuid: UUID, sequence: Int, origin: Int?
  ) {
    for entry in operations where entry.operations.contains(where: { $0.model != nil }) {
      elements[PropertyKey(uuid: uuid, name: entry.key), default: CollectionHistory()].note(
        entry.operations, sequence: sequence, origin: origin)
    }
  }

  /// Forgets everything up to a horizon. Returns false if there is nothing to do: everything that was noted since the
  /// last call has a later sequence than its horizon.
  @discardableResult
  mutating func forget(upTo horizon: Int) -> Bool {
    guard horizon != self.horizon else { return false }
    self.horizon = horizon
    if !rejected.isEmpty || !models.isEmpty || !elements.isEmpty { revision += 1 }
    if !rejected.isEmpty { rejected = rejected.filter { $0.value > horizon } }
    if !models.isEmpty { models = models.filter { $0.value.sequence > horizon } }
    for (key, var history) in elements {
      history.forget(upTo: horizon)
      elements[key] = history.isEmpty ? nil : history
    }
    return true
  }

  /// Describes what must not be the case, a line for each; empty if all is well.
  ///
  /// - Parameter sequence: the sequence of the scope.
  func checkInvariants(at sequence: Int) -> [String] {
    var problems: [String] = []
    let (first, last) = ((horizon ?? -1) + 1, sequence + 1)
    for (uuid, entry) in models {
      if entry.model.uuid != uuid { problems.append("\(uuid.wireText) is noted for another model") }
      if !(first...last).contains(entry.sequence) {
        problems.append("\(uuid.wireText) has left at \(entry.sequence), not in \(first)...\(last)")
      }
    }
    for (uuid, place) in rejected where !(first...last).contains(place) {
      problems.append("\(uuid.wireText) was rejected up to \(place), not in \(first)...\(last)")
    }
    for (key, history) in elements where !history.isWithin(first...last) {
      problems.append(
        "the history of \(key.name) of \(key.uuid.wireText) is not in \(first)...\(last)")
    }
    return problems
  }
}

/// The models that come and go with one submission.
struct Passage {
  /// True while a submission is being applied: only then are models noted.
  private(set) var isOpen = false
  /// The number of times that a model has come or gone.
  private(set) var modelCount = 0
  /// The models that have come in.
  private(set) var arrived: [any HostedModel] = []
  /// The models that have left the tree.
  private(set) var left: [any HostedModel] = []
  /// Those of them that clients had.
  private(set) var lost: [any HostedModel] = []
  /// The models of unknown classes that were brought back: some session may not have them.
  private(set) var returned: Set<UUID> = []

  /// Begins with the next submission.
  mutating func open() { self = Passage(isOpen: true) }

  mutating func noteArrival(_ model: any HostedModel) {
    guard isOpen else { return }
    modelCount += 1
    arrived.append(model)
  }

  mutating func noteArrivals<Model: HostedModel>(_ models: [Model]) {
    guard isOpen else { return }
    modelCount += models.count
    if arrived.isEmpty { arrived.reserveCapacity(models.count) }
    for model in models { arrived.append(model) }
  }

  mutating func noteLeaving(_ model: any HostedModel, wasHidden: Bool) {
    guard isOpen else { return }
    modelCount += 1
    left.append(model)
    if !wasHidden { lost.append(model) }
  }

  /// Notes the models of unknown classes that are there now; `before` are those that were there. Models that were objects
  /// until now do not count.
  mutating func noteUnknown(_ now: Set<UUID>, before: Set<UUID>) {
    // Mostly they are one and the same set.
    returned = now == before ? [] : now.subtracting(before).subtracting(left.map(\.uuid))
  }

  /// Ends with the submission, and lets go of the models that have left: from here on the tombstones hold them.
  mutating func close() { (isOpen, left, lost) = (false, [], []) }
}
