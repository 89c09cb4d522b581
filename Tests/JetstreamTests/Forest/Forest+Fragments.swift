import Foundation

@testable import Jetstream

/// Applying what others did.
extension Forest {
  func performApply(_ number: Int, _ fragments: [ForestOperation.Fragment]) {
    var uuids = reference.nodes.mapValues(\.uuid)
    for case .new(let id, let uuid, let isBush) in fragments.map(\.target) {
      uuids[id] = uuid
      planned[uuid] = id
      reference.nodes[id] = .init(isBush: isBush, uuid: uuid)
    }
    let written = fragments.map { fragment in
      var values = fragment.values
      var operations = PropertyOperations()
      for case .addCount(let delta) in values { operations["count"] = [.add(Int64(delta))] }
      values.removeAll { if case .addCount = $0 { true } else { false } }
      let properties = JSONObject(values.map { $0.json { uuids[$0]! } })
      return switch fragment.target {
      case .known(let id):
        SyncFragment(
          .change, uuid: uuids[id]!, className: reference.nodes[id]!.isBush ? "Bush" : "Plant",
          properties: properties, operations: operations)
      case .new(_, let uuid, let isBush):
        SyncFragment(
          .add, uuid: uuid, className: isBush ? "Bush" : "Plant", properties: properties)
      case .unknown(let uuid):
        SyncFragment(.change, uuid: uuid, className: "Plant", properties: properties)
      }
    }
    var made: Set<Int> = []
    for case .new(let id, _, _) in fragments.map(\.target) { made.insert(id) }
    reference.beginApplying(number, creating: made)
    var referenced: Set<Int> = []
    var tolerated = 0
    for isNew in [true, false] {
      for fragment in fragments {
        switch fragment.target {
        case .new(let id, _, _) where isNew: write(fragment.values, to: id, number, &referenced)
        case .known(let id) where !isNew:
          let target = reference.target(id, in: number)
          let departed = reference.departed(behind: target, in: number)
          let before = reference.errors[number]
          write(fragment.values, to: target, number, &referenced)
          let errors = reference.errors[number]
          // What has left may be kept as something unknown refers to it; nothing is refused there.
          if reference.scope(of: target) == nil { tolerated += (errors ?? 0) - (before ?? 0) }
          if let departed {
            write(fragment.values, to: departed, number, &referenced)
            // It was reported already.
            reference.errors[number] = errors
          }
        case .unknown where !isNew: reference.errors[number, default: 0] += 1
        default: break
        }
      }
    }
    reference.endApplying()
    let held = order.reduce(into: Set<Int>()) { $0.formUnion(reference.reach($1)) }
    for case .new(let id, _, _) in fragments.map(\.target) {
      if !referenced.contains(id) { reference.errors[number, default: 0] += 1 }
    }
    let report = scope(number).apply(written)
    let errors = (reference.errors[number] ?? 0) - reference.refusals
    expect(
      (errors - tolerated...errors).contains(report.errors.count),
      "\(report.errors) instead of \(errors) errors")
    reference.errors[number, default: 0] += report.errors.count - errors
    if reference.errors[number] == 0 { reference.errors[number] = nil }
    let lost = made.subtracting(held)
    for id in lost {
      reference.forget(id)
      reference.nodes[id] = nil
      reference.dirty[id] = nil
      reference.events.removeAll { $0.node == id }
    }
    if !lost.isEmpty {
      // Who came and went at once, in a circle, stays as long as nobody breaks that.
      let logs = watchers.map { ($0.log, $0.log.events) }
      for id in lost { visitors.plant(uuids[id]!)?.letGo() }
      for (log, events) in logs { log.events = events }
      // Queries and observers of differences hold what has come and gone until the next tick.
      ticker.deliverToObservers()
      adoptNew()
      checkDelivery()
    }
    if number == 0, let replica {
      replica.apply(written, alsoKnown: { [keeper] in keeper.find($0) })
      // What is refused here, because of what was done meanwhile, is not refused there.
      if reference.refusals > 0 { replicaRoot = nil }
      if !scope(0).hasCollectedChanges, !scope(0).schedule.isRequested { compareReplica() }
    }
  }

  func write(
    _ values: [ForestOperation.Value], to id: Int, _ scope: Int, _ referenced: inout Set<Int>
  ) {
    let made = reference.created
    func target(_ child: Int) -> Int {
      if made.contains(child) { return child }
      // What has left and holds itself does so behind another instance as well.
      if reference.nodes[child]!.uuid == reference.nodes[id]!.uuid { return id }
      return reference.target(child, in: scope)
    }
    /// A local change that waits stays in front of what others say.
    func isHidden(_ key: String) -> Bool { reference.bases[id]?[key] != nil }
    func assign(_ key: ListKey, _ list: [Int]) {
      let list = list.map(target).distinct
      guard let base = reference.bases[id]?[key.rawValue] else {
        return reference.assign(id, key, list)
      }
      let merged = CollectionContent.merge(
        base: list, before: base, after: reference.nodes[id]!.list(key))
      reference.assign(id, key, merged)
      reference.bases[id]![key.rawValue] = list
    }
    for value in values {
      switch value {
      case .number(let number): if !isHidden("number") { reference.edit(id) { $0.number = number } }
      case .title(let title): if !isHidden("title") { reference.edit(id) { $0.title = title } }
      case .heat(let heat): if !isHidden("heat") { reference.edit(id) { $0.heat = heat } }
      case .count(let count): if !isHidden("count") { reference.edit(id) { $0.count = count } }
      case .addCount(let delta): reference.edit(id) { $0.count += delta }
      case .note, .list(.picks, _), .unknownElement(.picks, _), .wrongList(.picks): break
      case .reference(let key, let child):
        if let child { referenced.insert(child) }
        if !isHidden(key.rawValue) { reference.assign(id, key, child.map(target)) }
      case .list(let key, let list):
        referenced.formUnion(list)
        assign(key, list)
      case .unknownElement(let key, let list):
        referenced.formUnion(list)
        reference.errors[scope, default: 0] += 2
        assign(key, list)
      case .friend(let friend):
        if isHidden("friend") { continue }
        reference.assignFriend(id, nil, uuid: reference.nodes[friend]!.uuid)
      case .wrongTitle:
        // What does not fit an optional property makes it nil.
        reference.errors[scope, default: 0] += 1
        if !isHidden("title") { reference.edit(id) { $0.title = nil } }
      case .unknownProperty: break  // Kept with the model, which is no error.
      case .unknownReference, .wrongNumber, .wrongReference, .wrongList:
        reference.errors[scope, default: 0] += 1
      }
    }
  }

  /// Returns the first scope to an earlier state. What that does step by step is not foretold.
  func performState() {
    flush()
    guard let saved, reference.roots[0] == saved.root else { return }
    do {
      let rootUUID = plants[saved.root]!.uuid
      let report = try scope(0).applyFullState(saved.fragments, rootUUID: rootUUID)
      expect(report.isComplete, "the saved state was refused: \(report.errors)")
      try replica?.applyFullState(saved.fragments, rootUUID: rootUUID)
    } catch {
      fail("the saved state was refused: \(error)")
    }
    expect(scope(0).canonicalJSON == saved.canonical, "another state than the saved one")
    adoptNew()
    isForetold = false
    var nodes: [Int: ForestReference.Node] = [:]
    for id in order { nodes[id] = read(id) }
    for (id, node) in nodes {
      let old = reference.nodes[id]
      if old == node { continue }
      maybe.insert(id)
      let texts = old?.plain.texts.map(\.text) ?? []
      reference.clock += 1
      for (index, value) in node.plain.texts.enumerated()
      where old == nil || texts[index] != value.text {
        reference.dirty[id, default: [:]][value.key] = reference.clock
      }
      for (key, list) in node.lists where old?.list(key) != list {
        reference.dirty[id, default: [:]][key.rawValue] = reference.clock
      }
      for key in ReferenceKey.allCases where old?.references[key] != node.references[key] {
        reference.dirty[id, default: [:]][key.rawValue] = reference.clock
      }
      if old?.friend != node.friend {
        reference.dirty[id, default: [:]]["friend"] = reference.clock
      }
    }
    maybe.formUnion(order)
    reference.adopt(nodes, roots: reference.roots)
    compareReplica()
  }

}

extension [Int] {
  var distinct: [Int] { reduce(into: []) { if !$0.contains($1) { $0.append($1) } } }
}

extension ForestOperation.Value {
  func json(_ uuid: (Int) -> UUID) -> (String, JSONValue) {
    func text(_ id: Int) -> JSONValue { .string(uuid(id).wireText) }
    let unknown = JSONValue.string(Forest.unknownUUID.wireText)
    return switch self {
    case .number(let value): ("number", .integer(Int64(value)))
    case .title(let value): ("title", value.map { .string($0) } ?? .null)
    case .heat(let value): ("heat", .integer(Int64(value)))
    case .count(let value), .addCount(let value): ("count", .integer(Int64(value)))
    case .note(let value): ("note", .integer(Int64(value)))
    case .reference(let key, let child): (key.rawValue, child.map(text) ?? .null)
    case .list(let key, let list): (key.rawValue, .array(list.map(text)))
    case .friend(let friend): ("friend", text(friend))
    case .unknownReference(let key): (key.rawValue, unknown)
    case .unknownElement(let key, let list):
      (key.rawValue, .array([unknown] + list.map(text) + [.null]))
    case .wrongNumber: ("number", .string("many"))
    case .wrongTitle: ("title", .integer(3))
    case .wrongReference(let key): (key.rawValue, .integer(5))
    case .wrongList(let key): (key.rawValue, .string("all"))
    case .unknownProperty: ("what", .bool(true))
    }
  }
}
