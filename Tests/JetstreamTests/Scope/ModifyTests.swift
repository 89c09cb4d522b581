import Foundation
import Testing

@testable import Jetstream

/// Changes that belong together.
#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct ModifyTests {
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

  /// Everything that can be seen of the scope, local properties and instances included.
  private var picture: [String] {
    var seen: Set<ObjectIdentifier> = []
    var result: [String] = []
    func look(_ draft: Draft) {
      guard seen.insert(ObjectIdentifier(draft)).inserted else { return }
      result.append(
        "\(ObjectIdentifier(draft)) \(draft.title) \(draft.isOpen) \(draft.stars) \(draft.position) "
          + "\(draft.scope === scope) \(draft.scratch.map { "\(ObjectIdentifier($0))" } ?? "-") "
          + "\(draft.clippings.map(ObjectIdentifier.init)) \(draft.parts.map(ObjectIdentifier.init))"
      )
      if let scratch = draft.scratch { look(scratch) }
      draft.clippings.forEach(look)
      draft.parts.forEach(look)
    }
    look(root)
    return result
  }

  @Test("What is changed in a call is one set, with the words that were given")
  func oneSet() {
    var handle: ChangeSetHandle?
    let sets = sets {
      root.title = "before"
      handle = scope.modify("tidy up", author: "Ada") {
        root.stars = 2
        root.parts.append(Draft("a"))
        scope.flush()
        root.isOpen = true
      }
      root.title = "after"
      scope.flush()
    }
    #expect(sets.map(\.message) == [nil, "tidy up", nil])
    #expect(sets.map(\.author) == [nil, "Ada", nil])
    #expect(sets.first?.fragments.map(\.properties) == [["title": "before"]])
    #expect(sets.dropFirst().first?.fragments.map(\.kind) == [.add, .change])
    #expect(handle?.changeSet == sets.dropFirst().first)
    #expect(handle?.state == .accepted && handle?.error == nil)
    #expect(sets.last?.fragments.map(\.properties) == [["title": "after"]])
  }

  @Test("A call that changes nothing makes no set, and is completed")
  func nothing() {
    var handle: ChangeSetHandle?
    let sets = sets { handle = scope.modify { root.isOpen = true } }
    #expect(sets.isEmpty && handle?.changeSet.fragments == [] && handle?.state == .accepted)
    #expect(!scope.hasCollectedChanges)
  }

  @Test("A closure that throws leaves everything as it was")
  func rollback() {
    let (a, b, c) = (Draft("a"), Draft("b"), Draft("c"))
    let (scratch, clip) = (Draft("scratch"), Draft("clip"))
    root.parts = [a, b]
    a.parts = [c]
    root.scratch = scratch
    scratch.parts = [clip]
    root.clippings = [Draft("kept")]
    scope.flush()
    let before = picture
    let content = scope.canonicalJSON
    let made = Draft("made")
    let sets = sets {
      #expect(throws: Oops.self) {
        try scope.modify {
          root.title = "other"
          root.title = "another"
          root.isOpen = true
          root.stars += 3
          root.position = 7
          made.parts.append(b)
          root.parts.append(made)
          made.title = "changed"
          root.parts.remove(a)
          a.title = "gone"
          b.parts.append(c)
          root.parts.move(from: 0, to: 1)
          scratch.title = "other"
          scratch.parts = []
          clip.title = "lost"
          root.scratch = made
          root.clippings.removeAll()
          root.clippings.append(Draft("new"))
          throw Oops()
        }
      }
      #expect(!scope.hasCollectedChanges)
      scope.flush()
    }
    #expect(sets.isEmpty)
    #expect(picture == before)
    #expect(scope.canonicalJSON == content)
    #expect(made.scope == nil && clip.title == "clip" && a.title == "a")
    // What comes next is told as if nothing had been.
    let next = self.sets {
      root.parts.append(made)
      a.title = "A"
      scope.flush()
    }
    #expect(next.map { $0.fragments.map(\.kind) } == [[.add, .change, .change]])
  }

  @Test("A move that is rolled back detaches nothing")
  func noDetach() {
    let (a, b, c) = (Draft("a"), Draft("b"), Draft("c"))
    root.parts = [a, b]
    a.parts = [c]
    scope.flush()
    let listener = Listener()
    var events: [String] = []
    c.observeDetach(listener) { _, _ in events.append("detach") }
    c.observeAttach(listener) { _, _ in events.append("attach") }
    #expect(throws: Oops.self) {
      try scope.modify {
        b.parts.append(c)
        a.parts.remove(c)
        throw Oops()
      }
    }
    #expect(events == [] && a.parts == [c] && b.parts.isEmpty)
  }

  @Test("What observers write while everything goes back stays, and is told")
  func observersWrite() {
    let listener = Listener()
    var seen: [String] = []
    root.observeChangeImmediately(listener, \.title) { [root] _, _, new in
      seen.append(new)
      if new == "root" { root.stars = 5 }
    }
    let sets = sets {
      #expect(throws: Oops.self) {
        try scope.modify {
          root.title = "x"
          root.stars = 1
          throw Oops()
        }
      }
      scope.flush()
    }
    #expect(seen == ["x", "root"])
    #expect(root.stars == 5)
    #expect(sets.map { $0.fragments.map(\.operations) } == [[["stars": [.add(5)]]]])
  }

  @Test("A call within a call joins it")
  func nested() {
    var handles: [ChangeSetHandle] = []
    let sets = sets {
      handles.append(
        scope.modify("outer") {
          root.title = "a"
          handles.append(
            scope.modifyAtomically("inner", author: "Ada") {
              root.title = "b"
              root.stars = 1
            })
          #expect(handles[0].state == .pending && handles[0].changeSet.fragments.isEmpty)
        })
    }
    #expect(handles[0] === handles[1] && sets.count == 1 && sets[0] == handles[0].changeSet)
    #expect(sets[0].message == "outer" && sets[0].author == "Ada" && sets[0].isAtomic)
    #expect(sets[0].bases == [root.uuid: ["title": "root"]])
  }

  @Test("A call within a call that throws takes back its own changes only")
  func nestedRollback() {
    let (a, b, c) = (Draft("a"), Draft("b"), Draft("c"))
    root.parts = [a, b]
    scope.flush()
    var before: [String] = []
    let sets = sets {
      scope.modify {
        root.title = "outer"
        root.isOpen = true
        root.parts.append(c)
        c.title = "C"
        root.parts.remove(b)
        before = picture
        #expect(throws: Oops.self) {
          try scope.modify {
            root.title = "inner"
            root.isOpen = false
            root.stars = 4
            root.parts.remove(c)
            c.title = "CC"
            root.parts.insert(b, at: 0)
            root.parts.remove(a)
            a.title = "A"
            root.parts.append(Draft("d"))
            throw Oops()
          }
        }
        #expect(picture == before)
        root.parts.move(from: 1, to: 0)
      }
    }
    #expect(sets.count == 1)
    let set = sets.first
    #expect(set?.fragments.map(\.kind) == [.add, .change])
    #expect(set?.fragments.first?.properties["title"] == "C")
    #expect(set?.fragments.last?.properties == ["title": "outer"])
    #expect(root.parts == [c, a] && b.scope == nil)
    // The set leads from the state before to the one now, and its inverse back.
    scope.modify { _ = scope.revert(set ?? ChangeSet(fragments: [], undo: [])) }
    #expect(root.title == "root" && root.parts.map(\.title) == ["a", "b"])
  }

  @Test("The outer call throws after the inner one was done, or after the inner one has thrown")
  func nestedThenOuter() {
    let a = Draft("a")
    root.parts = [a]
    scope.flush()
    let before = picture
    for innerThrows in [false, true] {
      var handle: ChangeSetHandle?
      #expect(throws: Oops.self) {
        try scope.modify {
          root.parts.append(Draft("b"))
          root.title = "1"
          do {
            handle = try scope.modify {
              root.parts.remove(a)
              a.title = "A"
              root.title = "2"
              if innerThrows { throw Oops() }
            }
          } catch {}
          root.parts.append(Draft("c"))
          root.title = "3"
          throw Oops()
        }
      }
      #expect(picture == before)
      #expect(!scope.hasCollectedChanges)
      if !innerThrows { #expect(handle?.state == .rejected && handle?.error == .rolledBack) }
    }
  }

  @Test("What is held back is part of the set, and of what comes back")
  func throttled() {
    scope.modify { root.position = 1 }
    root.position = 2
    scope.sealChanges()
    #expect(scope.hasCollectedChanges)
    let sets = sets { scope.modify { root.position = 3 } }
    #expect(
      sets.map { $0.fragments.map(\.properties) } == [[["position": 2.0]], [["position": 3.0]]])
    #expect(throws: Oops.self) {
      try scope.modify {
        root.position = 4
        throw Oops()
      }
    }
    #expect(root.position == 3)
  }

  @Test("What does not meet the constraints is taken back; nothing comes out")
  func constraints() throws {
    let a = Draft("a")
    root.parts = [a]
    scope.flush()
    let before = picture
    let content = scope.canonicalJSON
    let allowed = [
      Constraint(.change, "Draft", ["parts": .removes]),
      Constraint(.add, "Draft", ["title": .newValue], allowsAdditionalProperties: true),
    ]
    let sets = try sets {
      do {
        try scope.modify(procedure: "Draft.tidy", constraints: allowed) {
          root.title = "other"
          root.isOpen = true
          root.parts.append(Draft("new"))
          root.parts.remove(a)
          root.scratch = a
        }
        Issue.record("The constraints are not met.")
      } catch ChangeSetError.constraintsNotMet(procedure: "Draft.tidy", let fragments) {
        #expect(fragments.map(\.uuid) == [root.uuid])
      }
      #expect(picture == before && scope.canonicalJSON == content)
      scope.flush()
      let handle = try scope.modify(procedure: "Draft.tidy", constraints: allowed) {
        root.parts.remove(a)
      }
      #expect(handle.state == .accepted)
    }
    #expect(sets.map(\.procedure) == ["Draft.tidy"] && sets.allSatisfy(\.isAtomic))
    #expect(a.scope == nil)
  }

  @Test("Whoever changes something on the way back gets a handle of that")
  func observersModify() {
    let listener = Listener()
    var handle: ChangeSetHandle?
    root.observeChangeImmediately(listener, \.title) { [root, scope] _, _, new in
      if new == "root" { handle = scope.modify("back") { root.stars = 5 } }
    }
    let sets = sets {
      #expect(throws: Oops.self) {
        try scope.modify("there") {
          root.title = "x"
          throw Oops()
        }
      }
      scope.flush()
    }
    #expect(sets.map(\.message) == ["back"] && root.stars == 5)
    #expect(handle?.state == .accepted && handle?.changeSet == sets.first)
  }

  @Test("A procedure cannot be part of something else")
  func nestedProcedure() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let scope = Scope(name: "s", root: Canvas(), ticker: .manual())
      scope.modify { _ = try? scope.modify(procedure: "p") {} }
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("A procedure was asked for in the middle of other changes of scope s."))
  }

  @Test("Whoever waits for the end is told once, at once if it has come")
  func waiting() async throws {
    let handle = scope.modify { root.title = "x" }
    var told: [ChangeSetError?] = []
    handle.whenFinished { told.append($0) }
    #expect(told == [nil])
    try await handle.finished()
  }
}
