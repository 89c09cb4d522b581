/// Follows the properties that some code has read, on any number of models, and is notified in each
/// tick in which one of them has changed.
class Follower {
  private var nodes: ContiguousArray<FollowerNode> = []
  /// True while the follower waits to be served in a tick.
  final var isTriggered = false

  deinit { stop() }

  /// True while the follower is still needed.
  var isLive: Bool { true }

  /// Called once in each tick in which a followed property has changed, before any observer is
  /// called.
  func readsChanged(_ delivery: inout Delivery) {}

  /// Called instead of `readsChanged` when the follower is found not to be live any more.
  func end() { stop() }

  /// True while a followed property has a change that waits for the next tick.
  final var isOutdated: Bool {
    nodes.contains { $0.record?.dirty.intersects($0.properties) ?? false }
  }

  /// The number of followed models.
  final var count: Int { nodes.count }

  /// Follows exactly these reads from now on. Changes that were made before the call are in the values that were
  /// read, and do not count, unless the same reads were followed before: then the follower is still notified of them.
  ///
  /// - Parameter ticker: The ticker that delivers for models that are in no scope.
  final func follow(_ reads: [ReadTracker.Read], ticker: @autoclosure () -> Ticker?) {
    let wanted = grouped(reads)
    if wanted.elementsEqual(
      nodes, by: { $0.record === $1.record && $0.properties == $1.properties })
    {
      return
    }
    stop()
    let moment = ObservationClock.next()
    for (record, properties) in wanted {
      let node = FollowerNode(self, properties: properties, since: moment)
      nodes.append(node)
      if record.tree == nil, record.ownTicker == nil { record.ownTicker = ticker() }
      record.add(node)
    }
  }

  /// Stops following everything.
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
      // Reads of a single model, the usual case, need no table.
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

/// The node of a ``Follower`` on one model.
private final class FollowerNode: ChangeNode {
  /// Unowned: a follower ends its nodes before it is released.
  private unowned(unsafe) var follower: Follower?
  /// The moment from which changes count.
  private let madeAt: Int

  init(_ follower: Follower, properties: PropertySet, since moment: Int) {
    self.follower = follower
    madeAt = moment
    super.init(observer: nil, properties: properties)
  }

  func end() {
    follower = nil
    cancel()
  }

  override func propertiesChanged(
    _ dirty: PropertySet, at moment: Int, _ delivery: inout Delivery
  ) {
    if madeAt <= moment, let follower { delivery.trigger(follower) }
  }
}
