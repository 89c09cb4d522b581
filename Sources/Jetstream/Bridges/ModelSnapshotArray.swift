/// The snapshots of the models in a collection, in the order of the collection. Part of a
/// ``ModelSnapshot``.
public struct ModelSnapshotArray<Member: ModelObject>: RandomAccessCollection, Sendable {
  private let graph: SnapshotGraph
  private let places: [Int]

  init(graph: SnapshotGraph, places: [Int]) {
    self.graph = graph
    self.places = places
  }

  /// Always 0.
  public var startIndex: Int { 0 }
  /// The number of models.
  public var endIndex: Int { places.count }

  /// The snapshot of the model at `position`. Cost: O(1).
  public subscript(position: Int) -> ModelSnapshot<Member> {
    ModelSnapshot(graph: graph, place: places[position])
  }
}

extension ModelSnapshotArray: Hashable {
  /// Returns true if both hold the same models with the same values in the same order.
  public static func == (a: ModelSnapshotArray, b: ModelSnapshotArray) -> Bool {
    a.elementsEqual(b)
  }

  /// Hashes the elements.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(count)
    for element in self { hasher.combine(element) }
  }
}
