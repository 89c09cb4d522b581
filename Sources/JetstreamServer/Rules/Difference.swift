import Foundation
import Jetstream

/// A difference that a change set would make to one model.
struct Difference {
  enum Kind {
    /// The model comes in: a new one, or one that was gone.
    case created
    /// Nothing leads from the root to the model any more.
    case deleted
    /// A value, a reference or a counter changes.
    case updated(PropertySchema)
    /// A collection or a dictionary of the model holds another one.
    case inserted(TentativeModel, PropertySchema)
    /// A collection or a dictionary of the model holds another one no longer.
    case removed(TentativeModel, PropertySchema)
    /// A model gets another place in a collection of the model.
    case moved(TentativeModel, PropertySchema)
  }

  let kind: Kind
  let model: TentativeModel
  /// The fragments that make the difference.
  let fragments: [Int]
}

/// The differences that a change set would make to a scope.
///
/// They are those between two states, not those that the fragments name: a model that a removal detaches is deleted with
/// all that only it has led to, one that comes back is created, and a value that stays the same is not updated.
struct Differences {
  private let scope: TentativeScope
  private(set) var all: [Difference] = []
  /// The fragments that put models of unknown classes into properties, or take them out; no rule can speak of these.
  private(set) var unknown: [Int] = []
  /// The fragments with which properties begin to hold a model, and cease to.
  private var gained: [UUID: [(holder: PropertyKey, fragments: [Int])]] = [:]
  private var lost: [UUID: [(holder: PropertyKey, fragments: [Int])]] = [:]
  /// True for the models that the root would lead to, and false for the others, as far as that was asked.
  private var reachable: [UUID: Bool] = [:]

  init(in scope: TentativeScope) {
    self.scope = scope
    for model in scope.written {
      for write in model.writes { note(write, of: model) }
    }
    let arrivals = gained.isEmpty ? [] : findArrivals()
    let gone = lost.isEmpty ? [] : noteDepartures()
    // Models that would come in below one that leaves do not come in.
    for arrival in arrivals where gone.isEmpty || isReachable(arrival.model) { all.append(arrival) }
  }

  // MARK: Values

  private mutating func note(_ write: TentativeModel.Write, of model: TentativeModel) {
    let property = write.property
    switch property.kind {
    case .plain:
      if model.current == nil { return }
      let (old, new) = (model.oldValue(of: property), model.newValue(by: write))
      if !property.areSame(old, new) { add(.updated(property), to: model, write) }
    case .reference:
      let old = model.isShared ? model.oldValue(of: property) : .null
      let new = model.newValue(by: write)
      let held = (
        old: TentativeModel.model(in: old), new: TentativeModel.model(in: new)
      )
      if held.old == held.new { return }
      if property.entryKey == nil {
        if model.current != nil { add(.updated(property), to: model, write) }
      } else if model.isShared {
        if let old = held.old { add({ .removed($0, property) }, old, to: model, write) }
        if let new = held.new { add({ .inserted($0, property) }, new, to: model, write) }
      }
      if model.isShared { noteHolders(write, of: model, lost: held.old, gained: held.new) }
    case .collection:
      // The children of a model that is not in the scope come in with it.
      if model.isShared { noteCollection(write, of: model) }
    case .dictionary: return
    }
  }

  private mutating func noteCollection(
    _ write: TentativeModel.Write, of model: TentativeModel
  ) {
    let key = PropertyKey(uuid: model.uuid, name: write.property.wireName)
    if write.assigned == nil { return noteOperations(write, of: model, key) }
    let old = CollectionContent(model.oldValue(of: write.property)) ?? CollectionContent()
    let new = CollectionContent(model.newValue(by: write)) ?? CollectionContent()
    for operation in old.operations(to: new) {
      switch operation {
      case .insert(let uuid, _): insert(uuid, write, of: model)
      case .remove(let uuid): remove(uuid, write, of: model)
      case .move(let uuid, _): move(uuid, write, of: model)
      case .add: break
      }
    }
  }

  /// Notes operations without a look at the other elements.
  private mutating func noteOperations(
    _ write: TentativeModel.Write, of model: TentativeModel, _ key: PropertyKey
  ) {
    var isIn: [UUID: (before: Bool, after: Bool, isMoved: Bool)] = [:]
    var order: [UUID] = []
    for operation in write.operations {
      guard let uuid = operation.model else { continue }
      if scope.isUnknown(uuid) {
        unknown += write.fragments
        continue
      }
      var state: (before: Bool, after: Bool, isMoved: Bool)
      if let known = isIn[uuid] {
        state = known
      } else {
        let isHeld = scope[uuid].map { scope.isHeld($0, by: key) } ?? false
        state = (isHeld, isHeld, false)
        order.append(uuid)
      }
      switch operation {
      case .insert: (state.after, state.isMoved) = (true, true)
      case .remove: state.after = false
      case .move: if state.after { state.isMoved = true }
      case .add: break
      }
      isIn[uuid] = state
    }
    for uuid in order {
      switch isIn[uuid]! {
      case (false, true, _): insert(uuid, write, of: model)
      case (true, false, _): remove(uuid, write, of: model)
      case (true, true, true): move(uuid, write, of: model)
      default: break
      }
    }
  }

  private mutating func insert(
    _ uuid: UUID, _ write: TentativeModel.Write, of model: TentativeModel
  ) {
    add({ .inserted($0, write.property) }, uuid, to: model, write)
    noteHolders(write, of: model, lost: nil, gained: uuid)
  }

  private mutating func remove(
    _ uuid: UUID, _ write: TentativeModel.Write, of model: TentativeModel
  ) {
    add({ .removed($0, write.property) }, uuid, to: model, write)
    noteHolders(write, of: model, lost: uuid, gained: nil)
  }

  private mutating func move(
    _ uuid: UUID, _ write: TentativeModel.Write, of model: TentativeModel
  ) {
    add({ .moved($0, write.property) }, uuid, to: model, write)
  }

  private mutating func add(
    _ kind: Difference.Kind, to model: TentativeModel, _ write: TentativeModel.Write
  ) {
    all.append(Difference(kind: kind, model: model, fragments: write.fragments))
  }

  private mutating func add(
    _ kind: (TentativeModel) -> Difference.Kind, _ child: UUID, to model: TentativeModel,
    _ write: TentativeModel.Write
  ) {
    if let child = scope[child] { return add(kind(child), to: model, write) }
    if scope.isUnknown(child) { unknown += write.fragments }
  }

  // MARK: Coming and going

  private mutating func noteHolders(
    _ write: TentativeModel.Write, of model: TentativeModel, lost old: UUID?, gained new: UUID?
  ) {
    let key = PropertyKey(uuid: model.uuid, name: write.property.wireName)
    if let old { lost[old, default: []].append((key, write.fragments)) }
    if let new { gained[new, default: []].append((key, write.fragments)) }
  }

  /// Finds the models that come in: those that begin to be held, and those below them.
  private mutating func findArrivals() -> [Difference] {
    var open = gained.map { ($0.key, $0.value.flatMap(\.fragments)) }
    open.sort { $0.0.uuidString < $1.0.uuidString }
    var arrived: Set<UUID> = []
    var models: [Difference] = []
    while let (uuid, fragments) = open.popLast() {
      guard let model = scope[uuid], !model.isShared, arrived.insert(uuid).inserted else {
        continue
      }
      let own = model.addition.map { [$0] } ?? fragments
      models.append(Difference(kind: .created, model: model, fragments: own))
      model.forEachNewChild { child in
        gained[child, default: []].append((PropertyKey(uuid: uuid, name: ""), own))
        open.append((child, own))
      }
    }
    return models
  }

  /// Notes and returns the models that leave: those to which nothing leads any more, and those below them.
  private mutating func noteDepartures() -> Set<UUID> {
    var open = lost.map { ($0.key, $0.value.flatMap(\.fragments)) }
    open.sort { $0.0.uuidString < $1.0.uuidString }
    var gone: Set<UUID> = []
    while let (uuid, fragments) = open.popLast() {
      guard let model = scope[uuid], model.isShared, !gone.contains(uuid),
        !isReachable(model)
      else { continue }
      gone.insert(uuid)
      all.append(Difference(kind: .deleted, model: model, fragments: fragments))
      model.forEachNewChild { open.append(($0, fragments)) }
    }
    return gone
  }

  /// Returns true if the root would lead to a model. Cost: O(n) in the models above it and their holders, for all calls
  /// together: what was found of the models on the way is remembered, since the same ones may be above a thousand models
  /// of which a change set lets go.
  private mutating func isReachable(_ model: TentativeModel) -> Bool {
    guard let root = scope.root?.uuid else { return false }
    if model.uuid == root { return true }
    if let known = reachable[model.uuid] { return known }
    var seen: Set<UUID> = [model.uuid]
    // The models that were left behind may have led to one on the path, which is only known at the end.
    var below: [UUID: [UUID]] = [:]
    var path = [(model: model.uuid, above: holders(above: model))]
    var isFound = false
    while !isFound, let last = path.indices.last {
      guard let next = path[last].above.popLast() else {
        path.removeLast()
        continue
      }
      isFound = next == root || reachable[next] == true
      below[next, default: []].append(path[last].model)
      guard !isFound, reachable[next] == nil, seen.insert(next).inserted else { continue }
      if let holder = scope[next] { path.append((next, holders(above: holder))) }
    }
    var open = isFound ? path.map(\.model) : []
    while let next = open.popLast() {
      if reachable.updateValue(true, forKey: next) != true { open += below[next] ?? [] }
    }
    for uuid in seen where reachable[uuid] == nil { reachable[uuid] = false }
    return isFound
  }

  /// Returns the models that would hold one.
  private func holders(above model: TentativeModel) -> [UUID] {
    let left = Set(lost[model.uuid]?.map(\.holder) ?? [])
    let stays = scope.holders(of: model).filter { !left.contains($0) }
    return (gained[model.uuid] ?? []).map(\.holder.uuid) + stays.map(\.uuid)
  }
}
