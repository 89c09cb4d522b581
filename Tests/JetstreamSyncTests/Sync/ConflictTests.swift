import Foundation
@testable import Jetstream
import JetstreamServer
import Testing

@Suite("What does not count is in the ledger")
struct ConflictTests: ScriptedSuite {
  let server = ScriptedServer()
  let shape = Shape()

  init() { joinWithShape() }

  private var items: [Conflict] { scope.conflicts.items }

  /// Makes a set and has it rejected, fragment for fragment, after others have made these changes.
  @discardableResult
  private func reject(
    _ replies: [FragmentReply], others: [SyncFragment] = [], _ body: () -> Void
  ) -> ChangeSetHandle {
    let handle = scope.modify("tidy up", author: "Ada", body)
    let index = server.takeSyncs().last?.index ?? 0
    for fragment in others { server.tell(fragment) }
    server.deliver([.scopeSyncReply(ScopeSyncReply(replyTo: index, fragmentReplies: replies))])
    return handle
  }

  // MARK: What is in it

  @Test(
    "A rejected value comes with the one before, the one that counts, and who wanted what and why")
  func rejectedValue() throws {
    canvas.name = "before"
    scope.flush()
    server.reply(to: server.takeSyncs()[0].index, ok)
    let handle = reject([no, ok], others: [change(canvas, ["name": "theirs"])]) {
      canvas.name = "mine"
      shape.x = 5
    }
    let item = try #require(items.first)
    #expect(items.count == 1, "what was accepted is no conflict")
    #expect(item.model == canvas.uuid && item.className == "Canvas" && item.property == "name")
    #expect(item.base == "before" && item.mine == .value("mine") && item.theirs == "theirs")
    #expect(item.reason == .rejected(.rejected("no")) && item.changeSet == handle.changeSet.id)
    #expect(item.author == "Ada" && item.message == "tidy up")
    #expect(scope.conflicts.items(of: canvas) == [item])
    #expect(scope.conflicts.items(of: shape).isEmpty)
    #expect(canvas.name == "theirs" && shape.x == 5)
  }

  @Test("What counts is not what another pending set shows")
  func behindPending() {
    let first = scope.modify { canvas.name = "one" }
    scope.modify { canvas.name = "two" }
    canvas.name = "not in a set yet"
    let sent = server.takeSyncs()
    server.reply(to: sent[0].index, no)
    #expect(first.state == .rejected && canvas.name == "not in a set yet")
    #expect(items.map(\.mine) == [.value("one")] && items.map(\.theirs) == [.null])
  }

  @Test("Values that the server has replaced are conflicts")
  func modified() {
    reject([FragmentReply(modifications: ["label": "theirs"])]) {
      shape.label = "mine"
      shape.y = 7
    }
    #expect(items.map(\.property) == ["label"] && items.map(\.reason) == [.modified])
    #expect(items.map(\.mine) == [.value("mine")] && items.map(\.theirs) == ["theirs"])
    #expect(shape.label == "theirs" && shape.y == 7)
  }

  @Test(
    "Operations and additions are conflicts as a whole; what counts of a model that is gone is nothing"
  )
  func operations() throws {
    let new = Shape()
    reject([no, no]) {
      new.label = "new"
      canvas.shapes.append(new)
      canvas.likes += 2
    }
    #expect(items.map(\.property) == [nil, "shapes", "likes"])
    guard case .addition(let values)? = items.first?.mine else {
      Issue.record("The addition is missing.")
      return
    }
    #expect(values["label"] == "new" && items[0].model == new.uuid && items[0].theirs == nil)
    #expect(items[1].theirs == .array([.string(shape.uuid.uuidString.lowercased())]))
    #expect(items[2].mine == .operations([.add(2)]) && items[2].theirs == 0)
    reject([no], others: [change(canvas, ["shapes": []])]) { shape.label = "lost" }
    #expect(items.last?.property == "label" && items.last?.theirs == nil)
  }

  @Test("Observers hear of a conflict when what counts is visible, once")
  func signals() {
    var heard: [String?] = []
    scope.conflicts.onAdd.listen { [canvas] in
      #expect(canvas.name == nil, "what was rejected is taken back by then")
      heard.append($0.property)
    }
    var gone: [Conflict] = []
    scope.conflicts.onRemove.listen { gone.append($0) }
    reject([no]) { canvas.name = "mine" }
    #expect(heard == ["name"] && gone.isEmpty)
    let item = items[0]
    scope.conflicts.discard(item.id)
    scope.conflicts.discard(item.id)
    #expect(gone == [item] && items.isEmpty && heard == ["name"] && canvas.name == nil)
  }

  @Test("Thousands of conflicts are discarded one by one, in any order")
  func discardMany() {
    let conflicts = (0..<3_000).map { number in
      Conflict(
        id: UUID(), model: shape.uuid, className: "Shape", property: "label", base: nil,
        mine: .value(.string("\(number)")), theirs: nil, reason: .overwritten, theirAuthor: nil,
        changeSet: UUID(), author: nil, message: nil)
    }
    scope.conflicts.add(conflicts)
    var discarded: [Conflict] = []
    var removed: [Conflict] = []
    scope.conflicts.onDiscard.listen { discarded += $0 }
    scope.conflicts.onRemove.listen { removed.append($0) }
    let order = conflicts.prefix(1_500) + conflicts.suffix(1_499).reversed()
    for conflict in order { scope.conflicts.discard(conflict.id) }
    #expect(items == [conflicts[1_500]])
    #expect(discarded == Array(order) && removed == Array(order))
  }

  @Test("A conflict that a listener has discarded or retried is not announced afterwards")
  func announcedWhenGone() {
    var log: [String] = []
    scope.conflicts.onAdd.listen { [scope] conflict in
      log.append("+\(conflict.property ?? "")")
      if conflict.property == "name" { scope.retry(scope.conflicts.items) }
    }
    scope.conflicts.onRemove.listen { log.append("-\($0.property ?? "")") }
    reject([no, no]) {
      canvas.name = "mine"
      shape.x = 5
    }
    #expect(log == ["+name", "-name", "-x"] && items.isEmpty)
  }

  @Test(
    "A retry that waits for the delivery of another change set is delivered before logs forget the conflict"
  )
  func retriedWhileDelivering() throws {
    reject([no]) { canvas.name = "mine" }
    let item = try #require(items.first)
    var log: [String] = []
    scope.conflicts.onDiscard.listen { log.append("forgotten: \($0.count)") }
    scope.onSealedChanges.listen { log.append("\($0.set.fragments[0].properties)") }
    scope.onChanges.listenOnce { [scope] _ in scope.retry([item]) }
    scope.modify { shape.x = 5 }
    #expect(log == [#"{"x":5}"#, #"{"name":"mine"}"#, "forgotten: 1"])
    #expect(items.isEmpty && canvas.name == "mine")
  }

  @Test(
    "What a listener of the ledger changes when a retry has taken a conflict out comes behind the retry"
  )
  func changedBehindRetry() throws {
    reject([no]) { canvas.name = "mine" }
    let item = try #require(items.first)
    var log: [String] = []
    scope.onSealedChanges.listen { log.append("\($0.set.fragments[0].properties)") }
    scope.conflicts.onRemove.listenOnce { [scope, canvas] _ in
      scope.modify { canvas.name = "later" }
    }
    scope.onChanges.listenOnce { [scope] _ in scope.retry([item]) }
    scope.modify { shape.x = 5 }
    #expect(log == [#"{"x":5}"#, #"{"name":"mine"}"#, #"{"name":"later"}"#])
    #expect(canvas.name == "later")
  }

  // MARK: What becomes of it

  @Test("What an observer writes while a rejection is taken in settles it")
  func settledMeanwhile() {
    var corrections = 0
    canvas.signals.onPropertyChange.listen { [canvas, scope] _ in
      if canvas.name == "mine" || corrections > 0 { return }
      corrections += 1
      scope.modify { canvas.name = "corrected" }
    }
    reject([no, no]) {
      canvas.name = "mine"
      shape.label = "mine"
    }
    #expect(corrections == 1 && canvas.name == "corrected")
    scope.flush()
    #expect(items.map(\.property) == ["label"])
  }

  @Test("A retry within a call of modify that throws is taken back, and the conflict stays")
  func retryTakenBack() throws {
    struct Unwanted: Error {}
    reject([no, no]) {
      canvas.name = "mine"
      shape.x = 5
    }
    let conflicts = items
    #expect(throws: Unwanted.self) {
      try scope.modify {
        scope.retry(conflicts)
        #expect(canvas.name == "mine" && shape.x == 5)
        throw Unwanted()
      }
    }
    #expect(canvas.name == nil && shape.x == 0 && items == conflicts)
    scope.modify { scope.retry([conflicts[0]]) }
    #expect(canvas.name == "mine" && items == [conflicts[1]])
    #expect(server.takeSyncs().flatMap(\.fragments) == [change(canvas, ["name": "mine"])])
    // What is so already is over as well.
    scope.modify { shape.x = 5 }
    scope.conflicts.restore(conflicts)
    scope.modify { scope.retry([conflicts[1]]) }
    #expect(!items.contains { $0.property == "x" })
    // A call within another one that throws takes back its own.
    scope.modify {
      _ = try? scope.modify {
        scope.retry(items)
        throw Unwanted()
      }
    }
    #expect(items.map(\.property) == ["name"])
  }

  @Test("A log is told of a retry by an observer of remote changes once the change set is made")
  func retryAmongRemoteChanges() {
    reject([no, no]) {
      canvas.name = "mine"
      shape.x = 5
    }
    let conflicts = items
    var (removed, discarded): ([String?], [String?]) = ([], [])
    scope.conflicts.onRemove.listen { removed.append($0.property) }
    scope.conflicts.onDiscard.listen { discarded += $0.map(\.property) }
    shape.observeChangeImmediately(shape, \.label) { [scope] _, _, _ in
      scope.retry([conflicts[0]])
      scope.modify { scope.retry([conflicts[1]]) }
    }
    server.tell(change(shape, ["label": "theirs"]))
    #expect(removed == ["name", "x"] && items.isEmpty && canvas.name == "mine" && shape.x == 5)
    #expect(discarded.isEmpty)
    scope.flush()
    #expect(discarded == ["name", "x"] && removed == discarded)
    #expect(server.takeSyncs().count == 1)
  }

  @Test("Two observers of the same remote changes, and the app behind them, retry a conflict once")
  func retryTwiceAmongRemoteChanges() {
    reject([no]) { canvas.likes += 3 }
    let conflicts = items
    for _ in 0..<2 {
      shape.observeChangeImmediately(shape, \.label) { [scope] _, _, _ in
        while let conflict = scope.conflicts.items.first { scope.retry([conflict]) }
      }
    }
    server.tell(change(shape, ["label": "theirs"]))
    scope.retry(items)
    scope.flush()
    #expect(conflicts.count == 1 && items.isEmpty && canvas.likes == 3)
  }

  @Test("A conflict is retried once in a call of modify")
  func retryTwiceInModify() {
    reject([no]) { canvas.likes += 3 }
    scope.modify {
      scope.retry(items)
      scope.retry(items)
    }
    #expect(items.isEmpty && canvas.likes == 3)
  }

  @Test("A retry by an observer of remote changes that is taken back leaves the conflict")
  func retryTakenBackAmongRemoteChanges() {
    struct Unwanted: Error {}
    reject([no]) { canvas.name = "mine" }
    let conflicts = items
    shape.observeChangeImmediately(shape, \.label) { [scope] _, _, _ in
      #expect(throws: Unwanted.self) {
        try scope.modify {
          scope.retry(conflicts)
          throw Unwanted()
        }
      }
    }
    server.tell(change(shape, ["label": "theirs"]))
    scope.flush()
    #expect(items == conflicts && canvas.name == nil && server.takeSyncs().isEmpty)
  }

  @Test("A retry is a change set like any other")
  func retry() {
    reject([no, ok]) {
      canvas.name = "mine"
      shape.x = 5
    }
    let handle = scope.retry(items, message: "again", author: "Bob")
    #expect(items.isEmpty && canvas.name == "mine")
    let sent = server.takeSyncs()
    #expect(sent.flatMap(\.fragments) == [change(canvas, ["name": "mine"])])
    #expect(handle.changeSet.message == "again" && handle.changeSet.author == "Bob")
    server.reply(to: sent[0].index, ok)
    #expect(handle.state == .accepted && items.isEmpty && canvas.name == "mine")
  }

  @Test("A retry makes nothing again that has left the ledger, whatever copies the app has")
  func retryOfOldCopies() throws {
    reject([no, no]) {
      canvas.name = "mine"
      shape.x = 5
    }
    let copies = items
    scope.conflicts.discard(copies[0].id)
    let handle = scope.retry(copies)
    #expect(canvas.name == nil && shape.x == 5 && items.isEmpty)
    #expect(handle.changeSet.fragments.map(\.uuid) == [shape.uuid])
    shape.x = 6
    let again = scope.retry(copies)
    #expect(canvas.name == nil && shape.x == 6 && again.changeSet.fragments.isEmpty)
  }

  @Test(
    "A retry makes what the ledger has of a conflict by then, with the consequences that are left")
  func retryOfChangedConflict() throws {
    scope.modify {
      canvas.name = "mine"
      shape.label = "mine"
      shape.x = 5
    }
    let index = try #require(server.takeSyncs().last).index
    let consequence = FragmentReply(error: .rejected("no"), causedBy: 0)
    server.deliver([
      .scopeSyncReply(ScopeSyncReply(replyTo: index, fragmentReplies: [no, consequence]))
    ])
    let copy = try #require(items.first)
    #expect(items.count == 1 && copy.consequences.map(\.property) == ["label", "x"])
    scope.conflicts.discard(copy.consequences[0].id)
    scope.retry([copy])
    #expect(items.isEmpty && canvas.name == "mine" && shape.label == "" && shape.x == 5)
  }

  @Test("A retry of an atomic change set is atomic, also of one that a log has kept")
  func atomicRetry() throws {
    for isAtomic in [true, nil] as [Bool?] {
      func change() {
        canvas.name = "mine"
        shape.x = 5
      }
      if isAtomic == true {
        scope.modifyAtomically { change() }
      } else {
        scope.modify { change() }
      }
      server.reply(to: server.takeSyncs().last?.index ?? 0, no, no)
      let kept = try items.map { try Conflict(json: try JSONValue(parsing: $0.json.text)) }
      #expect(kept.count == 2)
      for conflicts in [items, kept] {
        for conflict in items { scope.conflicts.discard(conflict.id) }
        scope.conflicts.restore(conflicts)
        scope.retry(conflicts)
        let sync = server.takeSyncs().last
        #expect(sync?.fragments.count == 2 && sync?.atomic == isAtomic)
        server.reply(to: sync?.index ?? 0, no, no)
      }
      for conflict in items { scope.conflicts.discard(conflict.id) }
    }
  }

  @Test("A retry of initial content is not atomic: it is judged property by property")
  func initialContentRetry() throws {
    try scope.modify(procedure: InitialContent.procedure) {
      canvas.name = "mine"
      canvas.selected = shape
    }
    server.reply(to: server.takeSyncs().last?.index ?? 0, no)
    #expect(Set(items.map(\.property)) == ["name", "selected"])
    scope.retry(items)
    let sync = try #require(server.takeSyncs().last)
    #expect(sync.fragments.count == 1 && sync.atomic == nil)
  }

  @Test("Who retries a change that names models which were added in vain adds these again")
  func retryAddition() throws {
    let new = Shape()
    reject([no, no, no]) {
      let part = Shape()
      part.label = "part"
      new.label = "new"
      new.parts = [part]
      canvas.shapes.append(new)
    }
    #expect(items.count == 3 && canvas.shapes.count == 1)
    let insertion = try #require(items.first { $0.property == "shapes" })
    scope.retry([insertion])
    #expect(items.isEmpty)
    #expect(canvas.shapes.map(\.label) == ["", "new"])
    #expect(canvas.shapes[1].uuid == new.uuid && canvas.shapes[1].parts.map(\.label) == ["part"])
    #expect(server.takeSyncs().flatMap(\.fragments).map(\.kind) == [.add, .add, .change])
  }

  @Test("What cannot be done again stays in the ledger")
  func hopelessRetry() {
    reject([no], others: [change(canvas, ["shapes": []])]) { shape.label = "lost" }
    let handle = scope.retry(items)
    #expect(items.map(\.property) == ["label"] && handle.changeSet.fragments.isEmpty)
    #expect(server.takeSyncs().isEmpty)
  }

  @Test("A retry of an atomic change set of which a part cannot be made again makes none of it")
  func hopelessAtomicRetry() throws {
    scope.modifyAtomically {
      canvas.name = "mine"
      shape.x = 5
    }
    let index = try #require(server.takeSyncs().last).index
    server.tell(change(canvas, ["shapes": []]))
    server.reply(to: index, no, no)
    let conflicts = items
    #expect(conflicts.count == 2)
    let handle = scope.retry(conflicts)
    #expect(items == conflicts && canvas.name == nil && handle.changeSet.fragments.isEmpty)
    #expect(server.takeSyncs().isEmpty)
    reject([no]) { canvas.likes += 1 }
    scope.retry(items)
    #expect(items == conflicts && canvas.name == nil && canvas.likes == 1)
    #expect(server.takeSyncs().map(\.atomic) == [nil])
    #expect(server.engine.checkInvariants() == [])
  }

  @Test("A retry of one conflict of an atomic change set retries all of it, each conflict once")
  func partialAtomicRetry() throws {
    scope.modifyAtomically {
      canvas.name = "mine"
      canvas.likes += 1
    }
    server.reply(to: try #require(server.takeSyncs().last).index, no)
    let conflicts = items
    #expect(conflicts.flatMap(\.parts).count == 2 && canvas.name == nil)
    scope.retry([conflicts[0], conflicts[0]])
    #expect(items.isEmpty && canvas.name == "mine" && canvas.likes == 1)
    let sync = server.takeSyncs().last
    #expect(sync?.atomic == true && sync?.fragments.count == 1)
  }

  @Test("An addition stays in the ledger while nothing in the scope would hold the model")
  func unattachedRetry() throws {
    let new = Shape()
    scope.modify { canvas.shapes.append(new) }
    scope.modify { new.parts = [Shape()] }
    for sync in server.takeSyncs() {
      let replies = sync.fragments.map { _ in no }
      server.deliver([
        .scopeSyncReply(ScopeSyncReply(replyTo: sync.index, fragmentReplies: replies))
      ])
    }
    let before = items
    #expect(before.map(\.property) == [nil, "shapes", nil, "parts"])
    let handle = scope.retry([before[3]])
    #expect(items == before && handle.changeSet.fragments.isEmpty && server.takeSyncs().isEmpty)
    scope.retry([before[1], before[3]])
    #expect(items.isEmpty && canvas.shapes.last?.parts.count == 1)
  }

  @Test("Writing the property anew settles the conflict, writing another one does not")
  func settled() {
    reject([no]) { canvas.name = "mine" }
    canvas.likes += 1
    scope.flush()
    #expect(items.count == 1)
    server.tell(change(canvas, ["name": "theirs"]))
    #expect(items.count == 1, "what others write settles nothing")
    canvas.name = "so be it"
    #expect(items.count == 1, "until it is a set, it may be taken back")
    scope.flush()
    #expect(items.isEmpty)
  }

  @Test("Of more than there is room for, the oldest go")
  func capacity() {
    var gone = 0
    scope.conflicts.onRemove.listen { _ in gone += 1 }
    scope.conflicts.capacity = 3
    for number in 0..<5 { reject([no]) { shape.x = Float(number + 1) } }
    // Each write of the same property settles the one before.
    #expect(items.count == 1 && gone == 4)
    for _ in 0..<5 { reject([no, no]) { canvas.shapes.append(Shape()) } }
    #expect(items.count == 3)
    scope.conflicts.capacity = 1
    #expect(items.count == 1)
    for conflict in scope.conflicts.items { scope.conflicts.discard(conflict.id) }
    #expect(items.isEmpty)
  }

  @Test("A lost move is a conflict of both collections, also if the reply comes in another session")
  func lostMove() throws {
    for isLate in [false, true] {
      let world = InMemoryWorld()
      world.canvas.shapes = [Shape(), Shape()]
      let (one, two) = (world.addClient(), world.addClient())
      for client in world.clients { client.join() }
      world.settle()
      for client in [one, two] {
        let moved = client.canvas.shapes.remove(at: 0)
        if client === one {
          client.canvas.hidden.append(moved)
        } else {
          client.canvas.shapes[0].parts.append(moved)
        }
      }
      one.flush()
      world.deliver(try #require(one.link), toServer: true)
      two.flush()
      world.deliver(try #require(two.link), toServer: true)
      if isLate {
        world.cut(try #require(two.link))
        two.engine.closed(
          two.engine.connection.number, code: 4097, reason: "", now: world.now)
      }
      world.settle()
      #expect(one.scope.conflicts.isEmpty && one.canvas.hidden.count == 1)
      #expect(two.canvas.hidden.count == 1 && two.canvas.shapes[0].parts.isEmpty)
      let lost = two.scope.conflicts.items
      #expect(Set(lost.map(\.property)) == ["shapes", "parts"] && lost.count == 2)
      #expect(lost.allSatisfy { $0.reason == .moveLost }, "late: \(isLate)")
    }
  }

  @Test("A set that the server has been sent is not given up because it has forgotten the client")
  func sentToForgetful() throws {
    var configuration = ClientEngine.Configuration()
    configuration.onHistoryLoss = .discard
    let server = ScriptedServer(configuration: configuration)
    server.joinAtPosition(ScopePosition(epoch: "a", sequence: 7))
    server.engine.setMode(.pushOnly, of: server.scope, now: server.now)
    server.loseSession()
    func granted(_ index: Int, to fetch: Int, at sequence: Int, resumes: Bool) -> Message {
      var standing = ScopeStanding(
        position: ScopePosition(epoch: "a", sequence: sequence), resumes: resumes)
      standing.isForgotten = true
      return .scopeFetchReply(
        ScopeFetchReply(index: index, replyTo: fetch, scopeIndex: 0, standing: standing))
    }
    server.receive(granted(1, to: 1, at: 7, resumes: true))
    server.canvas.likes += 1
    server.scope.flush()
    let sent = try #require(server.takeSyncs().first)
    server.engine.setMode(.realtime, of: server.scope, now: server.now)
    let fetch = try #require(server.takeSent().last)
    let root = SyncFragment(
      .change, uuid: server.canvas.uuid, className: "Canvas", properties: ["likes": 3])
    server.receive(
      granted(2, to: fetch.index, at: 20, resumes: false),
      .scopeState(
        ScopeState(index: 3, scopeIndex: 0, rootUUID: server.canvas.uuid, fragments: [root])),
      .scopeSyncReply(
        ScopeSyncReply(
          index: 4, replyTo: sent.index, fragmentReplies: [FragmentReply()], sequence: 21)))
    #expect(server.canvas.likes == 4)
    #expect(server.scope.conflicts.items.isEmpty && server.engine.pendingCount == 0)
    #expect(server.historyLosses == 0)
  }

  @Test("What is given up because the server has lost its history is in the ledger")
  func historyLost() {
    var configuration = ClientEngine.Configuration()
    configuration.onHistoryLoss = .discard
    let server = ScriptedServer(configuration: configuration)
    server.joinAtPosition(ScopePosition(epoch: "a", sequence: 7))
    server.canvas.name = "mine"
    server.scope.flush()
    server.loseSession()
    server.grant(ScopePosition(epoch: "b", sequence: 1))
    let items = server.scope.conflicts.items
    #expect(items.map(\.mine) == [.value("mine")] && server.canvas.name == nil)
    guard case .rejected(let error)? = items.first?.reason else {
      Issue.record("It is not rejected: \(items)")
      return
    }
    #expect(error.type == "history-lost")
  }
}
