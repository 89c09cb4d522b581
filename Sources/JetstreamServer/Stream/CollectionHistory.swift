import Foundation
import Jetstream

/// The elements recently inserted into and removed from one collection, for submissions of sessions that may not have
/// seen these changes. Events that every session has seen are dropped.
struct CollectionHistory {
  private struct Event {
    let sequence: Int
    /// The session that made the change and certainly knows of it; nil if there is none.
    let origin: Int?
  }

  private var inserted: [UUID: Event] = [:]
  private var removed: [UUID: Event] = [:]

  var isEmpty: Bool { inserted.isEmpty && removed.isEmpty }

  mutating func note(from old: [UUID], to new: [UUID], sequence: Int, origin: Int?) {
    let (oldList, newList) = (UUIDList(old), UUIDList(new))
    let event = Event(sequence: sequence, origin: origin)
    let come = new.filter { !oldList.contains($0) }
    let gone = old.filter { !newList.contains($0) }
    // A table that would grow no more than once is left as it is: otherwise each call could cost O(n) in all elements.
    if come.count > inserted.count / 2 { inserted.reserveCapacity(inserted.count + come.count) }
    if gone.count > removed.count / 2 { removed.reserveCapacity(removed.count + gone.count) }
    for uuid in come {
      inserted[uuid] = event
      if !removed.isEmpty { removed[uuid] = nil }
    }
    for uuid in gone {
      removed[uuid] = event
      if !inserted.isEmpty { inserted[uuid] = nil }
    }
  }

  /// Notes the insertions and removals among `operations`. An operation that had no effect is noted as well, which errs
  /// on the side that loses nothing.
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

  /// Returns whether a session that has seen everything up to the sequence `proven` knows that the element was
  /// inserted.
  func knowsInsertion(of uuid: UUID, session: Int, proven: Int) -> Bool {
    guard let event = inserted[uuid] else { return true }
    return event.sequence <= proven || event.origin == session
  }

  /// Returns whether another session removed the element and this session cannot have seen that yet.
  func missedRemoval(of uuid: UUID, session: Int, proven: Int) -> Bool {
    guard let event = removed[uuid] else { return false }
    return event.sequence > proven && event.origin != session
  }

  /// Returns whether other sessions have removed elements after a sequence.
  private func hasRemoval(after sequence: Int, by session: Int) -> Bool {
    removed.values.contains { $0.sequence > sequence && $0.origin != session }
  }

  /// Returns true if all events have a sequence in a range.
  func isWithin(_ range: ClosedRange<Int>) -> Bool {
    inserted.values.allSatisfy { range.contains($0.sequence) }
      && removed.values.allSatisfy { range.contains($0.sequence) }
  }

  /// Drops the events up to `horizon`, which every session has seen.
  mutating func forget(upTo horizon: Int) {
    inserted = inserted.filter { $0.value.sequence > horizon }
    removed = removed.filter { $0.value.sequence > horizon }
  }

  /// Returns the value of the collection after a session submits a whole array.
  ///
  /// An element that is missing from the array counts as removed only if the session knew it. An element that another
  /// session removed without this session's knowledge stays removed.
  ///
  /// - Parameters:
  ///   - proven: the sequence up to which the session has provably seen everything.
  ///   - received: the sequence up to which the session's WebSocket has received everything; see ``ScriptProbe``.
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
      // The session had the elements that the submission names. If it had no others, leaving out the rest is the
      // change: otherwise the session would have submitted the array that it already had, and clients submit only
      // changes.
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
    // The array before the session's change: the known elements in the server's order, each retained element behind the
    // element that it follows in the submission.
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
    return CollectionContent.merge(base: current, before: before, after: submitted)
  }
}
