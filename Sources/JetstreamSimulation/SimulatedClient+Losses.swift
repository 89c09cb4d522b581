import Foundation
import Jetstream

/// A part of a change set that has no effect, which its client's ledger has to contain.
struct KnownLoss {
  let set: SubmittedSet
  let loss: SubmittedSet.Loss
  /// The UUID of the root before the server has given it another one.
  let ownRoot: String

  /// Returns true if a later change says what the value is to be instead. `root` is the present UUID of the
  /// root.
  func isSettled(by intent: SubmittedSet.Intent, root: String) -> Bool {
    func name(_ uuid: String) -> String { uuid == ownRoot ? root : uuid }
    guard name(intent.uuid) == name(loss.uuid) else { return false }
    guard let property = loss.property else { return intent.isAddition }
    return intent.values[property] != nil || intent.operations[property] != nil
  }
}

extension [KnownLoss] {
  /// Removes the losses that a new change set settles by what it writes.
  mutating func settle(by set: SubmittedSet, root: String) {
    removeAll { loss in set.intents.contains { loss.isSettled(by: $0, root: root) } }
  }

  /// Removes a loss whose conflict the app has discarded.
  mutating func discard(_ name: ConflictName, root: String) {
    discard(
      set: name.changeSet.uuidString.lowercased(), model: name.model.uuidString.lowercased(),
      property: name.property, root: root)
  }

  mutating func discard(set: String?, model: String?, property: String?, root: String) {
    let at = firstIndex { known in
      let uuid = known.loss.uuid
      return known.set.id.uuidString.lowercased() == set && known.loss.property == property
        && (uuid == model || uuid == known.ownRoot && model == root)
    }
    if let at { remove(at: at) }
  }
}

extension ChangeSetHandle.Outcome {
  /// The type of the error; nil if the fragment was not rejected.
  var errorType: String? { if case .rejected(let error) = self { error.type } else { nil } }
}

/// The app's handling of conflicts.
extension SimulatedClient {
  /// Discards a conflict or retries it, and returns a description of what it did.
  func lookAtConflicts(_ pick: Int) -> String {
    let items = scope.conflicts.items
    guard !items.isEmpty else { return "has no conflict" }
    let item = items[pick % items.count]
    let name =
      "\(item.property ?? "the addition") of \(item.model.uuidString.lowercased().prefix(8))"
    if pick.isMultiple(of: 2) {
      scope.conflicts.discard(item.id)
      for part in item.parts { losses.discard(ConflictName(part), root: root) }
      return "lets go of \(name)"
    }
    let before = scope.conflicts.items.flatMap(\.parts)
    scope.retry([item])
    let left = Set(scope.conflicts.items.flatMap(\.parts).map(\.id))
    let retried = Set(item.parts.map(\.id))
    let sets = Set(item.parts.map(\.changeSet))
    // Additions that the retried changes name, and the other halves of moves, are made with them. What is made is
    // visible in any case, but nothing of it is sent while only local properties hold its model.
    for part in before
    where (retried.contains(part.id) || part.property == nil || sets.contains(part.changeSet))
      && !left.contains(part.id) && isThere(part.model)
    {
      losses.discard(ConflictName(part), root: root)
    }
    return "does \(name) again"
  }

  /// Returns true if the scope has the model, of whatever class it is.
  private func isThere(_ model: UUID) -> Bool {
    scope.model(model) != nil || scope.unknownModels.contains { $0.uuid == model }
  }
}

/// The ledger of conflicts, compared with what the server has decided.
extension SimulatedClient {
  /// Returns where the ledger differs from what was lost.
  ///
  /// - Parameter overwritten: the writes that others have overwritten unseen; nil if they are unknown.
  func wrongConflicts(overwritten: [KnownLoss]?) -> [String] {
    let root = root
    func words(_ what: String, _ set: UUID, _ uuid: String, _ property: String?) -> String {
      let model = uuid == ownRoot || uuid == root ? "the root" : uuid
      return "\(what): \(property ?? "the addition") of \(model) in \(set)"
    }
    var missing: [String: Int] = [:]
    for known in losses {
      let what = known.loss.isRejected ? "rejected" : "lost"
      missing[words(what, known.set.id, known.loss.uuid, known.loss.property), default: 0] += 1
    }
    for known in overwritten ?? [] {
      missing[
        words("overwritten", known.set.id, known.loss.uuid, known.loss.property), default: 0] += 1
    }
    var wrong: [String] = misplacedConsequences()
    for item in scope.conflicts.items.flatMap(\.parts) {
      let what: String
      switch item.reason {
      case .rejected: what = "rejected"
      case .overwritten:
        if overwritten == nil { continue }
        what = "overwritten"
      case .modified, .moveLost: what = "lost"
      }
      let key = words(
        what, item.changeSet, item.model.uuidString.lowercased(), item.property)
      if let count = missing[key], count > 0 {
        missing[key] = count - 1
      } else {
        wrong.append("client \(number) has a conflict that is none: \(key)")
      }
    }
    for known in overwritten ?? [] where mayHaveForgotten(known.set) {
      missing[words("overwritten", known.set.id, known.loss.uuid, known.loss.property)] = nil
    }
    for (key, count) in missing where count > 0 {
      wrong.append("client \(number) has no conflict of what was \(key)")
    }
    return wrong.sorted()
  }

  /// Returns where a consequence is in the wrong place: what the server has rejected because of another
  /// fragment must be a consequence of that fragment's conflict until that one is settled, and of nothing else.
  private func misplacedConsequences() -> [String] {
    let root = root
    func isOf(_ conflict: Conflict, _ known: KnownLoss) -> Bool {
      let uuid = conflict.model.uuidString.lowercased()
      return known.set.id == conflict.changeSet && known.loss.property == conflict.property
        && (uuid == known.loss.uuid || known.loss.uuid == known.ownRoot && uuid == root)
    }
    var wrong: [String] = []
    for item in scope.conflicts.items {
      guard let own = losses.first(where: { isOf(item, $0) }) else { continue }
      // A server that has forgotten the reasons cannot tell which one has caused others.
      if case .rejected(.reasonForgotten) = item.reason { continue }
      // What settles a part of the cause may have settled the conflict that had the consequences.
      func isOfCause(_ loss: SubmittedSet.Loss) -> Bool { loss.position == own.loss.cause }
      let known = losses.count { $0.set === own.set && isOfCause($0.loss) }
      let isOpen = own.loss.cause != nil && known == own.set.losses.count(where: isOfCause)
      if isOpen { wrong.append("client \(number) has a consequence as a conflict: \(item)") }
      for part in item.consequences {
        guard let known = losses.first(where: { isOf(part, $0) }) else { continue }
        if known.set !== own.set || known.loss.cause != own.loss.position {
          wrong.append("client \(number) has a consequence of something else: \(part)")
        }
      }
    }
    return wrong
  }

  /// Returns true if so many later change sets of its own were accepted that the client need not remember what
  /// this one has written.
  private func mayHaveForgotten(_ set: SubmittedSet) -> Bool {
    // A server that has lost its history removes nothing from what the client remembers.
    let later = setsByID.values.count {
      $0.place > set.place && $0.verdicts?.contains(true) == true
    }
    return later >= rememberedWrites
  }
}
