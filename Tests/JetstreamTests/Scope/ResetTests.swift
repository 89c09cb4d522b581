import Jetstream
import Testing

#if ON_ACTOR
@TestDomain
#endif
@Suite("Missing properties", .paced)
struct ResetTests {
  @Test("They return to their defaults if asked for, and keep their values otherwise")
  func defaults() {
    let shape = Shape()
    let scope = Scope(name: "Shape", root: shape, ticker: testTicker())
    shape.x = 5
    shape.y = 6
    scope.flush()
    let fragment = SyncFragment(
      .change, uuid: shape.uuid, className: "Shape", properties: ["x": .integer(7)])
    #expect(scope.apply([fragment]).isComplete)
    #expect(shape.x == 7 && shape.y == 6)
    #expect(scope.apply([fragment], resettingMissing: true).isComplete)
    #expect(shape.x == 7 && shape.y == 0)
  }
}
