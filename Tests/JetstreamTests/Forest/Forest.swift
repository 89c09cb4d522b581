import Foundation

@testable import Jetstream

/// Some models in two scopes, and others in none, with a reference of what they should be.
final class Forest {
  struct Sight {
    weak var plant: Plant?
    let id: Int
  }

  /// Scopes of models' own are held by these.
  struct Place {
    weak var scope: Scope?
  }

  var generator: SeededGenerator
  let ticker = Ticker.manual()
  var reference = ForestReference()
  /// The reference as it was at the last check.
  var previous = ForestReference()
  /// The nodes that the test holds, and all that these hold.
  var plants: [Int: Plant] = [:]
  /// Their numbers in the order in which they came.
  var order: [Int] = []
  var watchers: [ForestWatcher] = []
  var places: [Int: Place] = [:]
  var errors: [Int: Int] = [:]
  var problems: [String] = []
  var history: [String] = []
  /// Who has maybe changed since the last tick: a value that has returned may be told, and need not.
  var maybe: Set<Int> = []
  /// What observers may have to be told of changes that were not foretold step by step.
  var isForetold = true
  var muted: [ForestWatcher] = []
  var replica: Scope?
  var replicaRoot: Int?
  private var keeper = ReplicaKeeper()
  var saved: (root: Int, fragments: [SyncFragment], canonical: String)?
  /// Counts what was checked, so that a run that checks nothing is noticed.
  var told = 0
  private var fixed: [Scope] = []
  var sights: [ObjectIdentifier: Sight] = [:]
  private var planned: [UUID: Int] = [:]
  private var lastNumber = 0
  private var lastScope = 1

  static let unknownUUID = UUID(uuidString: "ffffffff-0000-4000-8000-000000000000")!

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    for _ in 0..<20 { make(newNumber(), anyUUID(), isBush: chance(40)) }
    for number in 0..<2 {
      let scope = Scope(
        name: "\(number)", root: plants[order[number]], models: [Bush.self], ticker: ticker)
      fixed.append(scope)
      watch(scope, number)
      reference.members[number] = []
      reference.setRoot(number, order[number])
    }
    reference.events = []
    previous = reference
    scope(0).onChanges.listen { [unowned self] set in
      if let report = replica?.apply(set.fragments), !report.isComplete {
        problems.append("the replica refused \(report.errors) of \(set.fragments)")
      }
    }
  }

  // MARK: Names

  func scope(_ number: Int) -> Scope { places[number]!.scope! }

  func number(of scope: Scope) -> Int {
    for (number, place) in places where place.scope === scope { return number }
    // Observers hear of a scope of a model's own before the caller does.
    return lastScope
  }

  func newNumber() -> Int {
    lastNumber += 1
    return lastNumber
  }

  /// The number of a model; one that was never seen gets the next.
  func id(of model: ModelObject) -> Int {
    let key = ObjectIdentifier(model)
    if let sight = sights[key], sight.plant === model { return sight.id }
    let id = planned.removeValue(forKey: model.uuid) ?? newNumber()
    sights[key] = Sight(plant: model as? Plant, id: id)
    return id
  }

  func text(_ value: Any) -> String {
    switch value {
    case let plant as Plant: "#\(id(of: plant))"
    case let list as ModelArray<Plant>: reference.text(list.map(id))
    case let spot as ForestSpot: "\(spot.x),\(spot.y)"
    case let number as Int: "\(number)"
    case let numbers as [Int]: "\(numbers)"
    case let sizes as [String: Double]:
      "\(sizes.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" })"
    case let text as String: text
    default: "nil"
    }
  }

  private func watch(_ scope: Scope, _ number: Int) {
    places[number] = Place(scope: scope)
    scope.onError.listen { [unowned self] _ in errors[number, default: 0] += 1 }
  }

  private func make(_ id: Int, _ uuid: UUID, isBush: Bool) {
    let plant = isBush ? Bush(uuid: uuid) : Plant(uuid: uuid)
    sights[ObjectIdentifier(plant)] = Sight(plant: plant, id: id)
    adopt(plant, id)
    reference.nodes[id] = .init(isBush: isBush, uuid: uuid)
  }

  /// Models in no scope get the ticker as if somebody observed them on its actor: otherwise nothing
  /// would say when their observers are told.
  private func adopt(_ plant: Plant, _ id: Int) {
    plants[id] = plant
    order.append(id)
    plant.ensureRecord().ownTicker = ticker
  }

  /// Takes the models that came otherwise among the nodes.
  func adoptNew() {
    var open = order.map { plants[$0]! }
    for number in places.keys.sorted() {
      if let root = places[number]!.scope?.root as? Plant { open.append(root) }
    }
    var visited = Set(open.map(ObjectIdentifier.init))
    var next = 0
    while next < open.count {
      let plant = open[next]
      next += 1
      let id = id(of: plant)
      if plants[id] == nil { adopt(plant, id) }
      for child in plant.held where visited.insert(ObjectIdentifier(child)).inserted {
        open.append(child)
      }
    }
  }

  // MARK: Performing

  /// Does something, to the models and to the reference, and checks what has come of it.
  func run(_ operation: ForestOperation) {
    history.append(operation.description)
    perform(operation)
    checkStep()
    followRoot()
  }

  private func perform(_ operation: ForestOperation) {
    switch operation {
    case .plain(let id, let edit):
      edit.perform(on: plants[id]!)
      let isBush = reference.nodes[id]!.isBush
      reference.edit(id) { edit.perform(on: &$0, isBush: isBush) }
    case .reference(let id, let key, let child):
      plants[id]![key] = child.map { plants[$0]! }
      reference.assign(id, key, child)
    case .swapReferences(let a, let key, let b, let other):
      plants[a]!.change(key) { first in plants[b]!.change(other) { swap(&first, &$0) } }
      // The access that began last ends first.
      let (first, second) = (
        reference.nodes[a]!.references[key], reference.nodes[b]!.references[other]
      )
      reference.assign(b, other, first)
      reference.assign(a, key, second)
    case .list(let id, let key, let edits, let way): performList(id, key, edits, way)
    case .swapLists(let a, let key, let b, let other):
      plants[a]!.change(key) { first in plants[b]!.change(other) { swap(&first, &$0) } }
      let (first, second) = (reference.nodes[a]!.list(key), reference.nodes[b]!.list(other))
      reference.assign(b, other, first)
      reference.assign(a, key, second)
    case .friend(let id, let friend):
      plants[id]!.friend = friend.map { plants[$0]! }
      reference.assignFriend(id, friend, uuid: friend.map { reference.nodes[$0]!.uuid })
    case .detach(let id):
      plants[id]!.detach()
      reference.remove(id, from: reference.parents[id] ?? [])
    case .makeRoot(let id, let number):
      let isRoot = plants[id]!.makeRoot(of: scope(number))
      reference.move(id, to: number)
      expect(isRoot == (reference.roots[number] == id), "makeRoot gave \(isRoot)")
    case .ownScope(let id):
      let wasRoot = reference.roots.values.contains(id)
      if !wasRoot { lastScope += 1 }
      plants[id]!.isScopeRoot = true
      if wasRoot { return }
      reference.move(id, to: lastScope)
      reference.owned.insert(lastScope)
      guard let made = plants[id]!.scope else { return fail("no scope was made") }
      watch(made, lastScope)
    case .leaveScope(let id):
      let number = reference.scope(of: id)!
      plants[id]!.isScopeRoot = false
      reference.setRoot(number, nil)
    case .releaseRoot(let number):
      let root = scope(number).releaseRoot()
      expect(root === reference.roots[number].map { plants[$0]! }, "releaseRoot gave another")
      reference.setRoot(number, nil)
    case .setRoot(let number, let id):
      scope(number).root = plants[id]!
      if let root = reference.roots[number] {
        if root != id { reference.errors[number, default: 0] += 1 }
      } else {
        reference.setRoot(number, id)
      }
    case .apply(let number, let fragments): performApply(number, fragments)
    case .saveState:
      flush()
      guard let root = reference.roots[0] else { return }
      saved = (root, scope(0).fullState(), scope(0).canonicalJSON)
    case .applyState: performState()
    case .takeFragments(let number):
      let fragments = scope(number).takeFragments()
      if number == 0, let report = replica?.apply(fragments), !report.isComplete {
        fail("the replica refused \(report.errors)")
      }
    case .flush: flush()
    case .advance(let time):
      ticker.advance(by: .milliseconds(time))
      checkDelivery()
      if !scope(0).hasCollectedChanges { compareReplica() }
    case .muted(let watchers, let inner):
      scope(0).withoutNotifying(watchers.flatMap(\.tokens)) {
        checkStep()
        checkDelivery()
        muted = watchers
        perform(inner)
        checkStep()
      }
      checkDelivery()
      muted = []
    case .observe(let id, let kind, let isFree):
      watchers.append(ForestWatcher(kind, at: id, in: self, isFree: isFree))
    case .cancel(let watcher): watcher.cancel()
    case .releaseEar(let watcher): watcher.releaseEar()
    case .removeObservers(let watcher):
      if let ear = watcher.ear { plants[watcher.node]!.removeObservers(ear) }
      watcher.cancel()
    case .create(let id, let uuid, let isBush): make(id, uuid, isBush: isBush)
    case .drop(let id): performDrop(id)
    case .copy(let id, let keepingUUIDs): performCopy(id, keepingUUIDs)
    }
  }

  private func performList(
    _ id: Int, _ key: ListKey, _ edits: [ListEdit], _ way: ForestOperation.Way
  ) {
    let plant = plants[id]!
    let old = reference.nodes[id]!.list(key)
    var new = old
    for edit in edits { edit.perform(on: &new) }
    func change(_ list: inout ModelArray<Plant>) {
      for edit in edits { edit.perform(on: &list, plant: { plants[$0]! }, number: self.id(of:)) }
    }
    // Of two models with one UUID the first to come stays. Which one that is in a series of steps is not
    // told by the list that they lead to.
    var uuids: Set<UUID> = []
    let isAmbiguous = new.contains { !uuids.insert(reference.nodes[$0]!.uuid).inserted }
    switch isAmbiguous ? .assigned : way {
    case .inPlace: plant.change(key, change)
    case .assigned: plant[key] = ModelArray(new.map { plants[$0]! })
    case .copied:
      var copy = plant[key]
      change(&copy)
      plant[key] = copy
    }
    // Steps that lead back to where they began are steps all the same to coalesced observers.
    if new == old || edits.count > 1 { maybe.insert(id) }
    reference.assign(id, key, new)
  }

  private func performDrop(_ id: Int) {
    let parents = reference.parents
    guard parents[id] == nil, reference.roots[0] != id, reference.roots[1] != id else { return }
    // With it goes what nothing else holds, unless there are cycles in that: these would stay.
    var gone: Set<Int> = [id]
    var isGrowing = true
    while isGrowing {
      isGrowing = false
      for node in reference.reach(id).sorted()
      where !gone.contains(node) && node != reference.roots[0] && node != reference.roots[1] {
        if parents[node]!.allSatisfy({ gone.contains($0.parent) }),
          !gone.contains(where: { reference.reach(node).contains($0) })
        {
          gone.insert(node)
          isGrowing = true
        }
      }
    }
    // What scopes and observers keep for the next change set or tick is let go of.
    flush()
    for watcher in watchers where gone.contains(watcher.node) { watcher.forget() }
    let doomed = gone.sorted().map { Sight(plant: plants[$0], id: $0) }
    order.removeAll(where: gone.contains)
    for node in gone { plants[node] = nil }
    for one in doomed where one.plant != nil { fail("#\(one.id) is still alive") }
    if let saved, gone.contains(saved.root) { self.saved = nil }
    reference.drop(gone)
    reference.forgetSilently()
  }

  private func performCopy(_ id: Int, _ keepingUUIDs: Bool) {
    let copy = plants[id]!.snapshot().makeModel(keepingUUIDs: keepingUUIDs)
    // The copies get numbers in the order in which the originals are found.
    var copies: [Int: Plant] = [id: copy]
    var open = [id]
    var next = 0
    while next < open.count {
      let (original, twin) = (open[next], copies[open[next]]!)
      next += 1
      let held = plants[original]!.held
      expect(held.count == twin.held.count, "the copy of #\(original) holds something else")
      for (child, childTwin) in zip(held, twin.held) {
        let child = self.id(of: child)
        if let known = copies[child] {
          expect(known === childTwin, "the copy of #\(original) is shaped otherwise")
        } else {
          copies[child] = childTwin
          open.append(child)
        }
      }
    }
    var numbers: [Int: Int] = [:]
    for original in open {
      let twin = copies[original]!
      expect(plants.values.allSatisfy { $0 !== twin }, "the copy of #\(original) is no copy")
      twin.friend = nil
      let number = self.id(of: twin)
      numbers[original] = number
      adopt(twin, number)
    }
    for original in open {
      var node = reference.nodes[original]!
      expect((copies[original]!.uuid == node.uuid) == keepingUUIDs, "a UUID was not kept, or was")
      node.uuid = copies[original]!.uuid
      node.friend = nil
      node.friendNode = nil
      node.references = node.references.mapValues { numbers[$0]! }
      node.lists = node.lists.mapValues { $0.map { numbers[$0]! } }
      reference.nodes[numbers[original]!] = node
    }
  }

  // MARK: Fragments

  private func performApply(_ number: Int, _ fragments: [ForestOperation.Fragment]) {
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

  private func write(
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
  private func performState() {
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

  // MARK: Ticks

  func flush() {
    checkStep()
    for number in places.keys.sorted() { places[number]!.scope?.flush() }
    checkDelivery()
    compareReplica(isFlushed: true)
  }

  /// The replica equals the scope: after a flush altogether, else but for what is held back.
  func compareReplica(isFlushed: Bool = false) {
    guard let replica else { return }
    if isFlushed {
      compare(scope(0).fullState(), replica.fullState())
    } else {
      compare(scope(0).sharedState(), replica.fullState())
    }
    expect(!replica.hasCollectedChanges, "the replica has changes of its own")
  }

  private func compare(_ state: [SyncFragment], _ copy: [SyncFragment]) {
    let texts = Set(state.map(\.json.canonicalText))
    let copies = Set(copy.map(\.json.canonicalText))
    if texts == copies { return }
    func words(_ texts: Set<String>) -> String {
      var words = texts.sorted().joined(separator: "\n    ")
      for id in order {
        words = words.replacingOccurrences(of: plants[id]!.uuid.wireText, with: "#\(id)")
      }
      return words
    }
    fail(
      "the replica has\n    \(words(copies.subtracting(texts)))\n  where the scope has\n    "
        + words(texts.subtracting(copies)))
  }

  /// When the first scope has got another root, so does the replica: nothing says that on the wire.
  private func followRoot() {
    let root = reference.roots[0]
    guard root != replicaRoot else { return }
    replica = nil
    keeper.release()
    replicaRoot = root
    guard let root else { return }
    flush()
    let plant = plants[root]!
    let copy = type(of: plant).init()
    copy.ensureRecord().uuidIfMade = plant.uuid
    let made = Scope(name: "Replica", root: copy, models: [Bush.self], ticker: .manual())
    keeper.models = [copy]
    made.addMembershipObserver(keeper)
    do {
      let report = try made.applyFullState(scope(0).fullState(), rootUUID: plant.uuid)
      expect(report.isComplete, "the replica refused \(report.errors)")
    } catch {
      fail("the replica refused its state: \(error)")
    }
    replica = made
    compareReplica()
  }

  // MARK: End

  /// Lets go of everything; the observers stay.
  func release() {
    for id in order { plants[id]!.letGo() }
    for scope in fixed { scope.releaseRoot() }
    for number in places.keys.sorted() { places[number]!.scope?.flush() }
    ticker.advance(by: .seconds(1))
    replica = nil
    keeper.release()
    saved = nil
    plants = [:]
    order = []
    fixed = []
  }

  /// What the reference knows, in words.
  var map: String {
    let nodes = order.compactMap { id in
      reference.nodes[id].map { node in
        "#\(id) in \(reference.scope(of: id).map { "\($0)" } ?? "none"): "
          + node.children.map { "\($0.key) #\($0.child)" }.joined(separator: ", ")
      }
    }
    return nodes.joined(separator: "\n")
  }

  /// Models that were seen and are still there.
  var living: [Int] { sights.values.filter { $0.plant != nil }.map(\.id).sorted() }

  func expect(_ condition: Bool, _ problem: @autoclosure () -> String) {
    if !condition { fail(problem()) }
  }

  func fail(_ problem: String) { problems.append(problem) }
}

extension Plant {
  /// Whom it holds, in order.
  var held: [Plant] {
    [left, right, (self as? Bush)?.crown].compactMap { $0 } + items + others + picks
  }

  /// Lets go of all that it holds: models that hold each other stay for good otherwise.
  func letGo() {
    for key in ListKey.allCases { self[key] = [] }
    left = nil
    right = nil
    (self as? Bush)?.crown = nil
  }
}

/// Knows all models that have ever been in the replica, so that cycles of them can be broken.
private final class ReplicaKeeper: MembershipObserver {
  var models: [ModelObject] = []
  func modelEntered(_ model: ModelObject) { models.append(model) }
  func modelLeft(_ model: ModelObject) {}

  func release() {
    for model in models { (model as? Plant)?.letGo() }
    models = []
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
