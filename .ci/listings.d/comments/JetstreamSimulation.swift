import Jetstream
import JetstreamSimulation

final class Shape: ModelObject {
  @Property var x: Float = 0
}

final class Canvas: ModelObject {
  @Property var shapes: ModelArray<Shape> = []
}

func run(_ canvas: Canvas, _ random: inout SimulationRandom) {
  do {
    // listing
  }
}
