import Foundation

@testable import Jetstream

/// Applying what others did.
extension Forest {
  func performApply(_ number: Int, _ fragments: [ForestOperation.Fragment]) {
    flush()
    var uuids = reference.nodes.mapValues(\.uuid)
    for case .new(let id, let uuid, let isBush) in fragments.map(\.target) {
      uuids[id] = uuid
      planned[uuid] = id
      reference.nodes[id] = .init(isBush: isBush, uuid: uuid)
    }
    let written = fragments.map { fragment in
      let properties = JSONObject(fragment.values.map { $0.json { uuids[$0]! } })
      return switch fragment.target {
      case .known(let id):
        SyncFragment(
          .change, uuid: uuids[id]!, className: reference.nodes[id]!.isBush ? "Bush" : "Plant",
          properties: properties)
      case .new(_, let uuid, let isBush):
        SyncFragment(
          .add, uuid: uuid, className: isBush ? "Bush" : "Plant", properties: properties)
      case .unknown(let uuid):
        SyncFragment(.change, uuid: uuid, className: "Plant", properties: properties)
      }
    }
    reference.beginApplying(number)
    var referenced: Set<Int> = []
    for isNew in [true, false] {
      for fragment in fragments {
        switch fragment.target {
        case .new(let id, _, _) where isNew: write(fragment.values, to: id, number, &referenced)
        case .known(let id) where !isNew: write(fragment.values, to: id, number, &referenced)
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
    expect(
      report.errors.count == reference.errors[number] ?? 0,
      "\(report.errors) instead of \(reference.errors[number] ?? 0) errors")
    for case .new(let id, _, _) in fragments.map(\.target) where !held.contains(id) {
      reference.nodes[id] = nil
      reference.dirty[id] = nil
      reference.events.removeAll { $0.node == id }
    }
    if number == 0, let replica {
      replica.apply(written)
      compareReplica()
    }
  }

  func write(
    _ values: [ForestOperation.Value], to id: Int, _ scope: Int, _ referenced: inout Set<Int>
  ) {
    for value in values {
      switch value {
      case .number(let number): reference.edit(id) { $0.number = number }
      case .title(let title): reference.edit(id) { $0.title = title }
      case .heat(let heat): reference.edit(id) { $0.heat = heat }
      case .note, .list(.picks, _), .unknownElement(.picks, _), .wrongList(.picks): break
      case .reference(let key, let child):
        if let child { referenced.insert(child) }
        reference.assign(id, key, child)
      case .list(let key, let list):
        referenced.formUnion(list)
        reference.assign(id, key, list.distinct)
      case .unknownElement(let key, let list):
        referenced.formUnion(list)
        reference.errors[scope, default: 0] += 2
        reference.assign(id, key, list.distinct)
      case .friend(let friend):
        reference.assignFriend(id, nil, uuid: reference.nodes[friend]!.uuid)
      case .wrongTitle:
        // What does not fit an optional property makes it nil.
        reference.errors[scope, default: 0] += 1
        reference.edit(id) { $0.title = nil }
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
