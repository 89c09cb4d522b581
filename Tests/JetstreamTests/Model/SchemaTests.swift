import Foundation
import ReflectionOffFixture
import Testing

@testable import Jetstream

private class Level1: ModelObject {
  @Property var flag1 = true
  @Property var big1: Int64 = .max
  private var hidden: Int8 = 3
}

private class Level2: Level1 {
  let constant = "constant"
  @Property(.local) var flag2: Bool? = nil
  @Property var small2: UInt8 = 7
  lazy var later = [1, 2, 3]
}

private final class Level3: Level2 {
  @Property var text3: String? = "three"
  @Property(.local) var flag3 = false
  @Property var maybe3: Int64?
  @Property var color3 = RGBAColor.blue
  @Property var id3 = UUID(uuidString: "00000000-0000-4000-8000-000000000001")!
  @Property var words3 = ["a", "b"]
}

private final class Container<Content: PropertyValue & ExpressibleByNilLiteral>: ModelObject {
  @Property var before = false
  @Property var content: Content = nil
  @Property var after: Int16 = 9
  override class var wireName: String { "Container\(Content.self)" }
}

private enum Outer { final class Nested: ModelObject { @Property var inside = 1.5 } }

private final class WithModels: ModelObject {
  @Property var first = 1
  @Property var child: Level3? = Level3()
  @Property(.local) var second = "two"
  @Property var list: ModelArray<Level1> = [Level2(), Level3()]
  @Property(.local) var third = 3.0
}

private final class Assigning: ModelObject {
  @Property var given: Int
  @Property(.local) var text = "text"
  let other: Int

  required init() {
    given = 5
    other = 6
    super.init()
    text = "changed"
  }
}

private class Furnished: ModelObject {
  @Property var cover: Node?
  @Property var pages: ModelArray<Node> = []
  @Property var index: ModelDictionary<String, Node> = [:]

  required init() {
    super.init()
    cover = Node("cover")
    pages.append(Node("first"))
    pages.append(Node("second"))
    pages = [Node("title"), pages[1]]
    index["a"] = pages.last
    index = ["b": pages[0]]
  }
}

private final class FurnishedMore: Furnished {
  @Property var number = 0
}

private final class Named: ModelObject {
  @Property var name = ""

  required init() {
    super.init()
    name = uuid.uuidString
  }
}

private final class Wide: ModelObject {
  @Property var a0 = 0
  @Property var a1 = 0
  @Property var a2 = 0
  @Property var a3 = 0
  @Property var a4 = 0
  @Property var a5 = 0
  @Property var a6 = 0
  @Property var a7 = 0
  @Property var b0 = 0
  @Property var b1 = 0
  @Property var b2 = 0
  @Property var b3 = 0
  @Property var b4 = 0
  @Property var b5 = 0
  @Property var b6 = 0
  @Property var b7 = 0
  @Property var c0 = 0
  @Property var c1 = 0
  @Property var c2 = 0
  @Property var c3 = 0
  @Property var c4 = 0
  @Property var c5 = 0
  @Property var c6 = 0
  @Property var c7 = 0
  @Property var d0 = 0
  @Property var d1 = 0
  @Property var d2 = 0
  @Property var d3 = 0
  @Property var d4 = 0
  @Property var d5 = 0
  @Property var d6 = 0
  @Property var d7 = 0
  @Property var e0 = 0
  @Property var e1 = 0
  @Property var e2 = 0
  @Property var e3 = 0
  @Property var e4 = 0
  @Property var e5 = 0
  @Property var e6 = 0
  @Property var e7 = 0
  @Property var f0 = 0
  @Property var f1 = 0
  @Property var f2 = 0
  @Property var f3 = 0
  @Property var f4 = 0
  @Property var f5 = 0
  @Property var f6 = 0
  @Property var f7 = 0
  @Property var g0 = 0
  @Property var g1 = 0
  @Property var g2 = 0
  @Property var g3 = 0
  @Property var g4 = 0
  @Property var g5 = 0
  @Property var g6 = 0
  @Property var g7 = 0
  @Property var h0 = 0
  @Property var h1 = 0
  @Property var h2 = 0
  @Property var h3 = 0
  @Property var h4 = 0
  @Property var h5 = 0
  @Property var h6 = 0
  @Property var h7 = 0
  @Property var i0 = 0
  @Property(.local) var i1 = 0
  @Property var i2 = 0
}

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct SchemaTests {
  /// Writes to every property from outside, by offset, and reads through the accessors.
  private func check(_ model: ModelObject) {
    let scope = manualScope(model)
    var told: [String] = []
    model.signals.onPropertyChange.listen { told.append($0.key) }
    for property in model.schema.properties where property.kind == .plain {
      let json = model.json(of: property)
      let other: JSONValue? = [
        .null, true, false, 1, 2, 0.5, "NaN", "spades", ["x"],
        "00000000-0000-4000-8000-00000000000f",
      ].first { property.access.accepts($0) && !model.holds($0, in: property) }
      guard let other else {
        Issue.record("no other value for \(property.name)")
        continue
      }
      let assigned = property.access.assign(other, to: model, at: property.offset)
      #expect(assigned, "\(property.name)")
      #expect(model.holds(other, in: property), "\(property.name)")
      _ = property.access.assign(json, to: model, at: property.offset)
      #expect(model.holds(json, in: property), "\(property.name)")
      #expect(told == [property.name, property.name])
      told = []
    }
    #expect(scope.changeSets {}.isEmpty)
  }

  @Test("inheritance three deep, properties of many widths, other stored members between them")
  func inheritance() {
    let schema = ModelSchema.of(Level3.self)
    #expect(
      schema.properties.map(\.name) == [
        "flag1", "big1", "flag2", "small2", "text3", "flag3", "maybe3", "color3", "id3", "words3",
      ])
    #expect(schema.properties.filter { !$0.isSynced }.map(\.name) == ["flag2", "flag3"])
    #expect(schema["big1"]?.defaultValue == .integer(.max))
    #expect(schema["text3"]?.defaultValue == "three")
    #expect(schema["nothing"] == nil)
    let model = Level3()
    #expect(model.later == [1, 2, 3] && model.constant == "constant")
    check(model)
    check(Level1())
    check(Level2())
    #expect(ModelSchema.of(Level2.self).properties.count == 4)
  }

  @Test("generic classes of several widths, and a nested class")
  func genericAndNested() {
    check(Container<Bool?>())
    check(Container<Int64?>())
    check(Container<String?>())
    check(Outer.Nested())
    let schema = ModelSchema.of(Container<UInt8?>.self)
    #expect(schema.wireName == "ContainerOptional<UInt8>")
    #expect(schema.properties.map(\.name) == ["before", "content", "after"])
    #expect(ModelSchema.of(Outer.Nested.self).wireName == "Nested")
  }

  @Test("defaults that are models themselves do not confuse options and defaults")
  func modelDefaults() {
    let schema = ModelSchema.of(WithModels.self)
    #expect(schema.properties.map(\.isSynced) == [true, true, false, true, false])
    #expect(schema.properties.map(\.defaultValue) == [1, .null, "two", [], 3.0])
    check(WithModels())
    #expect(manualScope(WithModels()).count == 4)
  }

  @Test("an initializer that assigns before and after super.init")
  func assigning() {
    let schema = ModelSchema.of(Assigning.self)
    #expect(schema.properties.map(\.isSynced) == [true, false])
    #expect(schema.properties.map(\.defaultValue) == [5, "changed"])
    check(Assigning())
    #expect(Assigning().other == 6)
  }

  @Test("an initializer that gives the model children after super.init")
  func furnishing() {
    let model = FurnishedMore()
    #expect(model.schema.properties.map(\.makesModels) == [true, true, true, false])
    #expect(model.cover?.label == "cover")
    #expect(model.pages.map(\.label) == ["title", "second"])
    #expect(model.index["b"] === model.pages[0] && model.index["a"] == nil)
    let scope = manualScope(model)
    #expect(scope.count == 4)
    model.pages[1].number = 1
    #expect(scope.changeSets {}.first?.fragments.map(\.kind) == [.change])
  }

  @Test("an initializer that asks for the UUID of the model is told so")
  func named() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Named().schema
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("Named.init() asks for the UUID of the model"))
  }

  @Test("more than 64 properties are all observed and collected")
  func wide() {
    let model = Wide()
    #expect(model.schema.properties.count == 67)
    check(model)
    let scope = manualScope(model)
    let listener = Listener()
    model.observeChange(listener, \.i2, isolation: here()) { $0.called() }
    let sets = scope.changeSets {
      model.a0 = 1
      model.i0 = 2
      model.i1 = 3
      model.i2 = 4
    }
    #expect(sets.first?.fragments.first?.properties == ["a0": 1, "i0": 2, "i2": 4])
    #expect(listener.count == 1)
    model.i1 = 5
    scope.flush()
    #expect(listener.count == 1)
  }

  @Test("a module without reflection metadata is told which flag to remove")
  func reflectionOff() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Blind().uuid
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(text.contains("Remove -disable-reflection-metadata"))
  }
}
