import Jetstream
import Observation

// The same shape in several variants. Jetstream's and the plain one have the same instance size.

/// Jetstream's variant.
final class Shape: ModelObject {
  @Property var level = 0
  @Property var x: Float = 0
  @Property var y: Float = 0
  @Property var width: Float = 100
  @Property var height: Float = 100
  @Property var color = RGBAColor(rgba: 0x3366_99FF)
}

/// Jetstream's variant for SwiftUI.
final class BridgedShape: ModelObject, Observable {
  @Property var level = 0
  @Property var x: Float = 0
}

/// The parent of shapes.
final class Canvas: ModelObject {
  @Property var shapes: ModelArray<Shape> = []
  @Property var note = ""
}

/// A parent that may have a canvas.
final class Desk: ModelObject {
  @Property var canvas: Canvas?
}

/// The class without any framework. `spare` makes up for the fields that the other variants have in addition.
final class PlainShape {
  var spare: AnyObject?
  var level = 0
  var x: Float = 0
  var y: Float = 0
  var width: Float = 100
  var height: Float = 100
  var color = RGBAColor(rgba: 0x3366_99FF)
}

/// The class with an observer written by hand: one closure, called at once.
final class HandmadeShape {
  var onLevel: (() -> Void)?
  var level = 0 {
    didSet { if level != oldValue { onLevel?() } }
  }
  var x: Float = 0
  var y: Float = 0
  var width: Float = 100
  var height: Float = 100
  var color = RGBAColor(rgba: 0x3366_99FF)
}

/// The class as the Observation module would have it.
@Observable
final class ObservedShape {
  var level = 0
  var x: Float = 0
  var y: Float = 0
  var width: Float = 100
  var height: Float = 100
  var color = RGBAColor(rgba: 0x3366_99FF)
}

/// A thousand of each, which is what loops run over.
enum Thousand {
  static let count = 1000

  static func of<Object: AnyObject>(_ make: () -> Object) -> ContiguousArray<Object> {
    ContiguousArray((0..<count).map { _ in make() })
  }
}

extension Shape {
  /// A canvas with `count` shapes, which belongs to no scope yet.
  static func canvas(of count: Int) -> (Canvas, ContiguousArray<Shape>) {
    let canvas = Canvas()
    let shapes = ContiguousArray((0..<count).map { _ in Shape() })
    canvas.shapes = ModelArray(shapes)
    return (canvas, shapes)
  }
}
