import Foundation
import Jetstream

/// The size of a scope, for the limits on it.
extension ScopeHost {
  /// The number of models, with those of unknown classes and those that only local properties of the app hold.
  /// Cost: O(1).
  var modelCount: Int {
    switch content {
    case let rows as RowsContent: rows.document.count
    case let models as ModelContent: models.scope.count + models.scope.unknownModelCount
    default: 0
    }
  }

  /// Returns the number of models that fragments would bring in: those that they add, and those that have left and that
  /// they name, with all below them. Cost: O(n) in the fragments and in the result, which is not counted beyond one more
  /// than `most`.
  func arrivals(by fragments: [SyncFragment], upTo most: Int) -> Int {
    let added = Set(fragments.lazy.filter { $0.kind == .add }.map(\.uuid))
    var open = fragments.flatMap { fragment in
      (fragment.kind == .add ? [fragment.uuid] : [])
        + fragment.operations.flatMap { FragmentValidator.inserted(by: $0.operations) }
        + fragment.properties.flatMap { FragmentValidator.uuids(in: $0.value) }
    }
    var found: Set<UUID> = []
    while found.count <= most, let uuid = open.popLast() {
      guard !found.contains(uuid), content.sharedModel(uuid) == nil else { continue }
      if let model = departed(uuid) {
        found.insert(uuid)
        content.forEachChild(of: model) { open.append($0) }
      } else if added.contains(uuid) {
        found.insert(uuid)
      }
    }
    return found.count
  }
}

extension ServerEngine {
  /// Returns the limit that a change set would exceed, on the size of a scope or on the memory of the process; nil if it may
  /// be applied. Refused is what adds models, or makes values and collections longer: other changes go on, and so do
  /// removals, which make room.
  ///
  /// - Parameter bytes: the size of its fragments.
  func limit(exceededBy sync: ScopeSync, of bytes: Int, in host: ScopeHost) -> ServerLimit? {
    let (fragments, limits) = (sync.fragments, configuration.limits)
    if isShortOfMemory, host.arrivals(by: fragments, upTo: 0) > 0 || host.growth(by: fragments) > 0
    {
      return .residentBytes
    }
    if limits.modelsPerScope == nil, limits.bytesPerScope == nil { return nil }
    let models = host.modelCount
    // A model that has left comes back with a single insertion, with all models below it.
    let mostArrivals = fragments.count + host.tombstones.models.count
    let mayBeTooMany = limits.modelsPerScope.map { models + mostArrivals > $0 } ?? false
    let size = host.stream.estimatedBytes(of: models)
    let isTooLarge = limits.bytesPerScope.map { size + bytes > $0 } ?? false
    guard mayBeTooMany || isTooLarge else { return nil }
    let room = limits.modelsPerScope.map { max(0, $0 - models) } ?? 0
    let arrivals = host.arrivals(by: fragments, upTo: room)
    if limits.modelsPerScope != nil, arrivals > room { return .modelsPerScope }
    guard isTooLarge, let most = limits.bytesPerScope else { return nil }
    if arrivals > 0 { return .bytesPerScope }
    let growth = host.growth(by: fragments)
    return growth > 0 && size + growth > most ? .bytesPerScope : nil
  }
}

extension ServerEngine.Configuration {
  /// The amount of change sets that each scope keeps, and the size up to which its full state is measured.
  var streamExtent: ScopeStream.Extent {
    var extent = streamLimit
    extent.scopeBytes = limits.bytesPerScope
    return extent
  }
}
