import Foundation
import Testing

@testable import Jetstream

/// What random calls of `modify` have found, each by itself.
@Suite(.paced(counting: Plant.self)) struct ModifyFindingTests {
  private let root = Twig()
  private let scope: Scope

  init() { scope = manualScope(root) }

  private func sets(_ body: () throws -> Void) rethrows -> [ChangeSet] {
    var result: [ChangeSet] = []
    let token = scope.onChanges.listen { result.append($0) }
    defer { token.cancel() }
    try body()
    return result
  }

  /// A call that changes something and throws.
  private func undo(_ body: () throws -> Void) {
    #expect(throws: Snap.self) {
      try scope.modify {
        try body()
        throw Snap()
      }
    }
  }

  @Test("Values come back to the last bit, and with what the wire does not know of them")
  func exactValues() {
    let days = (0..<200).map { Date(timeIntervalSinceReferenceDate: 7e8 + Double($0) / 777) }
    let mark = TwigMark(shown: 1, hidden: 2)
    root.mark = mark
    for day in days {
      root.day = day
      undo {
        root.day = Date(timeIntervalSinceReferenceDate: 0)
        root.mark = TwigMark(shown: 2, hidden: 3)
      }
      #expect(root.day == day && root.mark == mark)
    }
  }

  @Test("What was written before and within a call within comes back to the last bit")
  func exactValuesNested() {
    let day = Date(timeIntervalSinceReferenceDate: 7e8 + 1 / 777)
    root.mark = TwigMark(shown: 1, hidden: 1)
    root.day = day
    undo {
      root.mark = TwigMark(shown: 1, hidden: 2)
      for isTaken in [false, true] {
        _ = try? scope.modify {
          root.mark = TwigMark(shown: 1, hidden: 3)
          root.mark = TwigMark(shown: 3, hidden: 4)
          root.day = Date(timeIntervalSinceReferenceDate: 0)
          if isTaken { throw Snap() }
        }
        #expect(root.mark.hidden == 4)
        root.day = Date(timeIntervalSinceReferenceDate: 1)
      }
    }
    #expect(root.mark == TwigMark(shown: 1, hidden: 1) && root.day == day)
  }

  @Test("A weak reference to a model outside of the scope is the same object again")
  func weakReference() {
    let (a, outside) = (Twig(), Twig())
    root.items = [a]
    a.friend = outside
    undo { a.friend = nil }
    root.items = []
    #expect(a.friend === outside)
  }

  @Test("A model comes back although another one with its UUID has taken its place")
  func twin() {
    let a = Twig()
    let twin = Twig(uuid: a.uuid)
    let below = Twig()
    root.items = [a]
    root.one = a
    root.pick = a
    a.items = [below]
    scope.flush()
    let sets = sets {
      undo {
        root.items = []
        root.one = nil
        root.pick = nil
        root.parts = [twin]
        root.one = twin
        twin.items = [below]
      }
      scope.flush()
    }
    #expect(sets.isEmpty)
    #expect(root.items.first === a && root.one === a && root.pick === a)
    #expect(root.parts.isEmpty && twin.scope == nil && a.items.first === below)
    #expect(scope.model(a.uuid) === a && scope.count == 3)
    let next = self.sets {
      below.text = "x"
      scope.flush()
    }
    #expect(next.map { $0.fragments.map(\.kind) } == [[.change]])
  }

  @Test("A model that only a local property holds for a while is not new after that")
  func loosened() {
    let m = Twig()
    root.items = [m]
    root.picks = [m]
    scope.flush()
    let sets = sets {
      undo {
        m.text = "x"
        root.items = []
        _ = try? scope.modify { throw Snap() }
        #expect(m.text == "x")
      }
      scope.flush()
    }
    #expect(sets.isEmpty && m.text == "" && m.record?.isNew == false)
    // If the call goes on, the set has a way back.
    let next = self.sets {
      scope.modify {
        m.text = "y"
        root.items = []
        _ = try? scope.modify { throw Snap() }
        root.items = [m]
      }
    }
    #expect(next.map { $0.fragments.map(\.kind) } == [[.change]])
    #expect(next.first?.bases == [m.uuid: ["text": ""]])
  }

  @Test("A call that throws leaves no model that may be unshared", arguments: [false, true])
  func possiblyUnshared(isNested: Bool) {
    let m = Twig()
    root.items = [m]
    root.picks = [m]
    scope.flush()
    for _ in 0..<10 {
      if isNested {
        scope.modify { _ = try? scope.modify { try emptyAndThrow() } }
      } else {
        undo { try emptyAndThrow() }
      }
      scope.ticker.advance(by: .seconds(1))
    }
    #expect(
      scope.interval.loosened.isEmpty && scope.interval.unshared.isEmpty && m.record?.isNew == false
    )
  }

  private func emptyAndThrow() throws {
    root.items = []
    throw Snap()
  }

  @Test("A model that others put back within a call that throws is shared after it")
  func sharedWithin() {
    let m = Twig()
    root.items = [m]
    root.picks = [m]
    scope.flush()
    root.items = []
    scope.flush()
    #expect(m.record?.isNew == true)
    let sets = sets {
      undo {
        root.text = "x"
        scope.apply([
          SyncFragment(
            .change, uuid: root.uuid, className: "Twig", properties: [:],
            operations: ["parts": [.insert(m.uuid, .end)]])
        ])
      }
      scope.flush()
    }
    #expect(root.parts.first === m && m.record?.isNew == false && scope.interval.unshared.isEmpty)
    #expect(sets.isEmpty)
  }

  @Test("Changes come out in time after a tick within a call that was taken back")
  func tickWithin() {
    let sets = sets {
      undo {
        root.text = "x"
        scope.ticker.advance(by: .seconds(1))
      }
      root.text = "y"
      scope.ticker.advance(by: .seconds(1))
    }
    #expect(sets.map { $0.fragments.map(\.properties) } == [[["text": "y"]]])
  }

  @Test("What a model has got after it has left does not come into the scope with it")
  func givenWhileAway() {
    let (m, n) = (Twig(), Twig())
    root.items = [m]
    scope.flush()
    let listener = Listener()
    var events: [String] = []
    n.observeAttach(listener) { _, _ in events.append("attach") }
    let sets = sets {
      undo {
        root.items = []
        m.items = [n]
      }
      scope.flush()
    }
    #expect(sets.isEmpty && events.isEmpty && m.items.isEmpty && n.scope == nil)
  }

  @Test("What comes back after constraints were not met is known to the others as before")
  func constraintsNotMet() {
    let (first, second, below) = (Twig(), Twig(), Twig())
    first.picks = [below]
    second.items = [below]
    root.items = [first, second]
    scope.flush()
    let sets = sets {
      #expect(throws: ChangeSetError.self) {
        try scope.modify(
          procedure: "Twig.grow", constraints: [Constraint(.add, "Twig")]
        ) { root.items = [] }
      }
      below.text = "x"
      scope.flush()
    }
    #expect(sets.map { $0.fragments.map(\.kind) } == [[.change]])
  }

  @Test("A model that only a local property holds comes back as well")
  func constraintsNotMetByLocal() {
    let local = Twig()
    root.pick = local
    scope.flush()
    #expect(throws: ChangeSetError.self) {
      try scope.modify(procedure: "Twig.grow", constraints: [Constraint(.add, "Twig")]) {
        root.text = "x"
        local.count = 1
        local.detach()
      }
    }
    #expect(root.pick === local && local.count == 0 && local.record?.isNew == true)
  }

  @Test("What has gone into another scope stays there, and the others are told that it is gone")
  func movedElsewhere() {
    let (m, kept) = (Twig(), Twig())
    let otherRoot = Twig()
    let other = manualScope(otherRoot)
    root.items = [m, kept]
    root.one = m
    scope.flush()
    var errors = 0
    scope.onError.listen { _ in errors += 1 }
    let sets = sets {
      undo {
        root.text = "x"
        root.items = []
        root.one = nil
        otherRoot.items = [m]
      }
      scope.flush()
    }
    #expect(errors == 2 && m.scope === other && root.items == [kept] && root.one == nil)
    #expect(root.text == "" && kept.scope === scope && scope.count == 2)
    #expect(sets.map { $0.fragments.map(\.properties) } == [[["one": .null]]])
    #expect(
      sets.first?.fragments.first?.operations["items"] == [.remove(m.uuid)])
  }

  @Test("What an observer puts into a collection on the way back stays, and nothing else does")
  func mergedCollection() {
    let (a, b, c) = (Twig(), Twig(), Twig())
    root.items = [a]
    scope.flush()
    let listener = Listener()
    root.observeChangeImmediately(listener, \.text) { [root] _, _, new in
      if new == "" { root.items.append(c) }
    }
    let sets = sets {
      undo {
        root.text = "x"
        root.items.append(b)
      }
      scope.flush()
    }
    #expect(root.items == [a, c] && b.scope == nil)
    #expect(sets.map { $0.fragments.map(\.kind) } == [[.add, .change]])
    #expect(sets.first?.fragments.first?.uuid == c.uuid)
  }

  @Test("What left in the call around one that throws is what it was when that one began")
  func departedBefore() throws {
    let (leaving, a) = (Twig(), Twig())
    leaving.text = "there"
    root.items = [leaving]
    scope.flush()
    let sets = sets {
      scope.modify {
        root.items = []
        leaving.count = 1
        #expect(throws: Snap.self) {
          try scope.modify {
            leaving.items = [a]
            leaving.text = "gone"
            leaving.count = 2
            throw Snap()
          }
        }
        #expect(leaving.items.isEmpty && leaving.text == "there" && leaving.count == 1)
        root.items = [leaving]
      }
    }
    #expect(root.items == [leaving] && leaving.scope === scope && a.scope == nil)
    #expect(sets.map { $0.fragments.map(\.uuid) } == [[leaving.uuid]])
    #expect(sets.first?.fragments.first?.operations["count"] == [.add(1)])
  }

  @Test(
    "A weak reference leads to the very model again that it led to, also to one of two with one UUID"
  )
  func exchangedTarget() throws {
    let (holder, first) = (Twig(), Twig())
    let second = Twig(uuid: first.uuid)
    holder.friend = first
    root.items = [holder]
    scope.flush()
    let sets = sets {
      #expect(throws: Snap.self) {
        try scope.modify {
          holder.friend = second
          throw Snap()
        }
      }
      scope.modify { holder.friend = second }
      #expect(throws: Snap.self) {
        try scope.modify {
          holder.friend = first
          holder.friend = nil
          throw Snap()
        }
      }
    }
    #expect(sets.isEmpty, "the UUID is the same")
    root.items = []
    scope.flush()
    #expect(holder.friend === second)
  }
}
