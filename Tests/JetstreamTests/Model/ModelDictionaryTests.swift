import Foundation
import Testing

@testable import Jetstream

final class Team: ModelObject {
  @Property var name = ""
  @Property var members: ModelDictionary<String, Member> = [:]
  @Property var seats: ModelDictionary<Int, Member> = [:]
  @Property var roles: ModelDictionary<Role, Member> = [:]
  @Property var bench: ModelArray<Member> = []
  @Property(.local) var drafts: ModelDictionary<String, Member> = [:]
  /// The members whose names begin with A.
  var first: ModelDictionary<String, Member> {
    var result: ModelDictionary<String, Member> = [:]
    for (name, member) in members where name.hasPrefix("A") { result[name] = member }
    return result
  }
  @Property(.wireName("sub")) var teams: ModelDictionary<String, Team> = [:]
}

private final class Holder: ModelObject {
  @Property var club: Club?
}

/// Begins with a model in its dictionary.
final class Club: ModelObject {
  @Property var members: ModelDictionary<String, Member> = ["first": Member(1)]
}

final class Member: ModelObject {
  @Property var score = 0

  convenience init(_ score: Int) {
    self.init()
    self.score = score
  }
}

enum Role: String, CodingKeyRepresentable { case keeper, striker }

#if ON_ACTOR
@TestDomain
#endif
@Suite("Dictionaries of models", .paced)
struct ModelDictionaryTests {
  private let team = Team()
  private let ada = Member(1)
  private let ben = Member(2)

  // MARK: Like a dictionary

  @Test("Entries are put, read, replaced and removed")
  func entries() {
    #expect(team.members.isEmpty && team.members["Ada"] == nil)
    team.members["Ada"] = ada
    team.members["Ben"] = ben
    team.members["Ada again"] = ada
    #expect(team.members.count == 3)
    #expect(team.members.keys == ["Ada", "Ada again", "Ben"])
    #expect(team.members.values == [ada, ada, ben])
    #expect(
      team.members.map { "\($0.key) \($0.value.score)" } == ["Ada 1", "Ada again 1", "Ben 2"])
    team.members["Ada"] = ben
    team.members["Ada again"] = nil
    team.members["Nobody"] = nil
    #expect(team.members == ["Ada": ben, "Ben": ben])
    #expect("\(team.members)".contains("[Ada: "))
    team.members = [:]
    #expect(team.members.isEmpty && "\(team.members)".contains("[:]"))
  }

  @Test("Keys are texts, numbers and cases; those that are canonically equivalent are one")
  func keys() {
    team.seats = [10: ada, 9: ben, -1: ada]
    #expect(team.seats[9] === ben && Set(team.seats.keys) == [10, 9, -1])
    team.roles[.keeper] = ada
    #expect(team.roles[.keeper] === ada && team.roles[.striker] == nil)
    #expect(team.roles.keys == [.keeper])
    team.members["\u{e9}"] = ada
    team.members["e\u{301}"] = ben
    #expect(team.members.count == 1 && team.members["\u{e9}"] === ben)
    team.members[""] = ada
    team.members["a/b"] = ada
    #expect(team.members[""] === ada && team.members["a/b"] === ada)
  }

  @Test("A copy keeps its content while the property changes")
  func value() {
    team.members = ["Ada": ada]
    let copy = team.members
    team.members["Ben"] = ben
    #expect(copy.count == 1 && copy["Ben"] == nil && copy != team.members)
  }

  @Test("Any changes in any order are those of a dictionary", arguments: seeds(1...10))
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let scope = manualScope(team)
    let members = (0..<6).map(Member.init)
    var reference: [String: Member] = [:]
    var shared = scope.canonicalJSON
    let other = manualScope(Team(uuid: team.uuid))
    _ = try? other.applyFullState(scope.fullState(), rootUUID: team.uuid)
    var sets: [ChangeSet] = []
    let token = scope.onChanges.listen { sets.append($0) }
    for step in 0..<400 {
      let note: Comment = "seed \(seed), step \(step)"
      let key = "\(Int.random(in: 0..<5, using: &generator))"
      let member = members.randomElement(using: &generator)!
      switch Int.random(in: 0..<8, using: &generator) {
      case 0...2:
        team.members[key] = member
        reference[key] = member
      case 3:
        team.members[key] = nil
        reference[key] = nil
      case 4:
        member.detach()
        reference = reference.filter { $0.value !== member }
      case 5:
        team.members = [key: member, "5": member]
        reference = [key: member, "5": member]
      case 6:
        struct Stop: Error {}
        let before = team.members
        _ = try? scope.modify {
          team.members[key] = member
          _ = try? scope.modify {
            team.members["6"] = member
            team.members[key] = nil
            throw Stop()
          }
          #expect(team.members[key] === member && team.members["6"] == nil, note)
          throw Stop()
        }
        #expect(team.members == before, note)
      default:
        scope.flush()
        for set in sets {
          _ = other.apply(set.fragments)
          // There and back again.
          let now = other.canonicalJSON
          _ = other.apply(set.inverse.fragments)
          #expect(other.canonicalJSON == shared, note)
          _ = other.apply(set.fragments)
          shared = now
        }
        sets = []
        #expect(other.canonicalJSON == scope.canonicalJSON, note)
      }
      #expect(
        Dictionary(uniqueKeysWithValues: team.members.map { ($0.key, $0.value) }) == reference)
      for member in members {
        let isHeld = reference.values.contains(member)
        #expect((member.scope === scope) == isHeld, note)
        #expect(member.parents.map(\.key) == (isHeld ? ["members"] : []), note)
        #expect(
          (member.record?.scopedParents ?? 0)
            == (isHeld ? reference.values.count { $0 === member } : 0), note)
      }
    }
    withExtendedLifetime(token) {}
  }

  // MARK: In the tree

  @Test("A model belongs to the tree as long as it has a key")
  func membership() {
    let scope = manualScope(team)
    var told: [String] = []
    ada.observeAttach { _ in told.append("attached") }
    ada.observeDetach { _ in told.append("detached") }
    ada.observeAddedToParent { told.append("added to \($1)") }
    ada.observeRemovedFromParent { told.append("removed from \($1)") }
    team.members["a"] = ada
    team.members["b"] = ada
    team.members["a"] = nil
    #expect(ada.scope === scope && ada.parents.count == 1)
    team.members["c"] = ada
    team.members["b"] = nil
    team.members = ["d": ada]
    #expect(told == ["attached", "added to members"])
    team.members["d"] = nil
    #expect(ada.scope == nil && ada.parents.isEmpty)
    #expect(told.dropFirst(2).sorted() == ["detached", "removed from members"])
  }

  @Test("A model that belongs to another scope is refused, and the other entries are changed")
  func refused() {
    let scope = manualScope(team)
    let other = manualScope(ben)
    var errors: [ScopeError] = []
    scope.onError.listen(scope) { errors.append($1) }
    team.members["a"] = ada
    let third = Member(3)
    team.members = ["a": ben, "b": third]
    #expect(errors.count == 1)
    #expect(team.members == ["a": ada, "b": third])
    #expect(ben.scope === other && ada.scope === scope && third.scope === scope)
  }

  @Test("Nothing keeps a model that has lost its last key, or whose holder is gone")
  func release() {
    weak var gone: Member?
    weak var below: Member?
    do {
      let team = Team()
      team.members = ["a": Member(1), "b": Member(2)]
      gone = team.members["a"]
      below = team.members["b"]
      team.members["a"] = nil
      #expect(gone == nil && below != nil)
    }
    #expect(below == nil)
  }

  @Test("A chain of many is released without recursion")
  func chain() {
    var top = Team()
    weak var bottom = top
    for _ in 0..<50_000 {
      let next = Team()
      next.teams["below"] = top
      top = next
    }
    #expect(bottom != nil)
    top = Team()
    #expect(bottom == nil)
  }

  // MARK: Observers

  @Test("Observers are told once for each change, with the values before and after")
  func observers() {
    let scope = manualScope(team)
    team.members["a"] = ada
    scope.advance()
    var told: [String] = []
    team.observeChangeImmediately(\.members) { old, new in
      told.append("\(old.keys) -> \(new.keys)")
    }
    team.observeChange(\.members, isolation: here()) { told.append("coalesced") }
    team.observeTreeChange(path: "members.score", isolation: here()) { told.append("score") }
    team.members["b"] = ben
    team.members["b"] = ben
    team.members["a"] = nil
    #expect(told == [#"["a"] -> ["a", "b"]"#, #"["a", "b"] -> ["b"]"#])
    told = []
    scope.advance()
    #expect(told.sorted() == ["coalesced", "score"])
    told = []
    ben.score = 5
    scope.advance()
    #expect(told == ["score"])
  }

  @Test("An observer that remembers a dictionary keeps no model")
  func remembered() {
    weak var gone: Member?
    var told: [String] = []
    team.members["Ada"] = Member(1)
    gone = team.members["Ada"]
    team.observeChangeImmediately(\.first) { old, new in told.append("\(old.keys) -> \(new.keys)") }
    team.members["Ben"] = ben
    #expect(told.isEmpty)
    team.members["Ada"] = nil
    #expect(gone == nil && told == [#"["Ada"] -> []"#])
    team.members["Abe"] = ben
    #expect(told.last == #"[] -> ["Abe"]"#)
  }

  // MARK: Change sets

  private func sets(_ scope: Scope, _ body: () -> Void) -> [ChangeSet] {
    var result: [ChangeSet] = []
    let token = scope.onChanges.listen { result.append($0) }
    body()
    scope.flush()
    token.cancel()
    return result
  }

  @Test("Each entry is a property of its own in change sets, under the name on the wire")
  func changeSets() throws {
    let scope = manualScope(team)
    let sub = Team()
    let set = try #require(
      sets(scope) {
        team.members["Ada"] = ada
        team.teams["x"] = sub
      }.first)
    #expect(set.fragments.count == 3)
    let change = try #require(set.fragments.first { $0.uuid == team.uuid })
    #expect(
      change.properties == [
        "members/Ada": .string(ada.uuid.wireText), "sub/x": .string(sub.uuid.wireText),
      ])
    let next = try #require(sets(scope) { team.members["Ada"] = nil }.first)
    #expect(next.fragments.map(\.properties) == [["members/Ada": .null]])
    #expect(next.inverse.fragments.count == 2)
    #expect(scope.apply(next.inverse.fragments).errors.isEmpty)
    #expect(team.members["Ada"]?.uuid == ada.uuid)
  }

  @Test("Changes that cancel out, and another instance of a model, are no change to others")
  func noChange() {
    let scope = manualScope(team)
    team.members["Ada"] = ada
    scope.flush()
    #expect(
      sets(scope) {
        team.members["Ben"] = ben
        team.members["Ada"] = nil
        team.members["Ben"] = nil
        team.members["Ada"] = ada
      }.isEmpty)
    #expect(sets(scope) { team.drafts["x"] = ben }.isEmpty)
  }

  @Test("Entries of others come in beside local changes, and beneath them")
  func beneath() throws {
    let scope = manualScope(team)
    team.members = ["a": ada, "b": ben]
    scope.flush()
    let (mine, theirs) = (Member(3), Member(4))
    team.members["a"] = mine
    func theirChange(_ key: String, _ member: Member) -> [SyncFragment] {
      [
        SyncFragment(
          .add, uuid: member.uuid, className: "Member",
          properties: ["score": .integer(Int64(member.score))]),
        SyncFragment(
          .change, uuid: team.uuid, className: "Team",
          properties: ["members/\(key)": .string(member.uuid.wireText)]),
      ]
    }
    #expect(scope.apply(theirChange("a", theirs)).errors.isEmpty)
    let fifth = Member(5)
    #expect(scope.apply(theirChange("c", fifth)).errors.isEmpty)
    #expect(team.members["a"] === mine && team.members["c"]?.uuid == fifth.uuid)
    let set = try #require(sets(scope) {}.first)
    let change = try #require(set.fragments.last)
    #expect(change.properties == ["members/a": .string(mine.uuid.wireText)])
    // The undo takes back an entry that others had put there meanwhile.
    #expect(
      set.inverse.fragments.last?.properties == ["members/a": .string(theirs.uuid.wireText)])
  }

  @Test("A full state takes the entries away that it does not have")
  func fullState() throws {
    let scope = manualScope(team)
    team.members = ["a": ada, "b": ben]
    scope.flush()
    let state = scope.fullState()
    team.members["c"] = ada
    team.members["a"] = nil
    scope.flush()
    _ = try scope.applyFullState(state, rootUUID: team.uuid)
    #expect(team.members.keys == ["a", "b"])
    #expect(scope.fullState() == state)
  }

  @Test("The change set between two states takes away the entries that only the first one has")
  func betweenStates() {
    let scope = manualScope(team)
    team.members = ["a": ada, "b": ben]
    scope.flush()
    let before = scope.fullState()
    team.members["a"] = nil
    team.members["c"] = ben
    scope.flush()
    let after = scope.fullState()
    let set = ChangeSet(from: before, to: after)
    #expect(
      set.fragments.map(\.properties) == [
        ["members/c": .string(ben.uuid.wireText), "members/a": .null]
      ])
    _ = scope.apply(set.inverse.fragments)
    #expect(scope.fullState().canonicalJSON == before.canonicalJSON)
    _ = scope.apply(set.fragments)
    #expect(scope.fullState().canonicalJSON == after.canonicalJSON)
    var rows = FragmentRows()
    rows.replace(with: before)
    rows.apply(set.fragments)
    #expect(rows.fullState().canonicalJSON == after.canonicalJSON)
  }

  @Test("A full state takes away what a dictionary begins with, and so does an addition")
  func beginning() throws {
    let club = Club()
    let scope = manualScope(club)
    #expect(club.members["first"]?.scope === scope)
    let state = SyncFragment(.change, uuid: club.uuid, className: "Club", properties: [:])
    _ = try scope.applyFullState([state], rootUUID: club.uuid)
    #expect(club.members.isEmpty)
    let other = manualScope(Holder(), models: [Club.self])
    let added = UUID()
    let root = other.root as! Holder
    _ = other.apply([
      SyncFragment(.add, uuid: added, className: "Club", properties: [:]),
      SyncFragment(
        .change, uuid: root.uuid, className: "Holder",
        properties: ["club": .string(added.wireText)]),
    ])
    #expect(root.club?.uuid == added && root.club?.members.isEmpty == true)
  }

  @Test("A class that does not have the dictionary keeps its entries, and forgets those that go")
  func unknown() {
    let root = Holder()
    let scope = manualScope(root)
    func write(_ value: JSONValue) {
      _ = scope.apply([
        SyncFragment(
          .change, uuid: root.uuid, className: "Holder", properties: ["members/Ada": value])
      ])
    }
    let uuid = JSONValue.string(UUID().wireText)
    write(uuid)
    #expect(scope.fullState()[0].properties["members/Ada"] == uuid)
    write(.null)
    #expect(scope.fullState()[0].properties.map(\.key) == ["club"])
  }

  @Test("A value that is no model, or one of another class, is told and changes nothing")
  func wrongValues() {
    let scope = manualScope(team, models: [Draft.self])
    team.members["a"] = ada
    scope.flush()
    func write(_ value: JSONValue) -> [ScopeError] {
      scope.apply([
        SyncFragment(
          .change, uuid: team.uuid, className: "Team", properties: ["members/a": value])
      ]).errors.map(\.error)
    }
    #expect("\(write(3))".contains("members/a"))
    #expect("\(write(.string(UUID().wireText)))".contains("members/a"))
    #expect("\(write(.string(team.uuid.wireText)))".contains("members/a"))
    #expect(team.members["a"] === ada)
  }

  // MARK: Snapshots

  @Test("A snapshot has the snapshots by key, and makes the models again")
  func snapshot() throws {
    team.members = ["a": ada, "b": ben, "c": ada]
    team.seats = [7: ben]
    let snapshot = team.snapshot()
    ada.score = 100
    #expect(snapshot.members.mapValues(\.score) == ["a": 1, "b": 2, "c": 1])
    #expect(snapshot.seats[7]?.uuid == ben.uuid)
    #expect(snapshot == snapshot && snapshot != team.snapshot())
    let copy = snapshot.makeModel()
    #expect(copy.members["a"] === copy.members["c"] && copy.members["a"]?.score == 1)
    #expect(copy.seats[7] === copy.members["b"])
    #expect(copy.snapshot() == snapshot)
    let state = manualScope(copy).fullState()
    #expect(snapshot.fragments.map(\.properties) == state.map(\.properties))
    let text = String(
      decoding: try JSONEncoder().encode(snapshot), as: UTF8.self)
    #expect(text.contains(#""members":{"#) && text.contains(#""score":2"#))
  }
}
