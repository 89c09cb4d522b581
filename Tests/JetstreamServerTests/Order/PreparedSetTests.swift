import Foundation
import Jetstream
import Testing

@testable import JetstreamDocument
@testable import JetstreamServer

/// A server of one scope of rows, with a session that sends change sets, and another one that is told of them.
private final class PreparingWorld {
  let content: RowsContent
  let world: InMemoryWorld
  let ann: RawPeer
  let bob: RawPeer
  /// The records that the scope's log would have.
  private(set) var records: [ScopeRecord] = []
  private(set) var turns = 0

  init(sliceSize: Int, root: UUID, isLogged: Bool = false, bytes: Int? = nil, _ rules: ScopeRules?)
    throws
  {
    var configuration = ServerEngine.Configuration()
    configuration.sliceSize = sliceSize
    configuration.limits.bytesPerScope = bytes
    configuration.streamLimit.leastBytes = 1_000
    configuration.rules = { [rules] _ in rules }
    content = RowsContent(
      name: "Rows", Document(schema: ScopeSchema(of: Canvas.self).schema, root: root))
    world = InMemoryWorld(configuration: configuration)
    world.judgesAtOnce = false
    world.rows = ["Rows": content]
    (ann, bob) = (RawPeer(world), RawPeer(world))
    if isLogged {
      try world.server.host(content, history: nil) { [unowned self] in records.append($0) }
    } else {
      world.server.host(content)
    }
    for peer in [ann, bob] {
      #expect(peer.createSession() == nil)
      peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Rows"))))
    }
    settle()
  }

  /// Sends a change set, and returns the text of the answer.
  func submit(_ fragments: [SyncFragment], atomic: Bool? = nil) -> String? {
    let index = ann.send(fragments, atomic: atomic)
    settle()
    for case .scopeSyncReply(let reply) in ann.messages where reply.replyTo == index {
      return reply.description
    }
    return nil
  }

  private func settle() {
    turns += world.judgeAll()
    world.server.stored(records.count, of: content)
    turns += world.judgeAll()
  }

  /// The change sets that the other session was told.
  var told: [String] { bob.syncs.map(\.description) }

  var inverses: [[JSONValue]] { records.map { $0.undo.map(\.json) } }
}

/// Random change sets of a canvas and its shapes. Some of what they do cannot be done.
private struct RandomSets {
  let root: UUID
  var generator: SeededGenerator
  /// Models that were added at some time.
  private var shapes: [UUID] = []
  /// Those that the next change set may name.
  private var named: [UUID] = []

  init(seed: UInt64, root: UUID) {
    (self.root, generator) = (root, SeededGenerator(seed: seed))
  }

  private mutating func roll(_ sides: Int) -> Int { Int.random(in: 0..<sides, using: &generator) }

  private mutating func uuid() -> UUID {
    UUID(uuid: unsafeBitCast((generator.next(), generator.next()), to: uuid_t.self))
  }

  private mutating func shape() -> UUID {
    named.randomElement(using: &generator) ?? uuid()
  }

  private func text(_ uuid: UUID) -> JSONValue { .string(uuid.wireText) }

  private mutating func values() -> JSONObject {
    var values: JSONObject = [:]
    if roll(2) == 0 { values["x"] = .double(Double(roll(8))) }
    if roll(2) == 0 { values["label"] = .string("é\(roll(5))") }
    if roll(4) == 0 { values["tags"] = .array([.integer(Int64(roll(3)))]) }
    if roll(40) == 0 { values["x"] = "wide" }
    return values
  }

  private mutating func operation() -> PropertyOperation {
    switch roll(6) {
    case 0: .remove(shape())
    case 1: .move(shape(), .start)
    case 2: .insert(shape(), .start)
    default: .insert(shape(), .end)
    }
  }

  /// Returns the next change set of a canvas that has some models.
  mutating func next(_ present: [UUID]) -> [SyncFragment] {
    // One fragment that names a model which is not there is rejected, with the additions that it would hold.
    named = roll(5) == 0 ? shapes : present.filter { $0 != root }.sorted()
    var fragments: [SyncFragment] = []
    var added: [UUID] = []
    for _ in 0..<roll(12) {
      // Now and then one that is there, or was there, is added again.
      let uuid = roll(6) == 0 ? shape() : self.uuid()
      var properties = values()
      if let part = added.randomElement(using: &generator), roll(3) == 0 {
        properties[roll(2) == 0 ? "parts" : "corners/\(roll(3))"] = text(part)
        if let part = properties["parts"] { properties["parts"] = .array([part]) }
      }
      let name = roll(60) == 0 ? "Blob" : "Shape"
      fragments.append(SyncFragment(.add, uuid: uuid, className: name, properties: properties))
      added.append(uuid)
    }
    shapes += added
    var change = SyncFragment(.change, uuid: root, className: "Canvas", properties: [:])
    var inserted = added.filter { _ in roll(8) > 0 }.map { PropertyOperation.insert($0, .end) }
    // More than are looked for one by one.
    if roll(4) == 0 { inserted += (0..<40).map { _ in operation() } }
    for _ in 0..<roll(3) { inserted.append(operation()) }
    change.operations[roll(5) == 0 ? "hidden" : "shapes"] = inserted
    if roll(3) == 0 { change.properties["selected"] = text(shape()) }
    if roll(3) == 0 {
      change.properties["named/a\(roll(4))"] = roll(3) == 0 ? .null : text(shape())
    }
    if roll(5) == 0 { change.operations["likes"] = [.add(Int64(roll(9)))] }
    fragments.insert(change, at: roll(fragments.count + 1))
    for _ in 0..<roll(4) {
      var edit = SyncFragment(.change, uuid: shape(), className: "Shape", properties: values())
      if roll(3) == 0 { edit.operations["parts"] = [operation()] }
      if !edit.properties.isEmpty || !edit.operations.isEmpty { fragments.append(edit) }
    }
    return fragments
  }
}

/// Change sets that are judged and made ready in slices lead to the same as those that are decided in one piece.
@Suite("Large change sets that are made ready before they are applied")
struct PreparedSetTests {
  private let root = UUID(uuid: (7, 0, 0, 0, 0, 0, 64, 0, 128, 0, 0, 0, 0, 0, 0, 1))

  private static var rules: ScopeRules {
    var rules = ScopeRules(otherwise: .allow)
    rules.create(Shape.self, "Too wide") { _, shape in shape.x < 7 }
    return rules
  }

  @Test("Random ones lead to the same as in one piece", arguments: [UInt64](1...12))
  func random(seed: UInt64) throws {
    let rules = seed % 3 == 0 ? Self.rules : nil
    let (isLogged, bytes) = (seed % 2 == 0, seed % 4 == 1 ? 30_000 : nil)
    func world(_ sliceSize: Int) throws -> PreparingWorld {
      try PreparingWorld(
        sliceSize: sliceSize, root: root, isLogged: isLogged, bytes: bytes, rules)
    }
    let (sliced, whole) = (try world(2), try world(1_000_000))
    var sets = RandomSets(seed: seed, root: root)
    var acceptedInAWord = 0
    for step in 0..<60 {
      let (fragments, isAtomic) = (sets.next(whole.content.document.uuids), step % 5 == 4)
      let answer = sliced.submit(fragments, atomic: isAtomic)
      #expect(answer != nil && answer == whole.submit(fragments, atomic: isAtomic), "step \(step)")
      if answer?.contains(#""accepted":"#) == true { acceptedInAWord += 1 }
      #expect(sliced.told == whole.told, "step \(step)")
      #expect(sliced.inverses == whole.inverses, "step \(step)")
      let (own, other) = (sliced.content.document, whole.content.document)
      try #require(own.canonicalJSON == other.canonicalJSON, "step \(step)")
      #expect(own.checkInvariants() == [], "step \(step)")
    }
    #expect(sliced.turns > whole.turns + 1_000)
    #expect(sliced.told.count > 10 && acceptedInAWord > 3)
  }

  private func additions(_ count: Int) -> [SyncFragment] {
    let uuids = (0..<count).map { _ in UUID() }
    let insertion = SyncFragment(
      .change, uuid: root, className: "Canvas", properties: [:],
      operations: ["shapes": uuids.map { .insert($0, .end) }])
    return [insertion]
      + uuids.map { SyncFragment(.add, uuid: $0, className: "Shape", properties: ["x": 2]) }
  }

  @Test("The step that applies one leaves no addition to be written or told", arguments: [40, 400])
  func leftToTheStep(count: Int) throws {
    let content = RowsContent(
      name: "Rows", Document(schema: ScopeSchema(of: Canvas.self).schema, root: root))
    let order = ScopeOrder(
      content: content, epoch: "e",
      streamLimit: ScopeStream.Extent(sets: 100, bytes: 1 << 20))
    var submitter = ScopeOrder.Submitter(
      session: 1, proven: 0, rebases: true, missed: UnacknowledgedWrites())
    submitter.usesOperations = true
    let fragments = additions(count)
    let draft = order.judgedDraft(of: fragments, isAtomic: false, by: submitter)
    let prepared = try #require(order.preparation(of: draft, fragments, as: nil, by: submitter))
    var parts = 1
    var budget = WorkBudget(10)
    while !prepared.advance(&budget, in: order) {
      budget = WorkBudget(10)
      parts += 1
    }
    #expect(parts > count / 4 && prepared.isReady(for: order))
    #expect(content.document.count == 1 && order.sequence == 0)
    #expect(prepared.openCount == 1)
    let result = order.submit(
      fragments, isAtomic: false, by: submitter, judged: draft, prepared: prepared)
    #expect(content.document.count == count + 1 && result.item?.fragments.count == count + 1)
    #expect(result.item?.text?.bytes == result.item.map { FragmentsText($0.fragments).bytes })
  }

  @Test("What others cannot repeat is told as the value that it has led to")
  func unrepeatable() throws {
    let (gone, behind) = (UUID(), UUID())
    func edit(_ operations: [PropertyOperation]) -> SyncFragment {
      SyncFragment(
        .change, uuid: root, className: "Canvas", properties: [:],
        operations: ["shapes": operations])
    }
    func addition(_ uuid: UUID) -> SyncFragment {
      SyncFragment(.add, uuid: uuid, className: "Shape", properties: [:])
    }
    var sets = [[addition(gone), edit([.insert(gone, .end)])], [edit([.remove(gone)])]]
    var large = additions(20)
    // A client that does not know the model has no place behind it.
    large.append(addition(behind))
    large.append(edit([.insert(gone, .start), .insert(behind, .after([gone])), .remove(gone)]))
    sets.append(large)
    let (sliced, whole) = (
      try PreparingWorld(sliceSize: 2, root: root, nil),
      try PreparingWorld(sliceSize: 1_000_000, root: root, nil)
    )
    for set in sets { #expect(sliced.submit(set) == whole.submit(set)) }
    #expect(sliced.told == whole.told && sliced.told.count == 3)
    #expect(sliced.content.document.canonicalJSON == whole.content.document.canonicalJSON)
  }

  @Test("A preparation is dropped once the scope has changed")
  func changed() throws {
    let world = try PreparingWorld(sliceSize: 4, root: root, nil)
    let fragments = additions(20)
    let index = world.ann.send(fragments)
    // It is judged by then, and is being made ready.
    for _ in 0..<40 { #expect(world.world.judge()) }
    #expect(world.content.document.count == 1 && world.ann.replies(to: index) == nil)
    let other = SyncFragment(
      .change, uuid: root, className: "Canvas",
      properties: ["selected": .string(fragments[1].uuid.wireText)])
    let shape = SyncFragment(
      .add, uuid: fragments[1].uuid, className: "Shape", properties: ["x": 3])
    world.bob.submit([shape, other])
    world.world.judgeAll()
    #expect(world.ann.replies(to: index) == Array(repeating: FragmentReply(), count: 21))
    #expect(world.content.document.count == 21)
    #expect(world.content.document.checkInvariants() == [])
  }
}
