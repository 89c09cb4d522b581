import Foundation
import Jetstream

/// The links of the fragments of a submission to the additions of models that the scope does not have.
final class FragmentLinks {
  /// The fragments that name an addition, by its index.
  var referrers = IndexLists()
  /// The additions that an addition would hold, by its index.
  var held = IndexLists()
  /// The indices of the additions that a model of the scope would hold.
  var open: [Int] = []
  /// The values of the properties that may hold models, as the last fragment that names each of them gives it.
  var last: [PropertyKey: JSONValue] = [:]
}

/// Lists of indices, one for each of a number of indices.
struct IndexLists {
  private struct Link {
    let index: Int32
    /// The place of the next link of the list; -1 at its end.
    var next: Int32 = -1
  }

  private var links: [Link] = []
  /// The places of the first and the last link of each list; empty as long as all lists are.
  private var ends: [(first: Int32, last: Int32)] = []

  /// Adds an index to the end of the list of another one, which is less than `count`. Cost: O(1), and O(`count`) once.
  mutating func append(_ index: Int, to list: Int, of count: Int) {
    if ends.isEmpty { ends = Array(repeating: (-1, -1), count: count) }
    let place = Int32(links.count)
    links.append(Link(index: Int32(index)))
    if ends[list].last >= 0 {
      links[Int(ends[list].last)].next = place
    } else {
      ends[list].first = place
    }
    ends[list].last = place
  }

  /// Returns the list of an index.
  subscript(list: Int) -> [Int] {
    var result: [Int] = []
    var place = ends.isEmpty ? -1 : ends[list].first
    while place >= 0 {
      let link = links[Int(place)]
      result.append(Int(link.index))
      place = link.next
    }
    return result
  }
}

/// The consequences that the rejection of a fragment has for others.
extension FragmentValidator {
  /// Rejects the fragments that refer to rejected additions, and the additions that nothing would hold.
  mutating func checkLinks() {
    if rejectsAdditions {
      findReferrers(fragments.indices)
      rejectReferrers()
    }
    if additions.isEmpty { return }
    findHolders(fragments.indices)
    rejectUnheld()
  }

  // MARK: Referrers

  mutating func findReferrers(_ part: Range<Int>) {
    for at in part where errors[at] == nil {
      guard let entry = accepted[at] else { continue }
      for member in entry.properties.members where Self.mayRefer(member.value) {
        for uuid in references(in: member.value, at: member.key, entry.schema) ?? [] {
          noteReferrer(at, to: uuid)
        }
      }
      for operations in entry.operations {
        for operation in operations.operations {
          if case .insert(let uuid, _) = operation { noteReferrer(at, to: uuid) }
        }
      }
    }
  }

  private mutating func noteReferrer(_ at: Int, to uuid: UUID) {
    guard let addition = additions[uuid] else { return }
    let links = self.links ?? FragmentLinks()
    self.links = links
    links.referrers.append(at, to: addition, of: fragments.count)
  }

  /// Rejects the fragments that refer to a rejected addition, and in turn the fragments that refer to additions
  /// rejected that way.
  mutating func rejectReferrers() {
    guard let referrers = links?.referrers else { return }
    links = nil
    // The first one comes last: what refers to several is rejected because of it.
    var open = fragments.indices.reversed().filter { isRejectedAddition($0) }
    while let addition = open.popLast() {
      let named = referrers[addition]
      let uuid = fragments[addition].uuid
      if named.isEmpty || memory.departed(uuid) != nil { continue }
      for at in named where errors[at] == nil {
        let key = accepted[at].flatMap { property(holding: uuid, in: $0) } ?? ""
        reject(at, Problem("No such ModelObject '\(uuid.wireText)' at '\(key)'", missing: uuid))
        if isRejectedAddition(at) { open.append(at) }
      }
    }
  }

  private func isRejectedAddition(_ at: Int) -> Bool {
    errors[at] != nil && fragments[at].kind == .add && additions[fragments[at].uuid] == at
  }

  /// Returns the first property of a fragment that refers to a model.
  private func property(holding uuid: UUID, in entry: Accepted) -> String? {
    for member in entry.properties.members {
      let models = references(in: member.value, at: member.key, entry.schema) ?? []
      if models.contains(uuid) { return member.key }
    }
    return entry.operations.first { Self.inserted(by: $0.operations).contains(uuid) }?.key
  }

  /// Returns false for a value that refers to no model, whatever its property is.
  private static func mayRefer(_ value: JSONValue) -> Bool {
    switch value {
    case .string, .array, .object: true
    default: false
    }
  }

  // MARK: Holders

  mutating func findHolders(_ part: Range<Int>) {
    let links = self.links ?? FragmentLinks()
    self.links = links
    for at in part where errors[at] == nil {
      guard let entry = accepted[at] else { continue }
      for member in entry.properties.members {
        if let property = entry.schema?[wireName: member.key], !property.isCollection,
          !property.isReference
        {
          continue
        }
        let key = PropertyKey(uuid: fragments[at].uuid, name: member.key)
        if Self.mayRefer(member.value) {
          links.last[key] = member.value
        } else if !links.last.isEmpty {
          links.last[key] = nil
        }
      }
      if entry.operations.isEmpty { continue }
      let holder = holder(fragments[at].uuid)
      for operations in entry.operations {
        for operation in operations.operations {
          if case .insert(let uuid, _) = operation { note(uuid, heldBy: holder, in: links) }
        }
      }
    }
  }

  /// A model that holds others: one that is in the scope, or an addition.
  private enum Holder {
    case present
    case addition(Int)
    case none
  }

  private func holder(_ uuid: UUID) -> Holder {
    if content.sharedModel(uuid) != nil || unknownModels.contains(uuid) { return .present }
    return additions[uuid].map { .addition($0) } ?? .none
  }

  private func note(_ uuid: UUID, heldBy holder: Holder, in links: FragmentLinks) {
    guard let addition = additions[uuid] else { return }
    switch holder {
    case .present: links.open.append(addition)
    case .addition(let index): links.held.append(addition, to: index, of: fragments.count)
    case .none: break
    }
  }

  /// Rejects the additions that no model of the scope would hold after the submission.
  mutating func rejectUnheld() {
    let links = self.links ?? FragmentLinks()
    self.links = nil
    for (key, value) in links.last {
      let schema =
        content.model(key.uuid)?.classSchema ?? additions[key.uuid].flatMap { accepted[$0]?.schema }
        ?? keptSchema(key.uuid)
      guard let uuids = references(in: value, at: key.name, schema) else { continue }
      let holder = holder(key.uuid)
      for uuid in uuids { note(uuid, heldBy: holder, in: links) }
    }
    var isReached = Array(repeating: false, count: fragments.count)
    // Models without an object that are in the scope stay held. A submission may let go of one; that is no error.
    var open = links.open
    for (uuid, addition) in additions where unknownModels.contains(uuid) { open.append(addition) }
    while let next = open.popLast() {
      if isReached[next] { continue }
      isReached[next] = true
      open += links.held[next]
    }
    var unreached: [UUID: Int] = [:]
    for at in fragments.indices where !isReached[at] && errors[at] == nil {
      let uuid = fragments[at].uuid
      if fragments[at].kind == .add, additions[uuid] == at { unreached[uuid] = at }
    }
    let holders = unreached.isEmpty ? [:] : rejectedHolders(of: unreached)
    for (uuid, at) in unreached {
      reject(at, Problem("No parents, parent sync fragment failed"))
      note(cause: holders[uuid], of: at)
    }
    guard rejectsAdditions else { return }
    for at in fragments.indices where fragments[at].kind == .change && errors[at] == nil {
      let uuid = fragments[at].uuid
      if let added = additions[uuid], errors[added] != nil {
        reject(at, Problem("ModelObject not found", missing: uuid))
      }
    }
  }

  /// Returns the rejected fragments that would have held additions directly or through other additions: the reasons why
  /// nothing holds these. Cost: O(n) in the fragments.
  private func rejectedHolders(of unreached: [UUID: Int]) -> [UUID: Int] {
    var result: [UUID: Int] = [:]
    var open: [(at: Int, cause: Int)] = []
    for at in fragments.indices where errors[at] != nil { open.append((at, causes[at] ?? at)) }
    while let (at, cause) = open.popLast() {
      let fragment = fragments[at]
      var held = fragment.operations.flatMap { Self.inserted(by: $0.operations) }
      forEachHolding(in: fragment) { _, models in held += models }
      for uuid in held where result[uuid] == nil {
        guard let below = unreached[uuid] else { continue }
        result[uuid] = cause
        open.append((below, cause))
      }
    }
    return result
  }
}
