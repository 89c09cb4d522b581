import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("A scope as a change set would leave it")
struct TentativeScopeTests {
  private let plot = Plot()
  private let scope: Scope
  private let content: ModelContent

  init() {
    scope = Scope(name: "Plot", root: plot, ticker: .manual())
    content = ModelContent(scope)
  }

  private func additions(_ uuids: [UUID]) -> [SyncFragment] {
    uuids.map { SyncFragment(.add, uuid: $0, className: "Crop", properties: ["name": "new"]) }
  }

  private func change(_ properties: [(String, JSONValue)]) -> SyncFragment {
    SyncFragment(
      .change, uuid: plot.uuid, className: "Plot", properties: JSONObject(properties))
  }

  private func entry(_ number: Int) -> String { EntryName.text(of: "\(number)", in: "marks") }

  // Few models and few writes are compared one by one, many are looked up.
  @Test(
    "Each of many models and entries makes its differences once", arguments: [1, 4, 5, 9, 10, 60])
  func many(count: Int) throws {
    let uuids = (0..<count).map { _ in UUID() }
    let all = change((0..<count).map { (entry($0), .string(uuids[$0].wireText)) })
    let tentative = TentativeScope.after(
      additions(uuids) + [all], in: content, memory: NoMemory())
    let differences = Differences.found(in: tentative)
    var (inserted, created): ([UUID], [UUID]) = ([], [])
    for difference in differences.all {
      switch difference.kind {
      case .inserted(let child, let property):
        inserted.append(child.uuid)
        #expect(Array(difference.fragments) == [count])
        let place = try #require(uuids.firstIndex(of: child.uuid))
        #expect(property.wireName == entry(place))
      case .created:
        created.append(difference.model.uuid)
        #expect(Array(difference.fragments) == [uuids.firstIndex(of: difference.model.uuid)])
      default: Issue.record("\(difference.kind) is no difference of the change set.")
      }
    }
    #expect(inserted == uuids && created.count == count && Set(created) == Set(uuids))
    #expect(differences.firstCreation == count)
    for uuid in uuids { #expect(tentative[uuid]?.uuid == uuid) }
    #expect(tentative[UUID()] == nil)
  }

  @Test("The last of several writes of an entry counts, with all their fragments")
  func writtenTwice() throws {
    let uuids = (0..<20).map { _ in UUID() }
    let first = change((0..<20).map { (entry($0), .string(uuids[0].wireText)) })
    let second = change((0..<20).map { (entry($0), $0 < 10 ? .null : .string(uuids[$0].wireText)) })
    let tentative = TentativeScope.after(
      additions(uuids) + [first, second], in: content, memory: NoMemory())
    var inserted: [UUID] = []
    for difference in Differences.found(in: tentative).all {
      guard case .inserted(let child, _) = difference.kind else { continue }
      inserted.append(child.uuid)
      #expect(Array(difference.fragments) == [20, 21])
    }
    #expect(inserted == Array(uuids[10...]))
    let root = try #require(tentative.root)
    #expect(root.writeCount == 20 && tentative.writtenCount == 21)
  }

  @Test("A model that leaves one of many holders stays, and leaves with the last one")
  func manyHolders() {
    let crop = Crop()
    let holders = (0..<12).map { _ in Crop() }
    for holder in holders { holder.parts = [crop] }
    plot.crops = ModelArray(holders)
    scope.flush()
    func removals(_ count: Int) -> [SyncFragment] {
      holders.prefix(count).map {
        var fragment = SyncFragment(.change, uuid: $0.uuid, className: "Crop", properties: [:])
        fragment.operations["parts"] = [.remove(crop.uuid)]
        return fragment
      }
    }
    func deleted(_ fragments: [SyncFragment]) -> [Difference] {
      let scope = TentativeScope.after(fragments, in: content, memory: NoMemory())
      return Differences.every(in: scope).filter {
        if case .deleted = $0.kind { true } else { false }
      }
    }
    #expect(deleted(removals(1)).isEmpty)
    #expect(deleted(removals(11)).isEmpty)
    let last = deleted(removals(12))
    #expect(last.map(\.model.uuid) == [crop.uuid])
    #expect(last.map { Array($0.fragments) } == [Array(0..<12)])
  }
}
