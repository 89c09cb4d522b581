import Foundation
import Jetstream
import JetstreamServer
import Testing

final class Branch: ModelObject {
  @Property var number = 0
  @Property var text = ""
  @Property var ratio = 0.5
  @Property(.counter) var count = 0
  @Property var favourite: Branch?
  @Property var children: ModelArray<Branch> = []
}

/// A client with pending sets, a server that decides them as chance will have it, and beside them what
/// both should look like, in plain dictionaries: the confirmed values, and the undecided sets in order.
///
/// The root holds groups, which stay; groups hold leaves, which come, go and move.
final class PendingModel {
  typealias Values = [String: JSONValue]

  /// A set that the server has not decided.
  struct Undecided {
    let fate: Fate
    var changes: [UUID: Values]
    /// Collections before and after it.
    var edits: [UUID: (before: [UUID], after: [UUID])]
    let added: Set<UUID>
    let isAtomic: Bool
    /// What has carried it; nil until it is sent.
    var message: ScopeSync?
  }

  let root = Branch()
  let server: ScriptedServer
  let seed: UInt64
  var generator: SeededGenerator
  /// What the server has: also models that nothing leads to any more.
  private(set) var confirmed: [UUID: Values] = [:]
  /// Models with the values with which they were made here.
  private(set) var made: [UUID: Values] = [:]
  var undecided: [Undecided] = []
  var decided: [(Fate, ChangeSetHandle.State)] = []
  var step = 0
  /// While the client takes something in, sets are not sent.
  private var isReceiving = false
  /// What an observer has changed while the client took something in; there is no set of it yet.
  var late: Undecided?
  /// Whether it has done so in this frame.
  private var hasInterfered = false

  var scope: Scope { server.scope }

  init(seed: UInt64) {
    self.seed = seed
    generator = SeededGenerator(seed: seed)
    for _ in 0..<3 {
      let group = Branch()
      for _ in 0..<2 { group.children.append(Branch()) }
      root.children.append(group)
    }
    server = ScriptedServer(root: root, configuration: .anyOrder)
    server.join()
    confirmed = picture()
    for model in [root] + Array(root.children) {
      model.observeChangeImmediately(self, \.number) { me, _, _ in me.interfere() }
      model.observeChangeImmediately(self, \.favourite) { me, _, _ in me.interfere() }
      model.observeCollectionAdd(self, \.children) { me, _, _ in me.interfere() }
    }
  }

  /// An observer changes something while others' changes are taken in; the set of it comes afterwards.
  private func interfere() {
    guard isReceiving, !hasInterfered, chance(10) else { return }
    hasInterfered = true
    edit()
  }

  /// The client takes something in.
  private func receive(_ body: () -> Void) {
    isReceiving = true
    body()
    isReceiving = false
    hasInterfered = false
    finishLate()
  }

  // MARK: What there is

  /// The visible values of every model.
  func picture() -> [UUID: Values] {
    var result: [UUID: Values] = [:]
    for fragment in scope.fullState() {
      result[fragment.uuid] = Dictionary(
        uniqueKeysWithValues: fragment.properties.map { ($0.key, $0.value) })
    }
    return result
  }

  static func uuids(_ value: JSONValue?) -> [UUID] {
    switch value {
    case .array(let elements)?: elements.flatMap { uuids($0) }
    case .string(let text)?: UUID(uuidString: text).map { [$0] } ?? []
    default: []
    }
  }

  /// The models that a fragment refers to.
  private static func named(_ fragment: SyncFragment) -> [UUID] {
    uuids(fragment.properties["favourite"]) + uuids(fragment.properties["children"])
  }

  /// What the root leads to on the server, in order, the root first.
  func live() -> [UUID] {
    var result: [UUID] = []
    var open = [root.uuid]
    while let uuid = open.popLast() {
      guard let values = confirmed[uuid], !result.contains(uuid) else { continue }
      result.append(uuid)
      open += Self.uuids(values["favourite"]) + Self.uuids(values["children"])
    }
    return result
  }

  private func fragment(_ kind: SyncFragment.Kind, _ uuid: UUID, _ values: Values) -> SyncFragment {
    SyncFragment(
      kind, uuid: uuid, className: "Branch",
      properties: JSONObject(values.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }))
  }

  private func chance(_ percent: Int) -> Bool {
    Int.random(in: 0..<100, using: &generator) < percent
  }

  // MARK: The client changes something

  func edit() {
    step += 1
    let before = picture()
    let isAtomic = chance(25)
    let count = Int.random(in: 1...4, using: &generator)
    let body = { for _ in 0..<count { self.editOnce() } }
    let handle = isAtomic ? scope.modifyAtomically(nil, body) : scope.modify(nil, body)
    let after = picture()
    var changes: [UUID: Values] = [:]
    var edits: [UUID: (before: [UUID], after: [UUID])] = [:]
    for (uuid, now) in after {
      guard let old = before[uuid] else {
        made[uuid] = now
        continue
      }
      let values = now.filter { $0.key != "children" && $0.value != old[$0.key] }
      if !values.isEmpty { changes[uuid] = values }
      if now["children"] != old["children"] {
        edits[uuid] = (Self.uuids(old["children"]), Self.uuids(now["children"]))
      }
    }
    let isEmpty = changes.isEmpty && edits.isEmpty
    let set = Undecided(
      fate: Fate(handle), changes: changes, edits: edits,
      added: Set(after.keys).subtracting(before.keys), isAtomic: isAtomic, message: nil)
    if isReceiving {
      late = set
      return
    }
    #expect(handle.state == (isEmpty ? .accepted : .pending), place)
    if !isEmpty { undecided.append(set) }
    takeMessages()
  }

  /// What has been sent belongs to the sets that have not been sent yet.
  private func takeMessages() {
    let messages = server.takeSyncs()
    let waiting = undecided.indices.filter { undecided[$0].message == nil }
    #expect(messages.count == waiting.count, place)
    for (at, message) in zip(waiting, messages) {
      undecided[at].message = message
      checkMessage(message, undecided[at])
    }
  }

  private func editOnce() {
    let groups = Array(root.children)
    let group = groups.randomElement(using: &generator)!
    let leaf = groups.flatMap { Array($0.children) }.randomElement(using: &generator)
    let any = chance(50) ? leaf ?? root : chance(50) ? group : root
    switch Int.random(in: 0..<11, using: &generator) {
    case 0, 1: any.number = Int.random(in: 0...9, using: &generator)
    case 2: any.text = "text \(step)"
    case 3: any.ratio = Double.random(in: 0...1, using: &generator)
    case 4: any.count += Int.random(in: -3...3, using: &generator)
    case 5: (chance(50) ? root : group).favourite = chance(70) ? leaf : nil
    case 6, 7:
      let leaf = Branch()
      leaf.text = "made in \(step)"
      group.children.insert(
        leaf, at: Int.random(in: 0...group.children.count, using: &generator))
    case 8:
      if let leaf = group.children.randomElement(using: &generator) { group.children.remove(leaf) }
    case 9:
      if group.children.count > 1 {
        group.children.move(
          from: Int.random(in: 0..<group.children.count, using: &generator),
          to: Int.random(in: 0..<group.children.count, using: &generator))
      }
    default:
      let target = groups.randomElement(using: &generator)!
      if let leaf = group.children.randomElement(using: &generator), target !== group {
        group.children.remove(leaf)
        target.children.append(leaf)
      }
    }
  }

  /// What is sent is what was changed.
  private func checkMessage(_ message: ScopeSync, _ set: Undecided) {
    var sent: [UUID: Values] = [:]
    var lists: Set<UUID> = []
    for fragment in message.fragments where fragment.kind == .change {
      for (key, value) in fragment.properties {
        if key == "children" {
          lists.insert(fragment.uuid)
        } else {
          sent[fragment.uuid, default: [:]][key] = value
        }
      }
    }
    #expect(
      sent.mapValues { $0.mapValues(\.canonicalText) }
        == set.changes.mapValues { $0.mapValues(\.canonicalText) }, place)
    #expect(lists == Set(set.edits.keys), place)
    #expect(message.atomic == (set.isAtomic ? true : nil), place)
    // What others have taken away, and is put somewhere here, is added again.
    let added = Set(message.fragments.filter { $0.kind == .add }.map(\.uuid))
    #expect(added.isSuperset(of: set.added), place)
    #expect(added.subtracting(set.added).isDisjoint(with: live()), place)
  }

  // MARK: The server

  /// One frame: decisions in any order, and what others do in between.
  func frame() {
    step += 1
    var messages: [Message] = []
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      messages.append(chance(60) && !undecided.isEmpty ? decide() : remoteChange())
    }
    receive { server.deliver(messages) }
    takeMessages()
  }

  /// The decision about one of the sets, whichever.
  private func decide() -> Message {
    let set = undecided.remove(at: Int.random(in: 0..<undecided.count, using: &generator))
    let fragments = set.message?.fragments ?? []
    // One that does not fit is rejected, with all that needs it.
    var isAccepted = fragments.map { _ in !chance(25) }
    while true {
      let added = Set(
        zip(fragments, isAccepted).filter { $0.0.kind == .add && $0.1 }.map(\.0.uuid))
      let fits = zip(fragments, isAccepted).map { fragment, isAccepted in
        isAccepted && (fragment.kind == .add || confirmed[fragment.uuid] != nil)
          && Self.named(fragment).allSatisfy { confirmed[$0] != nil || added.contains($0) }
      }
      if fits == isAccepted { break }
      isAccepted = fits
    }
    if set.isAtomic, isAccepted.contains(false) { isAccepted = isAccepted.map { _ in false } }
    var replies: [FragmentReply] = []
    for (fragment, isAccepted) in zip(fragments, isAccepted) {
      guard isAccepted else {
        replies.append(FragmentReply(error: .rejected("no")))
        continue
      }
      for (key, value) in fragment.properties {
        confirmed[fragment.uuid, default: [:]][key] = value
      }
      if chance(15) {
        let number = JSONValue.integer(Int64.random(in: 100...199, using: &generator))
        confirmed[fragment.uuid]!["number"] = number
        replies.append(FragmentReply(modifications: ["number": number]))
      } else {
        replies.append(FragmentReply())
      }
    }
    let state: ChangeSetHandle.State =
      !isAccepted.contains(false)
      ? .accepted : isAccepted.contains(true) ? .partlyRejected : .rejected
    decided.append((set.fate, state))
    return .scopeSyncReply(
      ScopeSyncReply(replyTo: set.message?.index ?? 0, fragmentReplies: replies))
  }

  /// Somebody else changes something that the server has.
  private func remoteChange() -> Message {
    let live = live()
    let groups = Self.uuids(confirmed[root.uuid]!["children"])
    let group = groups.randomElement(using: &generator)!
    var list = Self.uuids(confirmed[group]!["children"])
    var fragments: [SyncFragment] = []
    func set(_ uuid: UUID, _ key: String, _ value: JSONValue) {
      confirmed[uuid]![key] = value
      fragments.append(fragment(.change, uuid, [key: value]))
    }
    func json(_ list: [UUID]) -> JSONValue {
      .array(list.map { .string($0.uuidString.lowercased()) })
    }
    let any = live.randomElement(using: &generator)!
    switch Int.random(in: 0..<8, using: &generator) {
    case 0, 1: set(any, "number", .integer(Int64.random(in: 0...9, using: &generator)))
    case 2: set(any, "text", .string("theirs in \(step)"))
    case 3: set(any, "count", .integer(Int64.random(in: -9...9, using: &generator)))
    case 4:
      let leaf = groups.flatMap { Self.uuids(confirmed[$0]!["children"]) }
        .randomElement(using: &generator)
      let value = leaf.map { JSONValue.string($0.uuidString.lowercased()) } ?? .null
      set(chance(50) ? root.uuid : group, "favourite", chance(70) ? value : .null)
    case 5:
      let uuid = UUID()
      let values: Values = [
        "number": 1, "text": .string("theirs in \(step)"), "ratio": 0.25, "count": 0,
        "favourite": .null, "children": [],
      ]
      confirmed[uuid] = values
      fragments.append(fragment(.add, uuid, values))
      list.insert(uuid, at: Int.random(in: 0...list.count, using: &generator))
      set(group, "children", json(list))
    case 6:
      guard !list.isEmpty else { break }
      list.remove(at: Int.random(in: 0..<list.count, using: &generator))
      set(group, "children", json(list))
    default:
      set(group, "children", json(list.shuffled(using: &generator)))
    }
    return .scopeSync(ScopeSync(scopeIndex: 0, fragments: fragments))
  }

  /// The session is lost; what is undecided comes again.
  func loseSession() {
    step += 1
    let state = live().enumerated().map { place, uuid in
      fragment(place == 0 ? .change : .add, uuid, confirmed[uuid]!)
    }
    receive { server.replaceSession(state) }
    let messages = server.takeSyncs()
    #expect(messages.count == undecided.count, place)
    for (at, message) in messages.enumerated() where undecided.indices.contains(at) {
      undecided[at].message = message
    }
  }
}
