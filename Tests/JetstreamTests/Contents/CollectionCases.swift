import Foundation

@testable import Jetstream

/// Collections and operations on a few models, all of them or some by chance.
struct CollectionCases {
  let models: [UUID]

  init(_ count: Int) {
    models = (0..<count).map { UUID(uuidString: "0000000\($0)-0000-4000-8000-000000000000")! }
  }

  /// Every collection of at most `count` of the models, in every order.
  func all(upTo count: Int) -> [CollectionContent] {
    var result: [[UUID]] = [[]]
    var last = result
    for _ in 0..<count {
      last = last.flatMap { list in models.filter { !list.contains($0) }.map { list + [$0] } }
      result += last
    }
    return result.map { CollectionContent($0) }
  }

  /// Every operation on one of the models with at most `anchors` predecessors.
  func operations(anchors: Int) -> [PropertyOperation] {
    let places: [PropertyOperation.Place] =
      [.start, .end] + all(upTo: anchors).dropFirst().map { .after($0.elements) }
    return models.flatMap { model in
      places.flatMap { [.insert(model, $0), .move(model, $0)] } + [.remove(model)]
    }
  }

  func content(_ generator: inout SeededGenerator) -> CollectionContent {
    CollectionContent(
      Array(
        models.shuffled(using: &generator)
          .prefix(Int.random(in: 0...models.count, using: &generator))))
  }

  func operation(_ generator: inout SeededGenerator) -> PropertyOperation {
    let model = models.randomElement(using: &generator)!
    let anchors = models.shuffled(using: &generator)
      .prefix(Int.random(in: 1...3, using: &generator))
    let place: PropertyOperation.Place =
      switch Int.random(in: 0..<4, using: &generator) {
      case 0: .start
      case 1: .end
      default: .after(Array(anchors))
      }
    return switch Int.random(in: 0..<3, using: &generator) {
    case 0: .insert(model, place)
    case 1: .move(model, place)
    default: .remove(model)
    }
  }

  /// Applies an operation to a list in another way than the library does: by the parts in front of the model and behind
  /// it.
  static func reference(_ list: [UUID], _ operation: PropertyOperation) -> [UUID] {
    func put(_ model: UUID, _ place: PropertyOperation.Place) -> [UUID] {
      let others = list.filter { $0 != model }
      let front: ArraySlice<UUID> =
        switch place {
        case .start: []
        case .end: others[...]
        case .after(let anchors):
          anchors.first(where: others.contains).map { anchor in
            others.prefix { $0 != anchor } + [anchor]
          } ?? others[...]
        }
      return front + [model] + others.dropFirst(front.count)
    }
    return switch operation {
    case .insert(let model, let place): put(model, place)
    case .move(let model, let place): list.contains(model) ? put(model, place) : list
    case .remove(let model): list.filter { $0 != model }
    case .add: list
    }
  }
}

extension CollectionContent {
  func after(_ operations: [PropertyOperation]) -> CollectionContent {
    var result = self
    result.apply(operations)
    return result
  }
}
