import Foundation
import Jetstream

/// A scope as a change set would leave it, before anything is changed.
///
/// It holds the models that the change set is about, and looks at all others where they are. Cost to make it: O(n) in the
/// fragments.
final class TentativeScope {
  private let content: any HostedContent
  /// Finds models that have left and may come back.
  private let departed: (UUID) -> (any HostedModel)?
  private var models: [UUID: TentativeModel] = [:]
  /// The properties that hold models, as far as that was asked.
  private var held: [UUID: Set<PropertyKey>] = [:]
  /// The models that fragments write, in the order of the first of these.
  private(set) var written: [TentativeModel] = []
  /// The fragments with properties or of classes that the scope does not know.
  private(set) var unknown: [Int] = []
  /// The first value that was read and that is not of the type that the reader has expected; nil if there is none.
  var misreading: String?

  init(
    of fragments: [SyncFragment], in content: any HostedContent,
    departed: @escaping (UUID) -> (any HostedModel)?
  ) {
    (self.content, self.departed) = (content, departed)
    // In the order in which they are applied.
    for (index, fragment) in fragments.enumerated() where fragment.kind == .add {
      take(fragment, at: index)
    }
    for (index, fragment) in fragments.enumerated() where fragment.kind == .change {
      take(fragment, at: index)
    }
  }

  private func take(_ fragment: SyncFragment, at index: Int) {
    guard let model = self[fragment.uuid] ?? made(by: fragment) else {
      return unknown.append(index)
    }
    if !model.isWritten { written.append(model) }
    if !model.take(fragment, at: index) { unknown.append(index) }
  }

  private func made(by addition: SyncFragment) -> TentativeModel? {
    guard addition.kind == .add, let schema = content.schema(named: addition.className) else {
      return nil
    }
    let model = TentativeModel(addition.uuid, schema, current: nil, isShared: false)
    models[addition.uuid] = model
    return model
  }

  /// The root; nil if the scope has none.
  var root: TentativeModel? { content.root.flatMap { self[$0.uuid] } }

  /// A model of the scope, or one that is gone or added; nil if there is none, or if its class is unknown.
  subscript(uuid: UUID) -> TentativeModel? {
    if let known = models[uuid] { return known }
    let shared = content.sharedModel(uuid)
    guard let current = shared ?? content.model(uuid) ?? departed(uuid) else { return nil }
    let model = TentativeModel(
      uuid, current.classSchema, current: current, isShared: shared != nil)
    models[uuid] = model
    return model
  }

  /// Returns true for a model that the scope keeps without knowing its class.
  func isUnknown(_ uuid: UUID) -> Bool { content.unknownModel(uuid) != nil }

  /// Returns the synced properties, and the entries of dictionaries, that hold a model now.
  func holders(of model: TentativeModel) -> [PropertyKey] {
    guard model.isShared, let current = model.current else { return [] }
    return content.holders(of: current)
  }

  /// Returns true if a property holds a model now. Cost: O(n) in the holders of the model, once.
  func isHeld(_ model: TentativeModel, by key: PropertyKey) -> Bool {
    if let known = held[model.uuid] { return known.contains(key) }
    let holders = Set(holders(of: model))
    held[model.uuid] = holders
    return holders.contains(key)
  }
}
