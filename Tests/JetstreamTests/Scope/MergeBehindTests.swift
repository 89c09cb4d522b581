import Testing

@testable import Jetstream

private final class Score: ModelObject {
  @Property(.merge(.union)) var tags: [String] = []
  @Property(.merge(.max)) var best = 0
  @Property var name = ""
}

/// A local change of a property with a merge rule, in no change set yet, is merged with what other replicas write.
#if ON_ACTOR
@TestDomain
#endif
@Suite("Merging behind local changes", .paced) struct MergeBehindTests {
  private let score = Score()
  private let scope: Scope

  init() { scope = manualScope(score) }

  private func remote(_ properties: JSONObject) {
    let change = SyncFragment(
      .change, uuid: score.uuid, className: "Score", properties: properties)
    #expect(scope.apply([change]).isComplete)
  }

  @Test("What others have added to a set stays, and so does what is added here")
  func union() {
    score.tags = ["a"]
    scope.flush()
    score.tags.append("b")
    remote(["tags": ["a", "x"]])
    #expect(Set(score.tags) == ["a", "b", "x"])
    let sets = scope.changeSets {}
    #expect(sets.first?.fragments.first?.properties["tags"] == score.tags._jsonValue)
    #expect(sets.first?.bases == [score.uuid: ["tags": ["a", "x"]]])
  }

  @Test("The greatest number counts, from either side")
  func greatest() {
    score.best = 120
    remote(["best": 150])
    #expect(score.best == 150)
    score.best = 170
    remote(["best": 160])
    #expect(score.best == 170)
    #expect(scope.changeSets {}.first?.fragments.first?.properties["best"] == 170)
  }

  @Test("Within calls of modify, one in the other")
  func modify() {
    score.tags = ["a"]
    scope.flush()
    scope.modify("b") {
      score.tags.append("b")
      scope.modify("c") {
        score.tags.append("c")
        remote(["tags": ["a", "x"]])
        #expect(Set(score.tags) == ["a", "b", "c", "x"])
      }
    }
    scope.flush()
    #expect(Set(score.tags) == ["a", "b", "c", "x"])
  }

  @Test("A property without a rule keeps its local value")
  func none() {
    score.name = "mine"
    remote(["name": "theirs"])
    #expect(score.name == "mine")
  }
}
