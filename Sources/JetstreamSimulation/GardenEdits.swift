import Jetstream

/// The random edits of ``SimulationWorld/garden``.
struct GardenEdits {
  typealias List = ReferenceWritableKeyPath<GardenPlan, ModelArray<GardenBed>>
  struct Refusal: Error {}

  let plan: GardenPlan
  let app: GardenApp
  var random: SimulationRandom

  private var features: SimulationConfiguration.Features { app.process.features }
  private var scope: Scope { app.scope }

  /// Makes one random edit, and returns a description of it.
  mutating func any() -> String {
    var rest = random.unit()
    func happens(_ rate: Double) -> Bool {
      defer { rest -= rate }
      return rest >= 0 && rest < rate
    }
    if happens(features.undo) { return undo() }
    if happens(features.boundedCounters) { return bounded() }
    if happens(features.cutAndPaste) { return cutOrPaste() }
    if happens(app.process.isServer ? features.serverLocalHolders : features.localHolders) {
      return hold()
    }
    if happens(features.rootReferences) { return referToRoot() }
    if happens(features.dictionaries) { return mark() }
    if happens(features.throwing) { return takeBack() }
    if happens(features.throttling) { return throttled() }
    switch random.number(in: 0...19) {
    case 0, 1: return several(atomically: true)
    case 2: return several(atomically: false)
    case 3: return idea()
    default: return small()
    }
  }

  private mutating func small() -> String {
    switch random.number(in: 0...11) {
    case 0...3: structure()
    case 4: planValue()
    case 5, 6: random.chance(2 * features.dictionaries) ? mark() : reference()
    default: bedValue()
    }
  }

  // MARK: Beds

  private func name(_ bed: GardenBed?) -> String {
    bed.map { String($0.uuid.uuidString.lowercased().prefix(8)) } ?? "nothing"
  }

  private mutating func bed() -> GardenBed {
    let bed = random.make(GardenBed.init(uuid:))
    bed.name = "bed \(random.number(in: 0...99))"
    if random.chance(features.rootReferences) { bed.plan = plan }
    if random.chance(features.rootReferences) { bed.home = plan }
    return bed
  }

  private mutating func anyBed() -> GardenBed? {
    let beds =
      Array(plan.beds) + Array(plan.nursery) + [plan.favourite].compactMap(\.self)
      + plan.marks.values
    guard let bed = random.pick(from: beds) else { return nil }
    return random.chance(0.3) ? random.pick(from: bed.plants + bed.corners.values) ?? bed : bed
  }

  /// Returns true if the bed can be put into the tree: the scope has no other object with its UUID.
  private func isUsable(_ bed: GardenBed) -> Bool {
    scope.model(bed.uuid).map { $0 === bed } ?? true
  }

  private mutating func list() -> List { random.chance(0.6) ? \.beds : \.nursery }

  private mutating func insert(_ bed: GardenBed, into list: List) {
    plan[keyPath: list].insert(bed, at: random.number(in: 0...plan[keyPath: list].count))
  }

  // MARK: Values

  private mutating func planValue() -> String {
    let number = random.number(in: 0...99)
    switch number % 4 {
    case 0: plan.title = "title \(number)"
    case 1: plan.visits += number - 40
    case 2: plan.budget += number - 50
    default:
      let row = "row \(number % 3)"
      if number > 80 {
        plan.layout[row] = nil
      } else {
        plan.layout[row, default: [:]]["column \(number % 2)"] = [number, number / 2]
      }
    }
    return "changes a value of the plan (\(number))"
  }

  private mutating func bedValue() -> String {
    guard let bed = anyBed() else { return "has no bed" }
    let number = random.number(in: 0...99)
    switch random.number(in: 0...5) {
    case 0: bed.name = "name \(number)"
    case 1: bed.note = number > 50 ? nil : "note \(number)"
    case 2: bed.area = Float(number) / 3
    case 3: bed.isSunny.toggle()
    case 4: bed.harvest += number - 30
    default: bed.cost += number - 50
    }
    return "changes a value of \(name(bed)) (\(number))"
  }

  /// Changes counters whose types have few values, in steps that reach both limits.
  private mutating func bounded() -> String {
    let step = random.number(in: -130...130)
    func stepped<Value: FixedWidthInteger>(_ value: Value) -> Value {
      Value(clamping: Int(value) + step)
    }
    switch random.number(in: 0...3) {
    case 0: plan.seeds = stepped(plan.seeds)
    case 1: plan.warmth = stepped(plan.warmth)
    case 2: plan.seeds = step < 0 ? plan.seeds - min(plan.seeds, 1) : min(plan.seeds, 254) + 1
    default:
      guard let bed = anyBed() else { return "has no bed" }
      bed.water = stepped(bed.water)
    }
    return "adds \(step) to a small counter"
  }

  private mutating func throttled() -> String {
    let number = random.number(in: 0...99)
    switch random.number(in: 0...3) {
    case 0: plan.steps += number - 40
    case 1: plan.level = number % 5
    case 2: anyBed()?.height = Double(number % 7) / 2
    default: anyBed()?.leaves += number - 20
    }
    return "changes something throttled (\(number))"
  }

  // MARK: Structure

  private mutating func structure() -> String {
    let list = list()
    let count = plan[keyPath: list].count
    switch random.number(in: 0...7) {
    case 0, 1:
      let new = bed()
      insert(new, into: list)
      return "inserts \(name(new))"
    case 2:
      guard let bed = random.pick(from: plan[keyPath: list]) else { return "removes nothing" }
      plan[keyPath: list].remove(bed)
      return "removes \(name(bed))"
    case 3:
      guard count > 1 else { return "moves nothing" }
      let (old, new) = (random.number(in: 0...count - 1), random.number(in: 0...count - 1))
      plan[keyPath: list].move(from: old, to: new)
      return "moves \(old) to \(new)"
    case 4:
      guard let bed = random.pick(from: plan[keyPath: list]) else { return "moves nothing" }
      plan[keyPath: list].remove(bed)
      insert(bed, into: list == \.beds ? \.nursery : \.beds)
      return "moves \(name(bed)) to the other list"
    default:
      guard let whole = anyBed() else { return "plants nothing" }
      let part = random.chance(0.8) ? bed() : anyBed()!
      guard part !== whole else { return "plants nothing" }
      whole.plants.append(part)
      return "plants \(name(part)) in \(name(whole))"
    }
  }

  private mutating func reference() -> String {
    switch random.number(in: 0...3) {
    case 0:
      plan.favourite = random.chance(0.3) ? nil : random.chance(0.3) ? bed() : anyBed()
      return "makes \(name(plan.favourite)) the favourite"
    case 1:
      plan.oldest = anyBed()
      return "makes \(name(plan.oldest)) the oldest"
    case 2:
      guard let bed = anyBed(), let other = anyBed(), bed !== other else {
        return "refers to nothing"
      }
      bed.twin = random.chance(0.3) ? nil : other
      return "makes \(name(bed.twin)) the twin of \(name(bed))"
    default:
      guard let bed = anyBed() else { return "refers to nothing" }
      bed.mother = anyBed()
      return "makes \(name(bed.mother)) the mother of \(name(bed))"
    }
  }

  /// Changes entries of dictionaries.
  private mutating func mark() -> String {
    let keys = ["north", "south", "\u{e9}t\u{e9}", "a/b"]
    let key = random.pick(from: keys)!
    switch random.number(in: 0...7) {
    case 0:
      plan.marks[key] = nil
      return "takes the mark \(key) away"
    case 1:
      let other = random.pick(from: keys)!
      let bed = plan.marks[key]
      plan.marks[key] = nil
      plan.marks[other] = bed
      return "moves the mark \(key) to \(other)"
    case 2:
      let bed = bed()
      plan.marks = [key: bed]
      return "marks nothing but \(name(bed))"
    case 3, 4:
      guard let whole = anyBed() else { return "marks nothing" }
      let corner = random.number(in: 1...3)
      let bed = random.chance(0.3) ? nil : random.chance(0.5) ? bed() : anyBed()
      guard bed !== whole else { return "marks nothing" }
      whole.corners[corner] = bed
      return "puts \(name(bed)) into corner \(corner) of \(name(whole))"
    case 5:
      // From a list into the dictionary, or back.
      if let bed = plan.marks[key], random.chance(0.5) {
        plan.marks[key] = nil
        insert(bed, into: list())
        return "unmarks \(name(bed))"
      }
      let list = list()
      guard let bed = random.pick(from: plan[keyPath: list]) else { return "marks nothing" }
      plan[keyPath: list].remove(bed)
      plan.marks[key] = bed
      return "moves \(name(bed)) to the mark \(key)"
    default:
      let bed = random.chance(0.4) ? bed() : anyBed()
      plan.marks[key] = bed
      return "marks \(name(bed)) as \(key)"
    }
  }

  private mutating func referToRoot() -> String {
    guard let bed = anyBed() else { return "refers to nothing" }
    if random.chance(0.5) {
      bed.plan = random.chance(0.6) ? plan : nil
    } else {
      bed.home = random.chance(0.6) ? plan : nil
    }
    return "has \(name(bed)) refer to the plan, or not"
  }

  /// Removes a bed and flushes the scope, or puts back a bed that was removed before.
  private mutating func cutOrPaste() -> String {
    if let bed = app.cut.last, random.chance(0.6) {
      app.cut.removeLast()
      guard isUsable(bed) else { return "pastes nothing" }
      insert(bed, into: list())
      return "pastes \(name(bed))"
    }
    let list = list()
    guard let bed = random.pick(from: plan[keyPath: list]) else { return "cuts nothing" }
    plan[keyPath: list].remove(bed)
    app.cut.append(bed)
    scope.flush()
    return "cuts \(name(bed))"
  }

  /// Changes the beds in local properties, which other replicas do not see.
  private mutating func hold() -> String {
    switch random.number(in: 0...4) {
    case 0:
      plan.held = random.chance(0.4) ? bed() : anyBed()
      return "holds \(name(plan.held))"
    case 1:
      let new = random.chance(0.3) ? bed() : anyBed()
      if let new { plan.clipboard.append(new) }
      return "clips \(name(new))"
    case 2:
      guard let bed = random.pick(from: plan.clipboard) else { return "clips nothing" }
      plan.clipboard.remove(bed)
      return "drops \(name(bed))"
    case 3:
      guard let bed = random.pick(from: plan.clipboard) else { return "clips nothing" }
      bed.note = "clipped"
      return "changes \(name(bed)) on the clipboard"
    default:
      guard let bed = random.pick(from: plan.clipboard) ?? plan.held, isUsable(bed) else {
        return "shares nothing"
      }
      plan.clipboard.remove(bed)
      insert(bed, into: list())
      return "shares \(name(bed))"
    }
  }

  // MARK: Change sets

  private mutating func undo() -> String {
    if random.chance(0.6) {
      app.history.undo()
      return "undoes"
    }
    app.history.redo()
    return "does again"
  }

  private mutating func several(atomically: Bool) -> String {
    var words: [String] = []
    func change(_ edits: inout GardenEdits) {
      for _ in 0..<edits.random.number(in: 1...4) { words.append(edits.small()) }
      if atomically, edits.random.chance(0.15) { words.append(edits.idea()) }
    }
    if atomically {
      scope.modifyAtomically("several") { change(&self) }
    } else {
      scope.modify("several", author: "gardener") { change(&self) }
    }
    return words.joined(separator: " and ") + (atomically ? ", at once" : ", together")
  }

  /// Makes changes in a modification that throws, which must leave nothing of them; sometimes inside another
  /// modification, which goes on.
  private mutating func takeBack() -> String {
    var words: [String] = []
    func change(_ edits: inout GardenEdits) {
      for _ in 0..<edits.random.number(in: 1...3) { words.append(edits.small()) }
    }
    let isNested = random.chance(0.4)
    if isNested {
      scope.modify {
        change(&self)
        words.append("but not")
        _ = try? scope.modify {
          change(&self)
          throw Refusal()
        }
      }
      return words.joined(separator: " and ")
    }
    var before = ""
    _ = try? scope.modify {
      before = app.visible
      change(&self)
      throw Refusal()
    }
    // Observers that write may react to the rollback.
    if !app.process.hasRules {
      app.compare(before, "a modification that has thrown has left something")
    }
    return "takes back that it " + words.joined(separator: " and ")
  }

  /// Adds a model that the server rejects.
  private mutating func idea() -> String {
    guard scope.schema(named: "GardenIdea") != nil else { return small() }
    let idea = random.make(GardenIdea.init(uuid:))
    idea.reason = "idea"
    insert(idea, into: list())
    return "has the idea \(name(idea))"
  }
}
