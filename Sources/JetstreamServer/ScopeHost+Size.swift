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
  /// Returns the limit that the additions of a change set would exceed, on the size of a scope or on the memory of the
  /// process; nil if it may be judged. Changes go on as far as there is ``room(in:)`` for them, and removals make room.
  ///
  /// - Parameter bytes: the size of its fragments.
  func limit(exceededBy sync: ScopeSync, of bytes: Int, in host: ScopeHost) -> ServerLimit? {
    let (mostModels, mostBytes) = (
      configuration.limits.modelsPerScope, configuration.limits.bytesPerScope
    )
    if isShortOfMemory, host.arrivals(by: sync.fragments, upTo: 0) > 0 { return .residentBytes }
    if mostModels == nil, mostBytes == nil { return nil }
    let models = host.modelCount
    // A model that has left comes back with a single insertion, with all models below it.
    let mostArrivals = sync.fragments.count + host.tombstones.models.count
    let mayBeTooMany = mostModels.map { models + mostArrivals > $0 } ?? false
    let isTooLarge = mostBytes.map { host.stream.estimatedBytes(of: models) + bytes > $0 } ?? false
    guard mayBeTooMany || isTooLarge else { return nil }
    let room = mostModels.map { max(0, $0 - models) } ?? 0
    let arrivals = host.arrivals(by: sync.fragments, upTo: room)
    if arrivals == 0 { return nil }
    if mostModels != nil, arrivals > room { return .modelsPerScope }
    return isTooLarge ? .bytesPerScope : nil
  }

  /// Returns the room for longer values in a scope; nil if there is no limit on it.
  func room(in host: ScopeHost) -> ScopeHost.Room? {
    if isShortOfMemory { return ScopeHost.Room(bytes: 0, limit: .residentBytes) }
    return configuration.limits.bytesPerScope.map { most in
      let size = host.stream.estimatedBytes(of: host.modelCount)
      return ScopeHost.Room(bytes: max(0, most - size), limit: .bytesPerScope)
    }
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
