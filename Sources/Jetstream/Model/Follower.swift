/// Follows what some code has read: learns which properties of which models it was, and is told in
/// each tick in which one of them has changed.
class Follower {
  private var nodes: ContiguousArray<FollowerNode> = []
  /// Set while the follower waits for its turn in a tick.
  final var isTriggered = false

  deinit { stop() }

  /// Whether it still matters what it follows.
  var isLive: Bool { true }

  /// Something that was read has changed. Called once in a tick, before any observer is.
  func readsChanged(_ delivery: inout Delivery) {}

  /// Found not to be live any more when it was to be told.
  func end() { stop() }

  /// Whether something that was read has changed since, and waits for the next tick.
  final var isOutdated: Bool {
    nodes.contains { $0.record?.dirty.intersects($0.properties) ?? false }
  }

  /// How many models are followed.
  final var count: Int { nodes.count }

  /// Follows these reads from now on, and none of those before.
  ///
  /// - Parameter ticker: delivers for models that are in no scope.
  final func follow(_ reads: [ReadTracker.Read], ticker: @autoclosure () -> Ticker?) {
    let wanted = grouped(reads)
    if wanted.elementsEqual(
      nodes, by: { $0.record === $1.record && $0.properties == $1.properties })
    {
      return
    }
    stop()
    for (record, properties) in wanted {
      let node = FollowerNode(self, properties: properties)
      nodes.append(node)
      if record.scope == nil, record.ownTicker == nil { record.ownTicker = ticker() }
      record.add(node)
    }
  }

  /// Follows nothing any more.
  final func stop() {
    let old = nodes
    nodes = []
    for node in old { node.end() }
  }

  private func grouped(
    _ reads: [ReadTracker.Read]
  ) -> [(record: ModelRecord, properties: PropertySet)] {
    var places: [ObjectIdentifier: Int] = [:]
    var found: [(record: ModelRecord, properties: PropertySet)] = []
    for read in reads {
      let record = read.model.ensureRecord()
      // What reads one model only, as most do, needs no table.
      if let last = found.last, last.record === record {
        found[found.count - 1].properties.insert(read.index)
        continue
      }
      if places.isEmpty, let first = found.first {
        places[ObjectIdentifier(first.record)] = 0
      }
      let place = places[ObjectIdentifier(record)] ?? found.count
      if place == found.count {
        if !found.isEmpty { places[ObjectIdentifier(record)] = place }
        found.append((record, PropertySet()))
      }
      found[place].properties.insert(read.index)
    }
    return found
  }
}

/// Waits on one model for a ``Follower``.
private final class FollowerNode: ChangeNode {
  /// Unowned: a follower that goes ends its nodes.
  private unowned(unsafe) var follower: Follower?

  init(_ follower: Follower, properties: PropertySet) {
    self.follower = follower
    super.init(observer: nil, properties: properties)
  }

  func end() {
    follower = nil
    cancel()
  }

  override func propertiesChanged(
    _ dirty: PropertySet, at moment: Int, _ delivery: inout Delivery
  ) {
    if let follower { delivery.trigger(follower) }
  }
}
