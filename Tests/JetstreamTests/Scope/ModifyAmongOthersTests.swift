import Foundation
import Testing

@testable import Jetstream

/// Calls of `modify` while others change the same scope.
#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct ModifyAmongOthersTests {
  private let root = Draft("root")
  private let scope: Scope

  init() { scope = manualScope(root) }

  /// The sets that come out while `body` runs.
  private func sets(_ body: () throws -> Void) rethrows -> [ChangeSet] {
    var result: [ChangeSet] = []
    let token = scope.onChanges.listen { result.append($0) }
    defer { token.cancel() }
    try body()
    return result
  }

  @Test(
    "What observers do to what others change at the same time stays in front", arguments: [0, 1, 2])
  func whileApplying(way: Int) {
    let listener = Listener()
    var handle: ChangeSetHandle?
    root.observeChangeImmediately(listener, \.title) { [root, scope] _, _, _ in
      switch way {
      case 0:
        root.stars = 5
        root.isOpen = true
        scope.flush()
      case 1:
        handle = scope.modify("told") {
          root.stars = 5
          root.isOpen = true
        }
        #expect(handle?.state == .pending)
      default:
        root.stars = 5
        #expect(throws: Oops.self) {
          try scope.modify {
            root.stars = 6
            root.isOpen = true
            throw Oops()
          }
        }
        #expect(root.stars == 5 && !root.isOpen)
        root.isOpen = true
      }
    }
    let sets = sets {
      let change = SyncFragment(
        .change, uuid: root.uuid, className: "Draft",
        properties: ["title": "remote", "stars": 3, "position": 2])
      #expect(scope.apply([change]).isComplete)
      // A counter has what was added here in front of the others' number.
      #expect(root.stars == 8 && root.position == 2 && root.isOpen)
      scope.flush()
    }
    #expect(sets.map { $0.fragments.map(\.operations) } == [[["stars": [.add(5)]]]])
    #expect(sets.map(\.message) == [way == 1 ? "told" : nil])
    if way == 1 { #expect(handle?.state == .accepted && handle?.changeSet == sets.first) }
    #expect(!scope.hasCollectedChanges)
  }

  @Test("A scope that goes while a call waits lets go of what has come and gone in it")
  func scopeGone() {
    let part = Draft("part")
    do {
      let root = Draft("root")
      let scope = manualScope(root)
      let listener = Listener()
      root.observeChangeImmediately(listener, \.title) { [unowned root, unowned scope] _, _, _ in
        scope.modify {
          root.parts.append(part)
          root.parts.remove(part)
        }
      }
      let change = SyncFragment(
        .change, uuid: root.uuid, className: "Draft", properties: ["title": "remote"])
      #expect(scope.apply([change]).isComplete)
    }
    #expect(part.record?.captureTree == nil)
    part.stars = 1
    #expect(part.stars == 1)
  }

  @Test("What others put into a model that is being removed comes back with it")
  func inverseWithWhatCame() throws {
    let a = Draft("a")
    root.parts = [a]
    scope.flush()
    let copy = manualScope(Draft())
    try copy.applyFullState(scope.fullState(), rootUUID: root.uuid)
    root.parts.remove(a)
    let (came, below) = (UUID(), UUID())
    let theirs = [
      SyncFragment(
        .add, uuid: came, className: "Draft",
        properties: ["title": "came", "parts": [.string(below.wireText)]]),
      SyncFragment(.add, uuid: below, className: "Draft", properties: ["title": "below"]),
      SyncFragment(
        .change, uuid: a.uuid, className: "Draft", properties: ["parts": [.string(came.wireText)]]),
    ]
    scope.apply(theirs)
    #expect(copy.apply(theirs).isComplete)
    let before = copy.canonicalJSON
    let gone = try #require(sets { scope.flush() }.first)
    #expect(copy.apply(gone.fragments).isComplete && copy.count == 1)
    #expect(copy.apply(gone.inverse.fragments).isComplete)
    #expect(copy.canonicalJSON == before && copy.count == 4)
  }

  @Test("What only a local property holds any more has left for the others, who can get it back")
  func inverseOfUnsharing() throws {
    let (x, y, z) = (Draft("x"), Draft("y"), Draft("z"))
    root.parts = [x]
    x.parts = [y]
    y.parts = [z]
    root.scratch = y
    scope.flush()
    let copy = manualScope(Draft())
    try copy.applyFullState(scope.fullState(), rootUUID: root.uuid)
    let before = copy.canonicalJSON
    let gone = scope.modify { root.parts.remove(x) }.changeSet
    #expect(copy.apply(gone.fragments).isComplete && copy.count == 1)
    #expect(copy.apply(gone.inverse.fragments).isComplete)
    #expect(copy.canonicalJSON == before)
    // Here nothing of them has changed.
    y.title = "Y"
    var back: [ChangeSet] = []
    let token = scope.onChanges.listen { back.append($0) }
    scope.revert(gone)
    scope.flush()
    token.cancel()
    #expect(root.parts.map(\.title) == ["x"] && root.parts[0].parts == [y] && y.title == "Y")
    #expect(copy.apply(gone.fragments).isComplete)
    for set in back { #expect(copy.apply(set.fragments).isComplete) }
    #expect(copy.canonicalJSON == scope.canonicalJSON)
  }

  @Test("What a call that has thrown wanted to say is not said of others' changes")
  func labelsOfThrown() {
    let sets = sets {
      scope.modify("outer") {
        root.title = "a"
        #expect(throws: Oops.self) {
          try scope.modifyAtomically("inner", author: "Ada") { throw Oops() }
        }
      }
      let listener = Listener()
      root.observeChangeImmediately(listener, \.stars) { [scope] _, _, _ in
        _ = try? scope.modifyAtomically("told") { throw Oops() }
      }
      let change = SyncFragment(
        .change, uuid: root.uuid, className: "Draft", properties: ["stars": 3])
      scope.apply([change])
      root.title = "b"
      scope.flush()
    }
    #expect(sets.map(\.message) == ["outer", nil] && sets.map(\.author) == [nil, nil])
    #expect(sets.allSatisfy { !$0.isAtomic })
  }

  @Test(
    "A call in an observer of what others do is over with the next tick, also if it changes nothing"
  )
  func emptyWhileApplying() async throws {
    let listener = Listener()
    var handle: ChangeSetHandle?
    root.observeChangeImmediately(listener, \.title) { [root, scope] _, _, _ in
      handle = scope.modifyAtomically("told") { root.stars = 0 }
    }
    let change = SyncFragment(
      .change, uuid: root.uuid, className: "Draft", properties: ["title": "remote"])
    scope.apply([change])
    #expect(handle?.state == .pending && !scope.hasCollectedChanges)
    #if ON_ACTOR
    try await handle?.finished()
    #else
    scope.ticker.advance(by: .milliseconds(20))
    #endif
    #expect(handle?.state == .accepted)
    let sets = sets { scope.modify { root.stars = 1 } }
    #expect(sets.map(\.isAtomic) == [false])
  }

  @Test("A scope that goes decides nothing any more")
  func scopeGoes() {
    let root = Draft("other")
    var scope: Scope? = Scope(name: "Other", root: root, ticker: .manual())
    let listener = Listener()
    var handle: ChangeSetHandle?
    root.observeChangeImmediately(listener, \.title) { [weak scope, root] _, _, _ in
      handle = scope?.modify { root.stars = 1 }
    }
    let change = SyncFragment(
      .change, uuid: root.uuid, className: "Draft", properties: ["title": "remote"])
    scope?.apply([change])
    scope = nil
    #expect(handle?.state == .abandoned)
  }

  @Test("The models of a scope that goes are in no scope when its handles tell that")
  func scopeGoesFirst() {
    let root = Draft("other")
    var scope: Scope? = Scope(name: "Other", root: root, ticker: .manual())
    let listener = Listener()
    root.observeChangeImmediately(listener, \.title) { [weak scope, root] _, _, _ in
      let handle = scope?.modify { root.stars = 1 }
      handle?.onStateChange.listen { [root] state in
        listener.log.append("\(state), in a scope: \(root.record?.tree != nil)")
      }
    }
    let change = SyncFragment(
      .change, uuid: root.uuid, className: "Draft", properties: ["title": "remote"])
    scope?.apply([change])
    scope = nil
    #expect(listener.log == ["abandoned, in a scope: false"])
  }

  @Test("What others did stays when the call within which it came is taken back")
  func applyInNestedCall() throws {
    let (a, b) = (Draft("a"), Draft("b"))
    root.parts = [a]
    scope.flush()
    let copy = manualScope(Draft())
    try copy.applyFullState(scope.fullState(), rootUUID: root.uuid)
    let came = UUID()
    let theirs = [
      SyncFragment(.add, uuid: came, className: "Draft", properties: ["title": "came"]),
      SyncFragment(
        .change, uuid: root.uuid, className: "Draft",
        properties: ["parts": [.string(a.uuid.wireText), .string(came.wireText)]]),
      SyncFragment(
        .change, uuid: a.uuid, className: "Draft", properties: ["stars": 3, "title": "theirs"]),
    ]
    #expect(copy.apply(theirs).isComplete)
    let before = copy.canonicalJSON
    let sets = sets {
      scope.modify {
        root.title = "outer"
        #expect(throws: Oops.self) {
          try scope.modify {
            root.title = "inner"
            root.parts.append(b)
            a.title = "A"
            #expect(scope.apply(theirs).isComplete)
            #expect(root.title == "inner" && a.title == "A" && a.stars == 3)
            root.parts.remove(a)
            throw Oops()
          }
        }
        #expect(root.title == "outer" && a.title == "theirs" && a.stars == 3)
        #expect(root.parts.map(\.title) == ["theirs", "came"] && b.scope == nil)
      }
    }
    #expect(sets.count == 1)
    let set = try #require(sets.first)
    #expect(set.fragments.map(\.properties) == [["title": "outer"]])
    #expect(set.bases == [root.uuid: ["title": "root"]])
    #expect(copy.apply(set.fragments).isComplete)
    #expect(copy.canonicalJSON == scope.canonicalJSON)
    #expect(copy.apply(set.undo).isComplete)
    #expect(copy.canonicalJSON == before)
  }

  @Test("What others write of a property that an outer call has changed goes behind that")
  func applyBehindOuterCall() {
    let change = SyncFragment(
      .change, uuid: root.uuid, className: "Draft", properties: ["title": "theirs"])
    scope.modify {
      root.title = "outer"
      _ = try? scope.modify {
        root.title = "inner"
        scope.apply([change])
        #expect(root.title == "inner")
        throw Oops()
      }
      #expect(root.title == "outer")
    }
  }
}
