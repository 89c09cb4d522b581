import Foundation
import Jetstream

/// A scope as a change set would leave it, before anything is changed.
///
/// It holds the models that the change set is about, and looks at all others where they are.
final class TentativeScope {
  private let content: any HostedContent
  /// Knows the models that have left and may come back.
  private let memory: any ContentMemory
  private let hasUnknownModels: Bool
  // No access to these is open while other code runs: they are read and appended to, and no closure is called with them.
  /// The models that fragments write, in the order of the first of these, and then all others that were asked for.
  @exclusivity(unchecked) private var models: TentativeModels
  /// The number of models that fragments write.
  @exclusivity(unchecked) private(set) var writtenCount = 0
  /// The fragments with properties or of classes that the scope does not know.
  @exclusivity(unchecked) private(set) var unknown: [Int] = []
  /// The reason why the rules for the difference that is judged cannot decide, such as the first value that was read and
  /// that is not of the type that the reader has expected; nil if there is none.
  @exclusivity(unchecked) var misreading: String?
  private let fragments: [SyncFragment]
  /// The number of fragments that were read: first the additions, then the changes.
  @exclusivity(unchecked) private var readCount = 0

  /// Makes a scope that knows nothing of the change set yet; see ``read(_:)``.
  init(
    of fragments: [SyncFragment], in content: any HostedContent,
    memory: any ContentMemory
  ) {
    (self.content, self.memory, self.fragments) = (content, memory, fragments)
    hasUnknownModels = content.hasUnknownModels
    models = TentativeModels(capacity: fragments.count)
  }

  /// Goes on with reading the fragments, in the order in which they are applied. Returns true once all are read, before
  /// which nothing else may be asked.
  func read(_ budget: inout WorkBudget) -> Bool {
    let part = budget.take(from: readCount, to: 2 * fragments.count)
    // They are read where they stand: a copy of each would be retained for nothing.
    for place in part {
      let index = place < fragments.count ? place : place - fragments.count
      let kind: SyncFragment.Kind = place < fragments.count ? .add : .change
      if fragments[index].kind == kind { take(index, of: fragments) }
    }
    readCount = part.upperBound
    if hasRead { writtenCount = models.count }
    return hasRead
  }

  /// True once all fragments were read.
  var hasRead: Bool { readCount == 2 * fragments.count }

  /// True if models of the scope are given values, and nothing else is done: then no model comes, moves or leaves.
  var writesOnlyValues: Bool {
    unknown.isEmpty && (0..<writtenCount).allSatisfy { models[$0].getsOnlyValues }
  }

  private func take(_ index: Int, of fragments: [SyncFragment]) {
    guard let model = self[fragments[index].uuid] ?? made(by: fragments[index]) else {
      return unknown.append(index)
    }
    if !model.take(index, of: fragments) || isKept(model) { unknown.append(index) }
  }

  private func made(by addition: SyncFragment) -> TentativeModel? {
    guard addition.kind == .add, let schema = content.schema(named: addition.className) else {
      return nil
    }
    let model = TentativeModel(addition.uuid, schema, current: nil, isShared: false)
    models.append(model)
    return model
  }

  /// Returns a model that fragments write; `index` is less than ``writtenCount``.
  func written(at index: Int) -> TentativeModel { models[index] }

  /// The UUID of the root; nil if the scope has none.
  var rootUUID: UUID? { content.root?.uuid }

  /// The root; nil if the scope has none.
  var root: TentativeModel? { rootUUID.flatMap { self[$0] } }

  /// A model of the scope, or one that is gone, added or kept without an object; nil if there is none, or if its class is
  /// unknown.
  subscript(uuid: UUID) -> TentativeModel? {
    if let known = models[uuid] { return known }
    if let shared = content.sharedModel(uuid) { return note(shared, isShared: true) }
    let hidden = content.model(uuid) ?? memory.departed(uuid) ?? kept(uuid)
    return hidden.map { note($0, isShared: false) }
  }

  private func note(_ current: any HostedModel, isShared: Bool) -> TentativeModel {
    let model = TentativeModel(
      current.uuid, current.classSchema, current: current, isShared: isShared)
    models.append(model)
    return model
  }

  /// Returns a model of a known class to which unknown content refers, and which the scope keeps without an object; nil if
  /// there is none.
  private func kept(_ uuid: UUID) -> (any HostedModel)? {
    guard hasUnknownModels, let addition = content.unknownModel(uuid),
      let schema = content.schema(named: addition.className),
      content.unknownModelUUIDs().contains(uuid)
    else { return nil }
    return KeptModel(addition, schema)
  }

  /// Returns true for a model that the scope keeps without an object, and that the change set does not add again.
  private func isKept(_ model: TentativeModel) -> Bool {
    hasUnknownModels && !model.isShared && model.addition == nil && model.current is KeptModel
  }

  /// Returns true for a model that the scope keeps without knowing its class.
  func isUnknown(_ uuid: UUID) -> Bool {
    guard hasUnknownModels, let addition = content.unknownModel(uuid) else { return false }
    return content.schema(named: addition.className) == nil
  }

  /// Returns the synced properties, and the entries of dictionaries, that hold a model now. Cost: O(n) in these, once.
  func holders(of model: TentativeModel) -> [PropertyKey] {
    if let known = model.holders { return known }
    let found = model.isShared ? model.current.map { content.holders(of: $0) } ?? [] : []
    model.holders = found
    return found
  }

  /// Returns true if a property of a model with a UUID holds a model now. Cost: O(n) in the holders of the model, once.
  func isHeld(_ model: TentativeModel, by uuid: UUID, _ name: String) -> Bool {
    let holders = holders(of: model)
    // Few are compared one by one.
    if holders.count <= 8 { return holders.contains { $0.name == name && $0.uuid == uuid } }
    let set = model.holderSet ?? Set(holders)
    model.holderSet = set
    return set.contains(PropertyKey(uuid: uuid, name: name))
  }
}
