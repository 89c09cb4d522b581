import Foundation

@testable import Jetstream

/// A live query of a scope or of a collection of a plant.
enum ForestQuery {
  /// All, in the order of their UUIDs.
  case all(Int)
  /// The ones with a number, the greatest first.
  case numbered(Int)
  /// By a composite.
  case byTotal(Int)
  /// Those of a collection with an odd number, in its order.
  case odd(ListKey)
  /// Those of a collection by number.
  case byNumber(ListKey)

  var scope: Int? {
    switch self {
    case .all(let scope), .numbered(let scope), .byTotal(let scope): scope
    case .odd, .byNumber: nil
    }
  }

  func live(_ plant: Plant, in forest: Forest) -> LiveQuery<Plant> {
    switch self {
    case .all(let scope): forest.scope(scope).query(Plant.self).live(isolation: here())
    case .numbered(let scope):
      forest.scope(scope).query(Plant.self).filter { $0.number > 0 }
        .sorted(by: \.number, order: .reverse).then(by: \.title).live(isolation: here())
    case .byTotal(let scope):
      forest.scope(scope).query(Plant.self).sorted(by: \.total).live(isolation: here())
    case .odd(let key):
      plant.query(Plant.path(key)).filter { !$0.number.isMultiple(of: 2) }.live(isolation: here())
    case .byNumber(let key):
      plant.query(Plant.path(key)).sorted(by: \.number).live(isolation: here())
    }
  }

  func rows(_ reference: ForestReference, _ node: Int) -> [Int] {
    func number(_ id: Int) -> Int { reference.nodes[id]!.plain.number }
    func uuid(_ id: Int) -> String { reference.nodes[id]!.uuid.uuidString }
    func title(_ id: Int) -> String { reference.nodes[id]!.plain.title.map { "+" + $0 } ?? "" }
    let members = scope.map { Array(reference.members[$0] ?? []) } ?? []
    switch self {
    case .all: return members.sorted { uuid($0) < uuid($1) }
    case .numbered:
      return members.filter { number($0) > 0 }.sorted {
        (number($1), title($0), uuid($0)) < (number($0), title($1), uuid($1))
      }
    case .byTotal:
      return members.sorted {
        (reference.total($0), uuid($0)) < (reference.total($1), uuid($1))
      }
    case .odd(let key):
      return reference.nodes[node]!.list(key).filter { !number($0).isMultiple(of: 2) }
    case .byNumber(let key):
      return reference.nodes[node]!.list(key).enumerated().sorted {
        (number($0.element), $0.offset) < (number($1.element), $1.offset)
      }.map(\.element)
    }
  }
}
