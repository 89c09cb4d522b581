import Foundation
import Testing

@testable import Jetstream

/// What others write of properties that open calls of `modify` have changed: it goes behind all of them.
#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct ModifyBehindTests {
  private let root = Limb("root")
  private let a = Limb("a")
  private let b = Limb("b")
  private let c = Limb("c")
  private let scope: Scope
  /// Has what the others have.
  private let copy: Scope

  init() throws {
    root.parts = [a, b, c]
    scope = manualScope(root)
    scope.flush()
    copy = manualScope(Limb("copy"))
    try copy.applyFullState(scope.fullState(), rootUUID: root.uuid)
  }

  /// Others change the root.
  private func others(_ properties: JSONObject = [:], _ operations: PropertyOperations = [:]) {
    let change = SyncFragment(
      .change, uuid: root.uuid, className: "Limb", properties: properties, operations: operations)
    #expect(copy.apply([change]).isComplete)
    #expect(scope.apply([change]).isComplete)
  }

  /// A call within another one, that may be taken back.
  private func inner(throwing: Bool = true, _ body: () -> Void) {
    _ = try? scope.modify {
      body()
      if throwing { throw Oops() }
    }
  }

  /// A call that others hear of: they get to where this scope is, and may go back.
  private func outer(atomically: Bool = false, _ body: () throws -> Void) throws {
    let handle =
      try atomically ? scope.modifyAtomically { try body() } : scope.modify { try body() }
    let set = handle.changeSet
    #expect(set.isAtomic == atomically)
    let known = copy.canonicalJSON
    #expect(copy.apply(set.fragments).isComplete)
    #expect(copy.canonicalJSON == scope.canonicalJSON)
    #expect(copy.apply(set.undo).isComplete)
    #expect(copy.canonicalJSON == known)
    #expect(copy.apply(set.fragments).isComplete)
  }

  /// A call that is taken back: this scope is where the others are.
  private func undone(_ body: () throws -> Void) {
    #expect(throws: Oops.self) {
      try scope.modify {
        try body()
        throw Oops()
      }
    }
    #expect(scope.canonicalJSON == copy.canonicalJSON)
    #expect(!scope.hasCollectedChanges)
  }

  /// Others write in the innermost of two calls, of which the first or both are taken back, or none.
  private func bothWays(_ body: (_ throwing: Bool) -> Void) throws {
    for throwing in [false, true] {
      undone { body(throwing) }
      try outer { body(throwing) }
      root.parts = [a, b, c]
      (root.title, root.one, root.stars) = ("root", nil, 0)
      copy.apply(scope.takeFragments())
      #expect(scope.canonicalJSON == copy.canonicalJSON)
    }
  }

  @Test("A plain value", arguments: [false, true])
  func plain(isChangedWithin: Bool) throws {
    try bothWays { throwing in
      root.title = "outer"
      inner(throwing: throwing) {
        if isChangedWithin { root.title = "inner" }
        others(["title": "theirs"])
        #expect(root.title == (isChangedWithin ? "inner" : "outer"))
      }
      #expect(root.title == (isChangedWithin && !throwing ? "inner" : "outer"))
    }
  }

  @Test("A reference", arguments: [false, true])
  func reference(isChangedWithin: Bool) throws {
    try bothWays { throwing in
      root.one = a
      inner(throwing: throwing) {
        if isChangedWithin { root.one = b }
        others(["one": c._jsonValue])
        #expect(root.one === (isChangedWithin ? b : a))
      }
      #expect(root.one === (isChangedWithin && !throwing ? b : a))
    }
  }

  @Test("A counter", arguments: [false, true])
  func counter(isChangedWithin: Bool) throws {
    try bothWays { throwing in
      root.stars += 1
      inner(throwing: throwing) {
        if isChangedWithin { root.stars += 10 }
        others([:], ["stars": [.add(100)]])
      }
      #expect(root.stars == (isChangedWithin && !throwing ? 111 : 101))
      others([:], ["stars": [.add(-100)]])
    }
  }

  @Test("A counter, as a number", arguments: [false, true])
  func number(isChangedWithin: Bool) throws {
    try bothWays { throwing in
      others(["stars": 0])
      root.stars += 1
      inner(throwing: throwing) {
        if isChangedWithin { root.stars += 10 }
        others(["stars": 100])
      }
      #expect(root.stars == (isChangedWithin && !throwing ? 111 : 101))
      others(["stars": 0])
    }
  }

  @Test("A collection, as a whole and by operations", arguments: [false, true], [0, 1, 2])
  func collection(isWhole: Bool, changes: Int) throws {
    let (x, y) = (Limb("x"), Limb("y"))
    let before: JSONObject = ["parts": .array([a, b, c].map(\._jsonValue))]
    try bothWays { throwing in
      others(before)
      root.parts.insert(x, at: 1)
      inner(throwing: throwing) {
        if changes == 1 { root.parts.insert(y, at: 3) }
        if changes == 2 { root.parts = [c, y, x] }
        if isWhole {
          others(["parts": .array([c, a, b].map(\._jsonValue))])
        } else {
          others([:], ["parts": [.move(c.uuid, .start)]])
        }
      }
      let titles = root.parts.map(\.title)
      switch (throwing, changes) {
      case (false, 1): #expect(titles == ["c", "a", "x", "b", "y"])
      case (false, 2): #expect(titles == ["c", "y", "x"])
      default: #expect(titles == ["c", "a", "x", "b"])
      }
    }
  }

  @Test("Three calls, and what each of them has changed")
  func threeLevels() throws {
    let (x, y, z) = (Limb("x"), Limb("y"), Limb("z"))
    for throwing in 0..<4 {
      try outer {
        root.title = "1"
        root.stars += 1
        root.parts.append(x)
        inner(throwing: throwing & 1 == 1) {
          root.title = "2"
          root.stars += 10
          root.parts.append(y)
          inner(throwing: throwing & 2 == 2) {
            root.title = "3"
            root.stars += 100
            root.parts.append(z)
            others(
              ["title": "theirs"], ["stars": [.add(1000)], "parts": [.move(c.uuid, .start)]])
          }
          #expect(root.title == (throwing & 2 == 2 ? "2" : "3"))
          #expect(root.stars == (throwing & 2 == 2 ? 1011 : 1111))
          #expect(root.parts.last === (throwing & 2 == 2 ? y : z))
        }
        if throwing & 1 == 1 {
          #expect(root.title == "1" && root.stars == 1001 && root.parts == [c, a, b, x])
        }
      }
      root.parts = [a, b, c]
      (root.title, root.stars) = ("root", 0)
      copy.apply(scope.takeFragments())
    }
  }

  @Test("Atomically, and twice in a row")
  func atomically() throws {
    try outer(atomically: true) {
      root.title = "outer"
      for title in ["first", "second"] {
        _ = try? scope.modifyAtomically {
          root.title = "inner"
          others(["title": .string(title)])
          throw Oops()
        }
        #expect(root.title == "outer")
      }
    }
  }

  @Test("A model that others remove in a call within has gone for the calls around it as well")
  func removed() throws {
    for throwing in [false, true] {
      root.parts = [a, b, c]
      copy.apply(scope.takeFragments())
      try outer {
        a.title = "outer"
        root.title = "outer"
        inner(throwing: throwing) {
          a.title = "inner"
          others([:], ["parts": [.remove(a.uuid)]])
        }
        #expect(a.scope == nil && root.parts == [b, c])
      }
      root.title = "root"
      copy.apply(scope.takeFragments())
    }
  }

  @Test("What others leave only to a model that a call has removed comes back with it, as it was")
  func leftToRemoved() {
    a.parts = [b]
    copy.apply(scope.takeFragments())
    undone {
      b.title = "x"
      root.parts.remove(a)
      others([:], ["parts": [.remove(b.uuid)]])
      #expect(b.scope == nil)
      b.title = "y"
      b.stars = 1
      inner { root.one = a }
    }
    #expect(root.parts == [a, c] && a.parts == [b] && b.title == "b" && b.stars == 0)
    #expect(b.record?.isNew == false && scope.count == 4)
  }

  @Test("What others wrote before a call within is what the call around comes back to")
  func writtenBefore() {
    undone {
      root.title = "outer"
      others(["title": "theirs"])
      inner(throwing: false) { root.title = "inner" }
    }
    #expect(root.title == "theirs")
  }

  @Test("What only a local property holds is found out when the outermost call is over")
  func unshared() {
    root.pick = a
    copy.apply(scope.takeFragments())
    undone {
      a.title = "x"
      root.parts = [b, c]
      others(["title": "theirs"])
    }
    #expect(a.title == "a" && root.parts == [a, b, c] && a.record?.isNew == false)
  }

  @Test(
    "What others have left to a local property is new when a synced one holds it again",
    arguments: [false, true])
  func takenFromShared(isByConstraint: Bool) {
    root.pick = a
    copy.apply(scope.takeFragments())
    func change() {
      a.title = "x"
      others([:], ["parts": [.remove(a.uuid)]])
    }
    if isByConstraint {
      #expect(throws: ChangeSetError.self) {
        try scope.modify(
          procedure: "Limb.grow", constraints: [Constraint(.add, "Limb")]
        ) {
          root.title = "y"
          change()
        }
      }
      #expect(scope.canonicalJSON == copy.canonicalJSON)
    } else {
      undone { change() }
    }
    scope.flush()
    root.parts.append(a)
    #expect(copy.apply(scope.takeFragments()).isComplete && copy.count == 4)
  }
}

/// A model with one property of each kind that others may write.
private final class Limb: ModelObject {
  @Property var title = ""
  @Property(.counter) var stars = 0
  @Property var one: Limb?
  @Property var parts: ModelArray<Limb> = []
  @Property(.local) var pick: Limb?

  override class var wireName: String { "Limb" }

  convenience init(_ title: String) {
    self.init()
    self.title = title
  }
}
