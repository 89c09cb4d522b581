import Jetstream

final class Canvas: ModelObject {
  @Property var name: String?
  @Property var shapes: ModelArray<Shape> = []
  @Property var selected: Shape?
}

final class Shape: ModelObject {
  @Property var x: Float = 0
  @Property var y: Float = 0
  @Property var width: Float = 100
  @Property var height: Float = 100
  @Property var color: RGBAColor = .red
  @Property(.local) var isSelected = false
  @Property var parts: ModelArray<Shape> = []

  var area: Float { width * height }
}

/// Somebody who observes; counts what it is told.
final class Listener {
  var count = 0
  var log: [String] = []
  func called() { count += 1 }
}
