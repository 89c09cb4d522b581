import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

@Suite("The differences that a change set would make", .paced)
struct DifferenceTests {
  /// A state of a scope, read from its fragments.
  private struct State {
    var models: [UUID: (schema: ClassSchema, properties: JSONObject)] = [:]

    init(of content: any HostedContent) {
      for fragment in content.sharedState() {
        models[fragment.uuid] = (content.schema(of: fragment)!, fragment.properties)
      }
    }

    func list(_ uuid: UUID, _ key: String) -> [UUID] {
      FragmentValidator.uuids(in: models[uuid]?.properties[key] ?? .null)
    }
  }

  /// The differences in words, sorted.
  private static func words(_ differences: [Difference], _ before: State, _ after: State)
    -> [String]
  {
    differences.compactMap { difference in
      let uuid = difference.model.uuid
      let name = uuid.wireText.suffix(2)
      // Of a model that comes or goes, that is all that the two states tell.
      let stays = before.models[uuid] != nil && after.models[uuid] != nil
      switch difference.kind {
      case .created: return "+\(name)"
      case .deleted: return "-\(name)"
      case .updated(let property): return stays ? "\(name).\(property.wireName)" : nil
      case .inserted(let child, let property):
        return stays ? "\(name).\(property.wireName)+\(child.uuid.wireText.suffix(2))" : nil
      case .removed(let child, let property):
        return stays ? "\(name).\(property.wireName)-\(child.uuid.wireText.suffix(2))" : nil
      case .moved: return nil
      }
    }.sorted()
  }

  /// The differences between two states in words, sorted.
  private static func words(_ before: State, _ after: State) -> [String] {
    var result: [String] = []
    for uuid in after.models.keys where before.models[uuid] == nil {
      result.append("+\(uuid.wireText.suffix(2))")
    }
    for (uuid, old) in before.models {
      let name = uuid.wireText.suffix(2)
      guard let new = after.models[uuid] else {
        result.append("-\(name)")
        continue
      }
      for key in Set(old.properties.map(\.key) + new.properties.map(\.key)) {
        let property = old.schema[wireName: key]!
        let (one, two) = (old.properties[key] ?? .null, new.properties[key] ?? .null)
        if property.isCollection || property.entryKey != nil {
          let (before, after) = (
            Set(FragmentValidator.uuids(in: one)), Set(FragmentValidator.uuids(in: two))
          )
          for gained in after.subtracting(before) {
            result.append("\(name).\(property.wireName)+\(gained.wireText.suffix(2))")
          }
          for lost in before.subtracting(after) {
            result.append("\(name).\(property.wireName)-\(lost.wireText.suffix(2))")
          }
        } else if !one.canonicalText.utf8.elementsEqual(two.canonicalText.utf8) {
          result.append("\(name).\(key)")
        }
      }
    }
    return result.sorted()
  }

  /// The collections in which models that stay have another order.
  private static func reordered(_ before: State, _ after: State) -> Set<PropertyKey> {
    var result: Set<PropertyKey> = []
    for (uuid, old) in before.models where after.models[uuid] != nil {
      for property in old.schema.properties where property.isCollection {
        let (one, two) = (
          before.list(uuid, property.wireName), after.list(uuid, property.wireName)
        )
        if one.filter(two.contains) != two.filter(one.contains) {
          result.insert(PropertyKey(uuid: uuid, name: property.wireName))
        }
      }
    }
    return result
  }

  @Test("They are those between the state before and the state after", arguments: UInt64(1)...24)
  func sameAsStates(seed: UInt64) throws {
    var source = FragmentSource(seed: seed)
    let plot = Plot()
    let scope = Scope(name: "Plot", root: plot, ticker: .manual())
    let schema = try ScopeSchema(ScopeSchema(of: Plot.self).json).schema
    let document = Document(schema: schema, root: source.root)
    let content: any HostedContent =
      seed % 2 == 0 ? ModelContent(scope) : RowsContent(name: "Plot", document)
    let host = ScopeOrder(
      content: content, epoch: "e", streamLimit: .init(sets: 100, bytes: 100_000))
    _ = try content.restore([
      SyncFragment(
        .change, uuid: source.root, className: "Plot", properties: document.root.properties)
    ])
    var found = 0
    for step in 0..<150 {
      let before = State(of: content)
      let fragments = source.set(before.models.keys.sorted())
      var submitter = ScopeOrder.Submitter(
        session: 1, proven: host.sequence, rebases: true, missed: .init())
      submitter.usesOperations = seed % 3 != 0 || source.chance(0.5)
      let isAtomic = source.chance(0.2)
      let draft = host.validatedDraft(of: fragments, isAtomic: isAtomic, by: submitter)
      let slices = source.chance(0.5) ? Int.max : source.chance(0.5) ? 1 : 4
      let differences =
        draft.isRejected
        ? []
        : Differences.every(
          in: .after(draft.effective, in: content, memory: host, slices: slices), slices: slices)
      let predicted = differences.map { ($0, $0.fragments) }
      // Values are looked up while nothing has changed.
      let moved = differences.compactMap { difference -> PropertyKey? in
        guard case .moved(_, let property) = difference.kind else { return nil }
        return PropertyKey(uuid: difference.model.uuid, name: property.wireName)
      }
      _ = host.submit(fragments, isAtomic: isAtomic, by: submitter)
      let after = State(of: content)
      let place: Comment = "seed \(seed), step \(step): \(fragments.map(\.json.text))"
      try #require(
        Self.words(differences, before, after) == Self.words(before, after), place)
      #expect(Self.reordered(before, after).isSubset(of: moved), place)
      #expect(predicted.allSatisfy { !$0.1.isEmpty }, place)
      found += differences.count
      if source.chance(0.05) { host.forget(upTo: host.sequence) }
    }
    #expect(found > 150, "seed \(seed) makes too few differences")
  }
}
