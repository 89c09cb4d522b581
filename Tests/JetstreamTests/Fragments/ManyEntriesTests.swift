import Foundation
import Testing

@testable import Jetstream

private final class Crew: ModelObject {
  @Property var members: ModelDictionary<String, Mate> = [:]
}

private final class Mate: ModelObject {}

#if ON_ACTOR
@TestDomain
#endif
@Suite("Removing many entries of a dictionary", .paced)
struct ManyEntriesTests {
  private let crew = Crew()

  private func entries(_ count: Int, _ value: JSONValue) -> JSONObject {
    JSONObject((0..<count).map { ("members/\($0)", value) })
  }

  private func fragment(_ kind: SyncFragment.Kind, _ properties: JSONObject) -> SyncFragment {
    SyncFragment(kind, uuid: crew.uuid, className: "Crew", properties: properties)
  }

  @Test("The rows of a log do it in linear time")
  func rows() {
    let found = growth(from: 500) { count in
      let (full, gone) = (entries(count, "there"), entries(count, .null))
      return {
        var rows = FragmentRows()
        rows.replace(with: [fragment(.change, full)])
        rows.apply([fragment(.change, gone)])
        #expect(rows[crew.uuid]?.properties == [:])
        rows.replace(with: [fragment(.change, gone)])
        #expect(rows[crew.uuid]?.properties == [:])
      }
    }
    #expect(found < mostLinearGrowth)
  }

  @Test("So does what is kept of a model that has left")
  func graveyard() {
    let found = growth(from: 500) { count in
      let (full, gone) = (entries(count, "there"), entries(count, .null))
      return {
        for update in [fragment(.change, gone), fragment(.add, [:])] {
          var graveyard = Graveyard(limit: 100)
          graveyard.insert(crew, values: full)
          graveyard.update(update)
          #expect(graveyard.values(of: crew.uuid) == [:])
        }
      }
    }
    #expect(found < mostLinearGrowth)
  }

  @Test("So does a model whose class does not have the dictionary")
  func unknown() {
    let found = growth(from: 500) { count in
      let mate = Mate()
      let scope = manualScope(mate)
      func change(_ value: JSONValue) -> [SyncFragment] {
        [
          SyncFragment(
            .change, uuid: mate.uuid, className: "Mate", properties: entries(count, value))
        ]
      }
      let gone = change(.null)
      scope.apply(change("there"))
      return {
        scope.apply(gone)
        #expect(scope.unknownProperties(of: mate) == [:])
      }
    }
    #expect(found < mostLinearGrowth)
  }

  @Test("So does a change set that is taken back when others have written its entries")
  func revert() {
    let found = growth(from: 250) { count in
      let scope = manualScope(Crew())
      let root = scope.root as! Crew
      let (mine, theirs) = (Mate(), Mate())
      let set = scope.modify {
        for number in 0..<count { root.members["\(number)"] = mine }
      }.changeSet
      scope.modify { for number in 0..<count { root.members["\(number)"] = theirs } }
      return {
        scope.revert(set)
        #expect(root.members.count == count && root.members["0"] === theirs)
      }
    }
    #expect(found < mostLinearGrowth)
  }

  @Test("So does a change set that is sent in parts, of entries that were sent or wait")
  func split() {
    let found = growth(from: 250) { count in
      let (parent, child) = (UUID(), UUID())
      let name = JSONValue.string(child.wireText)
      let sources: [SyncFragment] = [
        fragment(.change, ["crews": [.string(parent.wireText)]]),
        SyncFragment(
          .add, uuid: parent, className: "Crew",
          properties: JSONObject(
            (0..<count).map { ("members/\($0)", "there") }
              + (0..<count).map { ("members/child\($0)", name) })),
        SyncFragment(.add, uuid: child, className: "Mate", properties: [:]),
      ]
      return {
        let messages = SetSplitter.split(
          sources.enumerated().map { ($0, $1) }, limit: 2, isStructural: { _, _ in true },
          before: { _, _ in nil })
        let pieces = messages.joined().map(\.fragment.properties.count)
        #expect(pieces.reduce(0, +) >= 2 * count)
      }
    }
    #expect(found < mostLinearGrowth)
  }

  @Test("So does the last shared state of a model, of entries that are in no change set yet")
  func confirmed() {
    let found = growth(from: 250) { count in
      let scope = manualScope(Crew())
      let root = scope.root as! Crew
      scope.flush()
      let mate = Mate()
      for number in 0..<count { root.members["\(number)"] = mate }
      return {
        #expect(root.record?.confirmedProperties() == [:])
        withExtendedLifetime(scope) {}
      }
    }
    #expect(found < mostLinearGrowth)
  }
}
