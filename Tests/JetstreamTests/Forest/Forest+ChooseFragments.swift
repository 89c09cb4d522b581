import Foundation

@testable import Jetstream

/// Choosing what others have done.
extension Forest {
  func randomFragments() -> ForestOperation {
    let scope = random(2)
    // What another replica can know: what nobody holds but by a local property never went there, nor
    // has what is new.
    let shared = order.filter { reference.isKnown($0, in: scope) }
    if reference.roots[scope] == nil || shared.isEmpty || chance(20) { return .flush }
    var new: [(id: Int, uuid: UUID, isBush: Bool)] = []
    for _ in 0..<random(3) { new.append((newNumber(), anyUUID(), chance(50))) }
    let known = shared + new.map(\.id)
    func isBush(_ id: Int) -> Bool {
      reference.nodes[id]?.isBush ?? new.contains { $0.id == id && $0.isBush }
    }
    func values(of id: Int, onlyPlain: Bool) -> [ForestOperation.Value] {
      // A name occurs once in an object.
      var values: [String: ForestOperation.Value] = [:]
      var keys: [String] = []
      func add(_ key: String, _ value: ForestOperation.Value) {
        if values.updateValue(value, forKey: key) == nil { keys.append(key) }
      }
      func any() -> Int { known[random(known.count)] }
      for _ in 0...random(3) {
        let list = ListKey.allCases[random(3)]
        let key = ReferenceKey.allCases[random(isBush(id) ? 3 : 2)]
        var content = reference.nodes[id]?.list(list) ?? []
        if chance(70) { content += (0..<random(3)).map { _ in any() } }
        if chance(30) { content.shuffle(using: &generator) }
        if chance(30) { content = content.filter { _ in chance(70) } }
        // What only this side knows cannot come from the others.
        content = content.filter(known.contains)
        switch random(onlyPlain ? 5 : 16) {
        case 0:
          if chance(50) {
            add("number", .number(random(5)))
          } else {
            // Only what is there can be added to.
            let isAddition = shared.contains(id) && chance(70)
            add("count", isAddition ? .addCount(random(5)) : .count(random(9)))
          }
        case 1: add("title", .title(chance(70) ? "t\(random(3))" : nil))
        case 2: add("heat", .heat(random(5)))
        case 3: add("note", .note(random(5)))
        case 4: add("number", chance(50) ? .wrongNumber : .number(7))
        case 5, 6:
          let child = any()
          if key != .crown || isBush(child) { add(key.rawValue, .reference(key, child)) }
        case 7: add(key.rawValue, .reference(key, nil))
        case 8, 9, 10, 11: add(list.rawValue, .list(list, content))
        case 12: add("friend", .friend(any()))
        case 13:
          add(key.rawValue, chance(50) ? .unknownReference(key) : .wrongReference(key))
        case 14:
          add(
            list.rawValue, chance(50) ? .unknownElement(list, content) : .wrongList(list))
        default:
          if chance(50) { add("title", .wrongTitle) } else { add("what", .unknownProperty) }
        }
      }
      return keys.map { values[$0]! }
    }
    var fragments: [ForestOperation.Fragment] = []
    for made in new {
      fragments.append(
        .init(
          target: .new(made.id, made.uuid, isBush: made.isBush),
          values: values(of: made.id, onlyPlain: chance(50))))
    }
    for _ in 0...random(4) {
      if chance(5) {
        fragments.append(.init(target: .unknown(anyUUID()), values: []))
      } else {
        let id = shared[random(shared.count)]
        fragments.append(.init(target: .known(id), values: values(of: id, onlyPlain: false)))
      }
    }
    fragments.shuffle(using: &generator)
    return .apply(scope, fragments)
  }
}
