import Jetstream

/// A rectangle on the drawing. Coordinates run from 0 to ``Canvas/width`` and ``Canvas/height``,
/// with the origin at the top left.
final class Shape: ModelObject {
  @Property var x: Float = 0
  @Property var y: Float = 0
  @Property var width: Float = 120
  @Property var height: Float = 120
  @Property var color: RGBAColor = .coral

  convenience init(
    x: Float, y: Float, width: Float = 120, height: Float = 120, color: RGBAColor
  ) {
    self.init()
    (self.x, self.y) = (x, y)
    (self.width, self.height) = (width, height)
    self.color = color
  }
}

/// The drawing: shapes in their stacking order, the last one on top.
final class Canvas: ModelObject {
  static let width: Float = 1200
  static let height: Float = 700

  @Property var name: String?
  @Property var shapes: ModelArray<Shape> = []

  /// What a new server shows.
  static func sample() -> Canvas {
    let canvas = Canvas()
    canvas.name = "Morning at the harbour"
    canvas.shapes = [
      Shape(x: 130, y: 210, width: 250, height: 250, color: .coral),
      Shape(x: 310, y: 120, width: 190, height: 190, color: .sun),
      Shape(x: 450, y: 330, width: 320, height: 150, color: .teal),
      Shape(x: 690, y: 170, width: 210, height: 240, color: .sky),
      Shape(x: 840, y: 350, width: 170, height: 170, color: .grape),
    ]
    return canvas
  }
}

extension RGBAColor {
  static let coral = RGBAColor(rgba: 0xFF6F61FF)
  static let sun = RGBAColor(rgba: 0xFFC145FF)
  static let teal = RGBAColor(rgba: 0x1FB8A6FF)
  static let sky = RGBAColor(rgba: 0x3D9BFFFF)
  static let grape = RGBAColor(rgba: 0x8E6CFFFF)
  static let rose = RGBAColor(rgba: 0xF25CA2FF)
}
