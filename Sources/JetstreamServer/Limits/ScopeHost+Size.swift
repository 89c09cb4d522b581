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

  /// Returns the approximate size of the full state in bytes: as many times the average of the last measurement as
  /// there are models, so that additions and removals count at once; 0 if it was not measured yet. Cost: O(1).
  func estimatedBytes(of models: Int) -> Int {
    stream.bytesPerModel.map { Int(min($0 * Double(models), 1e18)) } ?? 0
  }
}

extension ServerEngine {
  /// Returns the limit on the size of a scope that a change set would exceed; nil if it may be applied. Only what adds
  /// models is refused: changes go on, and so do removals, which make room.
  ///
  /// - Parameter bytes: the size of its fragments.
  func limit(exceededBy sync: ScopeSync, of bytes: Int, in host: ScopeHost) -> ServerLimit? {
    let (mostModels, mostBytes) = (
      configuration.limits.modelsPerScope, configuration.limits.bytesPerScope
    )
    if mostModels == nil, mostBytes == nil { return nil }
    let models = host.modelCount
    let mayBeTooMany = mostModels.map { models + sync.fragments.count > $0 } ?? false
    let isTooLarge = mostBytes.map { host.estimatedBytes(of: models) + bytes > $0 } ?? false
    guard mayBeTooMany || isTooLarge else { return nil }
    let additions = sync.fragments.count {
      $0.kind == .add && host.content.sharedModel($0.uuid) == nil
    }
    if additions == 0 { return nil }
    if let mostModels, models + additions > mostModels { return .modelsPerScope }
    return isTooLarge ? .bytesPerScope : nil
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
