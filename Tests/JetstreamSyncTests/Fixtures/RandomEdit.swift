import Foundation
import Jetstream

/// Changes a drawing at random.
enum RandomEdit {
  static func perform(on canvas: Canvas, step: Int, _ generator: inout SeededGenerator) {
    let shapes = canvas.shapes
    let shape = shapes.randomElement(using: &generator)
    switch Int.random(in: 0..<14, using: &generator) {
    case 0, 1, 2: shape?.x = Float.random(in: -100...100, using: &generator)
    case 3: shape?.label = "step \(step)"
    case 4: canvas.name = Bool.random(using: &generator) ? "name \(step)" : nil
    case 5, 6: canvas.shapes.append(made(step))
    case 7:
      canvas.shapes.insert(made(step), at: Int.random(in: 0...shapes.count, using: &generator))
    case 8: if let shape { canvas.shapes.remove(shape) }
    case 9:
      if shapes.count > 1 {
        canvas.shapes.move(
          from: Int.random(in: 0..<shapes.count, using: &generator),
          to: Int.random(in: 0..<shapes.count, using: &generator))
      }
    case 10:
      if let shape {
        canvas.hidden.append(shape)
        canvas.shapes.remove(shape)
      }
    case 11:
      if let shape = canvas.hidden.randomElement(using: &generator) {
        canvas.shapes.append(shape)
        canvas.hidden.remove(shape)
      }
    case 12: canvas.selected = Bool.random(using: &generator) ? shape : nil
    default: shape?.parts.append(made(step))
    }
  }

  private static func made(_ step: Int) -> Shape {
    let shape = Shape()
    shape.label = "made in step \(step)"
    shape.tags = [step]
    return shape
  }
}
