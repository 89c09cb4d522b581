import Foundation

@testable import Jetstream

/// Observers that change the forest while they are told of a change.
///
/// What an observer does comes after what it is told of, so the reference is always a change ahead of
/// the callbacks. Who is called after it hears of both changes, in whatever order.
extension Forest {
  /// An observer has been told something.
  func called(_ log: ForestLog) {
    guard isArmed, writesLeft > 0, log.isWriter else { return }
    writesLeft -= 1
    isNested = true
    let operation = write()
    history.append("  within: \(operation)")
    // These have several effects of their own, one after the other.
    if case .detach = operation { isArmed = false }
    perform(operation)
    isArmed = true
  }

  /// Does something during which observers write.
  func performArmed(_ operation: ForestOperation) {
    arm { perform(operation) }
  }

  /// A tick in which observers write: what they write belongs to the next one.
  func flushArmed() {
    checkStep()
    reference.collect(0)
    let start = reference
    let before = maybe
    reference.dirty = [:]
    maybe = []
    isFlushing = true
    arm { scope(0).flush() }
    isFlushing = false
    let after = maybe
    maybe = before
    checkDelivery(at: start)
    maybe = after
    checkStep()
    keeper.forgetGone()
    if wrote {
      expect(replica?.hasCollectedChanges != true, "the replica has changes of its own")
    } else {
      compareReplica(isFlushed: true)
    }
    endWriting()
  }

  private func arm(_ body: () -> Void) {
    isArmed = true
    writesLeft = 3
    body()
    isArmed = false
    wrote = isNested
  }

  /// All that observers did is checked.
  func endWriting() {
    isNested = false
    wrote = false
    for watcher in watchers { watcher.isNewborn = false }
  }

  /// What an observer does. It is chosen without regard to what the change around it has done.
  private func write() -> ForestOperation {
    let live = watchers.filter { !$0.isOver }
    switch random(12) {
    case 0, 1, 2: return .plain(someNode(), chance(70) ? .number(random(5)) : .note(random(3)))
    case 3, 4:
      return .reference(someNode(), chance(50) ? .left : .right, chance(70) ? anyNode() : nil)
    case 5: return .list(someNode(), .items, [.append(anyNode())], .inPlace)
    case 6: return .list(someNode(), .others, [.become([anyNode(), anyNode()])], .assigned)
    case 7: return .list(someNode(), .items, [.removeAll], .inPlace)
    case 8: return .detach(someNode())
    case 9: return observation()
    case 10: return live.isEmpty ? observation() : .cancel(live[random(live.count)])
    default: return live.isEmpty ? observation() : .removeObservers(live[random(live.count)])
    }
  }
}
