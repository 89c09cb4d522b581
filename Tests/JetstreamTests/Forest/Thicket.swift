import Foundation

@testable import Jetstream

/// A value of which the wire knows a part only.
struct TwigMark: CodableValue {
  var shown = 0
  var hidden = 0

  private enum CodingKeys: String, CodingKey { case shown }
}

/// A model with every kind of property, and with values that the wire does not keep to the last bit.
final class Twig: ModelObject {
  @Property var text = ""
  @Property(.local) var note = 0
  @Property(.local) var mark = TwigMark()
  @Property var day = Date(timeIntervalSinceReferenceDate: 0)
  @Property(.counter) var count = 0
  @Property(.minSyncInterval(.seconds(10))) var heat = 0
  @Property var one: Twig?
  @Property var other: Twig?
  @Property(.local) var pick: Twig?
  @Property var items: ModelArray<Twig> = []
  @Property var parts: ModelArray<Twig> = []
  @Property(.local) var picks: ModelArray<Twig> = []
  @WeakReference var friend: Twig?

  static var lists: [ReferenceWritableKeyPath<Twig, ModelArray<Twig>>] {
    [\.items, \.parts, \.picks]
  }
  static var references: [ReferenceWritableKeyPath<Twig, Twig?>] { [\.one, \.other, \.pick] }
}

/// What a closure of the thicket throws.
struct Snap: Error {}

/// Models in one scope that are changed within `modify`, and a replica that is led by the sets.
final class Thicket {
  var generator: SeededGenerator
  let root = Twig()
  let scope: Scope
  let replica: Scope
  let keeper = ReplicaKeeper()
  var twigs: [Twig] = []
  var problems: [String] = []
  var history: [String] = []
  /// How many sets have come out.
  var sets = 0
  /// How many calls were taken back.
  var thrown = 0
  private(set) var numbers: [ObjectIdentifier: Int] = [:]
  /// Whether models may come that share a UUID with one that is there.
  let hasTwins: Bool
  /// Whether observers write while others are told: what they write on the way back stays.
  let hasWriters: Bool
  /// Whether others change the models meanwhile.
  let hasOthers: Bool
  /// How often observers may still write.
  private var writesLeft = 0
  private var isWriting = false

  init(seed: UInt64, hasTwins: Bool, hasWriters: Bool, hasOthers: Bool = false) {
    generator = SeededGenerator(seed: seed)
    self.hasTwins = hasTwins
    self.hasWriters = hasWriters
    self.hasOthers = hasOthers
    scope = Scope(name: "Thicket", root: root, ticker: .manual())
    let copy = Twig()
    copy.ensureRecord().uuidIfMade = root.uuid
    replica = Scope(name: "Replica", root: copy, ticker: .manual())
    // What undoing a set brings back may hold what only local properties have held since.
    replica.addMembershipObserver(keeper)
    add(root)
    for _ in 0..<12 { add(Twig(uuid: anyUUID())) }
    if hasTwins {
      for twin in twigs.shuffled(using: &generator).prefix(4) { add(Twig(uuid: twin.uuid)) }
    }
    scope.onError.listen { _ in }
    scope.onChanges.listen { [unowned self] in hear($0) }
  }

  private func add(_ twig: Twig) {
    numbers[ObjectIdentifier(twig)] = twigs.count
    twigs.append(twig)
    if hasWriters { twig.signals.onPropertyChange.listen { [unowned self] _ in write() } }
  }

  // MARK: Chance

  func random(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }
  func chance(_ percent: Int) -> Bool { random(100) < percent }

  private func anyUUID() -> UUID {
    let (a, b) = (generator.next(), generator.next())
    return UUID(uuid: unsafeBitCast((a, b), to: uuid_t.self))
  }

  func anyTwig() -> Twig { twigs[random(twigs.count)] }

  func someTwig() -> Twig {
    let inside = twigs.filter { $0.scope != nil }
    return chance(75) ? inside[random(inside.count)] : anyTwig()
  }

  private func hear(_ set: ChangeSet) {
    sets += 1
    let isKnown = set.fragments.contains { $0.kind == .add && replica.model($0.uuid) != nil }
    expect(!isKnown || hasTwins, "the set adds what is there: \(set.fragments)")
    func apply(_ fragments: [SyncFragment]) {
      let report = replica.apply(fragments, alsoKnown: { [keeper] in keeper.find($0) })
      expect(report.isComplete, "the replica refused \(report.errors) of \(fragments)")
    }
    let before = replica.canonicalJSON
    apply(set.fragments)
    if isKnown { return }
    let after = replica.canonicalJSON
    apply(set.undo)
    expect(replica.canonicalJSON == before, "\(set.undo) does not take \(set.fragments) back")
    apply(set.fragments)
    expect(replica.canonicalJSON == after, "taken back and done again, it leads elsewhere")
  }

  // MARK: Doing

  /// Changes something, with calls within.
  func edits(depth: Int) {
    for _ in 0...random(6) {
      if hasOthers, chance(25) { others() }
      if depth > 0, chance(25) { nested(depth: depth - 1) } else { edit() }
    }
  }

  /// What an observer does.
  private func write() {
    guard writesLeft > 0, !isWriting, chance(25) else { return }
    writesLeft -= 1
    isWriting = true
    history.append("by an observer:")
    if chance(20) { nested(depth: 0) } else { edit() }
    isWriting = false
  }

  private func nested(depth: Int) {
    let throwing = chance(50)
    let before = picture()
    history.append("begin within\(throwing ? ", to throw" : "")")
    do {
      try scope.modify(chance(50) ? "within" : nil) {
        edits(depth: depth)
        if throwing { throw Snap() }
      }
    } catch {
      thrown += 1
      if !hasWriters, !hasOthers { compare(before, "after a call within has thrown") }
    }
    history.append("end within")
  }

  /// Some step, with all that has to hold after it.
  func step() {
    switch random(10) {
    case 0:
      for _ in 0...random(4) { edit() }
      if chance(50) {
        history.append("seal")
        scope.sealChanges()
      }
    case 1:
      history.append("advance")
      scope.ticker.advance(by: .milliseconds(random(3) * 5_000))
    case 2, 3, 4: call(throwing: false)
    case 5: procedure()
    default: call(throwing: true)
    }
    if chance(60) {
      scope.flush()
      compareReplica("after a flush")
    }
  }

  private func call(throwing: Bool) {
    settle()
    writesLeft = 3
    defer { writesLeft = 0 }
    history.append("begin\(throwing ? ", to throw" : "")")
    let (before, known, content) = (picture(), sets, scope.canonicalJSON)
    do {
      try scope.modify {
        edits(depth: 2)
        if throwing { throw Snap() }
      }
      compareReplica("after a call")
      expect(sets <= known + 1, "\(sets - known) sets came out of one call")
    } catch {
      thrown += 1
      checkUndone(before, known, content)
    }
    history.append("end")
    expect(hasWriters || !scope.hasCollectedChanges, "something is collected after a call")
  }

  private func procedure() {
    settle()
    writesLeft = 3
    defer { writesLeft = 0 }
    history.append("begin procedure")
    let (before, known, content) = (picture(), sets, scope.canonicalJSON)
    let all = [
      Constraint(.add, "Twig", allowsAdditionalProperties: true),
      Constraint(.change, "Twig", ["items": .inserts], allowsAdditionalProperties: true),
      Constraint(.change, "Twig", ["text": .newValue], allowsAdditionalProperties: true),
      Constraint(.change, "Twig", ["parts": .removes], allowsAdditionalProperties: true),
    ]
    let constraints = all.filter { _ in chance(75) }
    do {
      try scope.modify(procedure: "Twig.grow", constraints: constraints) { edits(depth: 1) }
      compareReplica("after a procedure")
    } catch {
      thrown += 1
      checkUndone(before, known, content)
    }
    history.append("end procedure")
    expect(
      hasWriters || hasOthers || !scope.hasCollectedChanges,
      "something is collected after a procedure")
  }

  /// What was changed before a call is sent before it, so that what comes is of the call.
  private func settle() {
    scope.flush()
    compareReplica("before a call")
  }

  private func checkUndone(
    _ before: [(twig: Twig, text: String)], _ known: Int, _ content: String
  ) {
    writesLeft = 0
    if hasWriters {
      scope.ticker.advance(by: .seconds(20))
      expect(!scope.hasCollectedChanges, "what observers have written is not told in time")
      return compareReplica("after observers have written")
    }
    if hasOthers {
      compareReplica("after a call that was taken back")
      // What others have taken out meanwhile as well may wait to be let go.
      scope.flush()
      expect(sets == known, "a set came out of a call that was taken back")
      return
    }
    compare(before, "after a call that was taken back")
    expect(sets == known, "a set came out of a call that was taken back")
    expect(scope.canonicalJSON == content, "another content after a call that was taken back")
    compareReplica("after a call that was taken back")
    if chance(50) {
      scope.flush()
      expect(sets == known, "a set came out behind a call that was taken back")
    } else {
      // What is changed now comes out in time.
      root.text += "."
      scope.ticker.advance(by: scope.changeInterval)
      expect(sets == known + 1, "\(sets - known) sets came out in time")
      compareReplica("in time")
    }
  }

  /// Lets go of everything: models that hold each other stay for good otherwise.
  func release() {
    for model in twigs + keeper.models.compactMap({ $0 as? Twig }) {
      for key in Twig.lists { model[keyPath: key] = [] }
      for key in Twig.references { model[keyPath: key] = nil }
    }
  }
}
