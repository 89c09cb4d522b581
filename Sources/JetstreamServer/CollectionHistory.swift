import Foundation
import Jetstream

/// Which elements came to a collection and left it lately, for submissions by sessions that could
/// not have known. What every session knows is forgotten.
struct CollectionHistory {
  private struct Event {
    let sequence: Int
    /// The session that did it; nil for the server itself.
    let origin: Int?
  }

  private var inserted: [UUID: Event] = [:]
  private var removed: [UUID: Event] = [:]

  var isEmpty: Bool { inserted.isEmpty && removed.isEmpty }

  mutating func note(from old: [UUID], to new: [UUID], sequence: Int, origin: Int?) {
    let oldSet = Set(old)
    let newSet = Set(new)
    let event = Event(sequence: sequence, origin: origin)
    for uuid in new where !oldSet.contains(uuid) {
      inserted[uuid] = event
      removed[uuid] = nil
    }
    for uuid in old where !newSet.contains(uuid) {
      removed[uuid] = event
      inserted[uuid] = nil
    }
  }

  /// The same for operations. One that had no effect counts as if it had some, which errs to the side on
  /// which nothing is lost.
  mutating func note(_ operations: [PropertyOperation], sequence: Int, origin: Int?) {
    let event = Event(sequence: sequence, origin: origin)
    for operation in operations {
      switch operation {
      case .insert(let uuid, _): (inserted[uuid], removed[uuid]) = (event, nil)
      case .remove(let uuid): (removed[uuid], inserted[uuid]) = (event, nil)
      case .move, .add: break
      }
    }
  }

  /// Whether a session that has seen everything up to `proven` knows that the element is there.
  func knowsInsertion(of uuid: UUID, session: Int, proven: Int) -> Bool {
    guard let event = inserted[uuid] else { return true }
    return event.sequence <= proven || event.origin == session
  }

  /// Whether the element was removed by somebody else, and the session cannot have known.
  func missedRemoval(of uuid: UUID, session: Int, proven: Int) -> Bool {
    guard let event = removed[uuid] else { return false }
    return event.sequence > proven && event.origin != session
  }

  /// Whether other sessions have removed elements after a sequence number.
  private func hasRemoval(after sequence: Int, by session: Int) -> Bool {
    removed.values.contains { $0.sequence > sequence && $0.origin != session }
  }

  /// Forgets what every session has seen.
  mutating func forget(upTo horizon: Int) {
    inserted = inserted.filter { $0.value.sequence > horizon }
    removed = removed.filter { $0.value.sequence > horizon }
  }

  /// What a submitted whole array does to the collection.
  ///
  /// An element that is missing from it counts as removed only if the session knew it; one that was
  /// removed by somebody else, without the session's knowledge, stays removed.
  ///
  /// - Parameters:
  ///   - proven: the sequence number up to which the session knew everything.
  ///   - received: the one up to which its WebSocket has received everything; see ``ScriptProbe``.
  func merge(
    current: [UUID], submitted: [UUID], session: Int, proven: Int, received: Int = 0
  ) -> [UUID] {
    if isEmpty { return submitted }
    let currentSet = Set(current)
    let retained = Set(
      submitted.filter {
        !currentSet.contains($0) && missedRemoval(of: $0, session: session, proven: proven)
      })
    let known = current.filter { knowsInsertion(of: $0, session: session, proven: proven) }
    if retained.isEmpty, known.count == current.count { return submitted }
    if received > proven, retained.isEmpty, !hasRemoval(after: proven, by: session) {
      // What the submission names the session had. If that is all, the rest makes the change: without it the
      // session would have submitted what it had already, and clients submit changes.
      let named = submitted.compactMap { inserted[$0] }
        .filter { $0.origin != session && $0.sequence <= received }.map(\.sequence).max()
      let had = current.filter {
        knowsInsertion(of: $0, session: session, proven: max(proven, named ?? 0))
      }
      if submitted == had {
        return merge(current: current, submitted: submitted, session: session, proven: received)
      }
    }
    var before: [UUID] = []
    var rest = known[...]
    // What the session took over from before: the known elements in the server's order, with the
    // retained ones behind the element that they follow in the submission.
    let knownSet = Set(known)
    var following: [UUID?: [UUID]] = [:]
    var anchor: UUID?
    for uuid in submitted {
      if retained.contains(uuid) {
        following[anchor, default: []].append(uuid)
      } else if knownSet.contains(uuid) {
        anchor = uuid
      }
    }
    before.append(contentsOf: following[nil] ?? [])
    while let next = rest.popFirst() {
      before.append(next)
      before.append(contentsOf: following[next] ?? [])
    }
    return CollectionMerge.merge(base: current, before: before, after: submitted)
  }
}
