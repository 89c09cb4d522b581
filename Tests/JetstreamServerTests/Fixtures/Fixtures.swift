import Jetstream

final class Canvas: ModelObject {
  @Property var name: String?
  @Property var shapes: ModelArray<Shape> = []
  @Property var hidden: ModelArray<Shape> = []
  @Property var selected: Shape?
  @Property var named: ModelDictionary<String, Shape> = [:]
  @Property(.counter) var likes = 0
}

class Shape: ModelObject {
  @Property var x: Float = 0
  @Property var y: Float = 0
  @Property var label = ""
  @Property var tags: [Int] = []
  @Property(.local) var isHovered = false
  @Property var parts: ModelArray<Shape> = []
  @Property var corners: ModelDictionary<Int, Shape> = [:]
}

/// A generator that gives the same numbers for the same seed.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed &* 0xD1B5_4A32_D192_ED03 ^ 0x5851_F42D_4C95_7F2D }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
