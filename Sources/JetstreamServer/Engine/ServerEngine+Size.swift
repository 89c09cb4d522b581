import Foundation
import Jetstream

/// The limits on the sizes of scopes.
extension ServerEngine {
  /// Returns the limit that the additions of a change set would exceed, on the size of a scope or on the memory of the
  /// process; nil if it may be judged. Changes go on as far as there is ``room(in:)`` for them, and removals make room.
  ///
  /// - Parameters:
  ///   - bytes: the size of its fragments.
  ///   - effort: grows by the number of models that were looked at below those that the fragments name.
  private func limit(
    exceededBy sync: ScopeSync, of bytes: Int, in host: ScopeHost, _ effort: inout Int
  ) -> ServerLimit? {
    let (mostModels, mostBytes) = (
      configuration.limits.modelsPerScope, configuration.limits.bytesPerScope
    )
    if isShortOfMemory, host.order.arrivals(by: sync.fragments, upTo: 0, &effort) > 0 {
      return .residentBytes
    }
    if mostModels == nil, mostBytes == nil { return nil }
    let models = host.order.modelCount
    let mostArrivals = host.order.mostArrivals(by: sync.fragments)
    let mayBeTooMany = mostModels.map { models + mostArrivals > $0 } ?? false
    let isTooLarge =
      mostBytes.map { host.order.stream.estimatedBytes(of: models) + bytes > $0 } ?? false
    guard mayBeTooMany || isTooLarge else { return nil }
    let room = mostModels.map { max(0, $0 - models) } ?? 0
    let arrivals = host.order.arrivals(by: sync.fragments, upTo: room, &effort)
    if arrivals == 0 { return nil }
    if mostModels != nil, arrivals > room { return .modelsPerScope }
    return isTooLarge ? .bytesPerScope : nil
  }

  /// Returns the limit that the additions of a session's change set would exceed, after another look at a scope that seems to
  /// be full. Each such look at a part of the scope, and at models that would come back, is charged to the session, like the
  /// effort of a change set.
  ///
  /// - Parameter session: the session; nil if it has ended or left the scope.
  func limit(
    exceededBy sync: ScopeSync, of bytes: Int, from session: ServerSession?, in host: ScopeHost
  ) -> ServerLimit? {
    var effort = 0
    defer { if let session { note(effort: effort, of: session) } }
    let first = limit(exceededBy: sync, of: bytes, in: host, &effort)
    guard first == .bytesPerScope else { return first }
    let read = host.order.measureForRefusal()
    if read == 0 { return first }
    effort += read
    return limit(exceededBy: sync, of: bytes, in: host, &effort)
  }

  /// Returns the room for models and longer values in a scope; nil if there is no limit on it.
  func room(in host: ScopeHost) -> ScopeOrder.Room? {
    if isShortOfMemory { return ScopeOrder.Room(bytes: 0, limit: .residentBytes) }
    return host.order.sizeRoom.map { ScopeOrder.Room(bytes: $0, limit: .bytesPerScope) }
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
