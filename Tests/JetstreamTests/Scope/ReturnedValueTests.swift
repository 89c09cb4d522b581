import Foundation
import Testing

@testable import Jetstream

/// Values that were changed and are back at the last shared value: they hide nothing that other replicas write.
@Suite("Returned values", .paced)
struct ReturnedValueTests {
  private let root = Stem("root")
  private let a = Stem("a")
  private let b = Stem("b")
  private let scope: Scope

  init() {
    (root.one, root.two) = (a, b)
    scope = manualScope(root)
  }

  /// Another replica changes the root.
  private func others(_ properties: JSONObject) {
    let change = SyncFragment(
      .change, uuid: root.uuid, className: "Stem", properties: properties)
    #expect(scope.apply([change]).isComplete)
  }

  private func inner(throwing: Bool = true, _ body: () -> Void) {
    _ = try? scope.modify {
      body()
      if throwing { throw Oops() }
    }
  }

  private func changeAndReturn() {
    (root.number, root.one) = (5, b)
    (root.number, root.one) = (0, a)
  }

  @Test("A value that is back at its base gives way to that of another replica")
  func plain() {
    changeAndReturn()
    others(["number": 9])
    #expect(root.number == 9)
    #expect(scope.changeSets {}.isEmpty)
    #expect(root.number == 9)
  }

  @Test("A reference that is back at its base gives way to that of another replica")
  func reference() {
    changeAndReturn()
    others(["one": b._jsonValue])
    #expect(root.one === b && a.scope == nil)
    #expect(scope.changeSets {}.isEmpty)
  }

  @Test("A later change counts from the value of the other replica")
  func changedAgain() {
    changeAndReturn()
    others(["number": 9])
    root.number = 3
    let sets = scope.changeSets {}
    #expect(sets.flatMap(\.fragments).map(\.properties) == [["number": 3]])
    #expect(sets.first?.bases == [root.uuid: ["number": 9]])
  }

  @Test("Within a call of modify, taken back or not", arguments: [false, true])
  func withinModify(throwing: Bool) {
    let sets = scope.changeSets {
      inner(throwing: throwing) {
        changeAndReturn()
        others(["number": 9, "one": b._jsonValue])
        #expect(root.number == 9 && root.one === b)
      }
    }
    #expect(root.number == 9 && root.one === b && sets.isEmpty)
  }

  @Test("What an outer call has changed and returned gives way beneath the changes of an inner one")
  func withinOuter() {
    let sets = scope.changeSets {
      scope.modify {
        changeAndReturn()
        inner {
          (root.number, root.one) = (7, nil)
          others(["number": 9, "one": b._jsonValue])
          #expect(root.number == 7 && root.one == nil)
        }
        #expect(root.number == 9 && root.one === b)
      }
    }
    #expect(sets.isEmpty)
  }

  @Test("A change of an outer call that an inner one has changed and returned stays in front")
  func aroundInner() {
    let sets = scope.changeSets {
      scope.modify {
        root.number = 5
        inner(throwing: false) {
          root.number = 7
          root.number = 5
          others(["number": 9])
          #expect(root.number == 5)
        }
      }
    }
    #expect(sets.flatMap(\.fragments).map(\.properties) == [["number": 5]])
  }

  @Test("A model that only a local property held is shared when another replica puts it there")
  func unshared() throws {
    root.pick = b
    root.two = nil
    scope.flush()
    changeAndReturn()
    others(["one": b._jsonValue])
    #expect(root.one === b && scope.sharedModel(b.uuid) === b)
    #expect(scope.changeSets {}.isEmpty)
  }

  @Test("An instance that has taken the place of the shared one is no return to that")
  func twin() {
    let twin = Stem(uuid: a.uuid)
    let sets = scope.changeSets {
      inner {
        root.one = nil
        root.one = twin
        others(["one": b._jsonValue])
        #expect(root.one === twin)
      }
    }
    #expect(root.one === b && sets.isEmpty)
  }
}

private final class Stem: ModelObject {
  @Property var title = ""
  @Property var number = 0
  @Property var one: Stem?
  @Property var two: Stem?
  @Property(.local) var pick: Stem?

  override class var wireName: String { "Stem" }

  convenience init(_ title: String) {
    self.init()
    self.title = title
  }
}
