import Foundation
import Testing

@testable import Jetstream

private final class Mixed: ModelObject {
  @Property var observed = 1
  let constant = 2
  private var hidden = 3
  var computed: Int { hidden }
}

private class Base: ModelObject {
  @Property var inherited = "base"
}

private final class Derived: Base {
  @Property var own: [String] = []
  override class var wireName: String { "DerivedModel" }
}

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct PropertyTests {
  @Test("Only @Property members are properties and go into fragments")
  func onlyObserved() {
    let model = Mixed()
    #expect(model.schema.properties.map(\.name) == ["observed"])
    let scope = manualScope(model)
    #expect(scope.fullState().map(\.properties) == [["observed": 1]])
    #expect(model.constant + model.computed == 5)
  }

  @Test("A reference goes over the wire as the child's lower-case UUID")
  func reference() {
    let canvas = Canvas()
    let scope = manualScope(canvas)
    let shape = Shape(uuid: UUID(uuidString: "ABCDEF00-0000-4000-8000-0000000000FF")!)
    let sets = scope.changeSets { canvas.selected = shape }
    let change = sets.first?.fragments.last
    #expect(change?.kind == .change)
    #expect(change?.uuid == canvas.uuid)
    #expect(change?.properties == ["selected": "abcdef00-0000-4000-8000-0000000000ff"])
  }

  @Test("A collection goes over the wire as UUIDs: in order, and as what was done to it")
  func collection() {
    let canvas = Canvas()
    let scope = manualScope(canvas)
    let shapes = [Shape(), Shape()]
    let sets = scope.changeSets { for shape in shapes { canvas.shapes.append(shape) } }
    #expect(sets.count == 1)
    #expect(sets.first?.fragments.map(\.kind) == [.add, .add, .change])
    #expect(sets.first?.fragments.last?.properties == [:])
    #expect(
      sets.first?.fragments.last?.operations == [
        "shapes": shapes.map { .insert($0.uuid, .end) }
      ])
    let expected = JSONValue.array(shapes.map { .string($0.uuid.uuidString.lowercased()) })
    #expect(scope.fullState().first?.properties["shapes"] == expected)
  }

  @Test("A UUID can be given, as a value or as text, and two models never share one")
  func uuids() {
    let uuid = UUID()
    #expect(Shape(uuid: uuid).uuid == uuid)
    #expect(Shape(uuid: uuid.uuidString)?.uuid == uuid)
    #expect(Shape(uuid: "no uuid") == nil)
    #expect(Shape().uuid != Shape().uuid)
    let shape = Shape()
    #expect(shape.uuid == shape.uuid)
    #expect(shape._jsonValue == .string(shape.uuid.uuidString.lowercased()))
    let many = Set((0..<2_000).map { _ in UUID.pooled() })
    #expect(many.count == 2_000)
    for uuid in many {
      #expect(uuid.uuid.6 >> 4 == 4 && uuid.uuid.8 >> 6 == 2)
    }
  }

  @Test("Setting an equal value notifies nobody and leaves no fragment")
  func equalValue() {
    let canvas = Canvas()
    let shape = Shape()
    canvas.shapes = [shape]
    canvas.selected = shape
    shape.x = 1
    let scope = manualScope(canvas)
    scope.flush()
    let listener = Listener()
    shape.observeChange(listener, isolation: here()) { $0.called() }
    shape.signals.onPropertyChange.listen(listener) { me, _ in me.called() }
    canvas.signals.onPropertyChange.listen(listener) { me, _ in me.called() }
    canvas.observeTreeChange(listener, isolation: here()) { $0.called() }
    canvas.signals.onCollectionChange.listen(listener) { me, _ in me.called() }
    let sets = scope.changeSets {
      shape.x = 1
      shape.x += 0
      shape.color = .red
      canvas.name = nil
      canvas.selected = shape
      canvas.shapes = [shape]
      canvas.shapes.append(shape)
      canvas.shapes.move(from: 0, to: 0)
    }
    #expect(listener.count == 0)
    #expect(sets.isEmpty)
  }

  @Test("Not-a-number equals itself, and minus zero is zero, as on the wire")
  func floatsThatCompareOddly() {
    let shape = Shape()
    let scope = manualScope(shape)
    shape.x = .nan
    shape.y = 0
    scope.flush()
    let again = scope.changeSets { shape.x = .nan }
    #expect(again.isEmpty)
    let zero = scope.changeSets { shape.y = -0.0 }
    #expect(zero.isEmpty)
    #expect((-Float.zero)._jsonValue.canonicalText == Float.zero._jsonValue.canonicalText)
  }

  @Test("Texts of different bytes are different values, however they look")
  func unicodeForms() {
    let canvas = Canvas()
    let scope = manualScope(canvas)
    canvas.name = "\u{E9}"
    scope.flush()
    let sets = scope.changeSets { canvas.name = "e\u{301}" }
    #expect(sets.count == 1)
    #expect(canvas.name?.utf8.count == 3)
  }

  @Test("A subclass has its inherited properties, first, and its own wire name")
  func inheritance() {
    let model = Derived()
    #expect(model.schema.properties.map(\.name) == ["inherited", "own"])
    model.own = ["b", "a"]
    let fragment = manualScope(model).fullState()[0]
    #expect(fragment.className == "DerivedModel")
    #expect(fragment.properties == ["inherited": "base", "own": ["b", "a"]])
  }

  @Test("A local property is observed, but neither sent nor received")
  func local() {
    let shape = Shape()
    let scope = manualScope(shape)
    let listener = Listener()
    shape.observeChange(listener, \.isSelected, isolation: here()) { $0.called() }
    let sets = scope.changeSets { shape.isSelected = true }
    #expect(listener.count == 1)
    #expect(sets.isEmpty)
    let remote = SyncFragment(
      .change, uuid: shape.uuid, className: "Shape", properties: ["isSelected": false])
    scope.apply([remote])
    #expect(shape.isSelected)
    #expect(scope.fullState()[0].properties["isSelected"] == nil)
  }
}
