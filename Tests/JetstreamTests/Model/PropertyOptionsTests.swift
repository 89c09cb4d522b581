import Foundation
import Synchronization
import Testing

@testable import Jetstream

private final class Part: ModelObject {
  @Property var number = 0
}

private class Renamed: ModelObject {
  @Property(.wireName("colour")) var color = RGBAColor.red
  @Property([.wireName("pos"), .minSyncInterval(.seconds(1))]) var position = 0.0
  @Property(.wireName("label")) var name: String?
  @Property(.wireName("child")) var part: Part?
  @Property(.wireName("children")) var parts: ModelArray<Part> = []
  @Property var plain = 0
}

private final class Silent: Renamed {
  @Property var extra = 0
  override class var propertyOptions: [String: PropertyOptions] {
    ["color": .local, "plain": .wireName("simple"), "extra": .wireName("more")]
  }
}

private class Middle: Renamed {
  override class var propertyOptions: [String: PropertyOptions] {
    ["color": .wireName("tint"), "plain": .local]
  }
}

private final class Bottom: Middle {
  override class var propertyOptions: [String: PropertyOptions] { ["color": .wireName("shade")] }
}

private final class BottomWithout: Middle {}

private final class UnknownOption: Renamed {
  override class var propertyOptions: [String: PropertyOptions] { ["kolor": .local] }
}

private final class SameWireName: ModelObject {
  @Property var first = 0
  @Property(.wireName("first")) var second = 0
}

private final class ThrottledParts: ModelObject {
  @Property(.minSyncInterval(.seconds(1))) var parts: ModelArray<Part> = []
}

private final class Late: ModelObject {
  @Property var a: Int
  @Property(.local) var b = 5
  @Property(.wireName("third")) var c: Int = 5; @Property(.local) var d = 5
  @Property var e: Int

  required init() {
    e = 5
    a = 5
    super.init()
  }
}

private final class ByHand: ModelObject {
  @Property var a: Int
  @Property(.local) var b = 5

  required init() {
    _a = Property(wrappedValue: 5)
    super.init()
  }
}

private let evaluations = Mutex(0)

private func counted(_ options: PropertyOptions) -> PropertyOptions {
  evaluations.withLock { $0 += 1 }
  return options
}

private final class Counted: ModelObject {
  @Property(counted(.local)) var a = 0
  @Property(counted([.local, .wireName("x")])) var b: String?
}

private func text(_ result: ExitTest.Result?) -> String {
  String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
}

@Suite(.paced) struct PropertyOptionsTests {
  @Test("options are merged, of two that contradict each other the later counts")
  func merging() {
    let options: PropertyOptions = [.wireName("a"), .minSyncInterval(.seconds(1)), .wireName("b")]
    #expect(options.wireName == "b" && options.minSyncInterval == .seconds(1) && !options.isLocal)
    #expect(options.merging(.local) == [.local, .wireName("b"), .minSyncInterval(.seconds(1))])
    #expect([] == PropertyOptions())
    #expect(options.merging(.local).words == "local, on the wire: b, at most every 1.0 seconds")
  }

  @Test("options are looked at once for a class, not for each of its models")
  func evaluatedOnce() {
    for _ in 0..<10 { _ = Counted() }
    #expect(evaluations.withLock { $0 } == 2)
    #expect(ModelSchema.of(Counted.self).properties.allSatisfy { $0.options.isLocal })
  }

  @Test("the wire name stands in everything that goes out")
  func outgoing() {
    let model = Renamed()
    let scope = manualScope(model)
    #expect(
      scope.fullState()[0].properties.keys == [
        "colour", "pos", "label", "child", "children", "plain",
      ])
    #expect(scope.canonicalJSON.contains(#""colour":"#))
    var sets = scope.changeSets {
      model.color = .blue
      model.part = Part()
      model.parts.append(Part())
    }
    #expect(Set(sets[0].bases[model.uuid]!.keys) == ["colour", "child"])
    let change = sets[0].fragments.first { $0.kind == .change }
    #expect(Set(change!.properties.keys) == ["colour", "child"])
    #expect(change!.operations.map(\.key) == ["children"])
    sets = scope.changeSets { model.name = "n" }
    #expect(sets[0].fragments[0].properties == ["label": "n"])
  }

  @Test("fragments are read by the wire name, and errors speak of it; everything local does not")
  func incoming() {
    let model = Renamed()
    let scope = manualScope(model)
    let listener = Listener()
    var told: [String] = []
    model.signals.onPropertyChange.listen { told.append($0.key) }
    model.observeChange(listener, \.color, isolation: here()) { $0.called() }
    let part = UUID()
    let state = { (properties: JSONObject) in
      SyncFragment(.change, uuid: model.uuid, className: "Renamed", properties: properties)
    }
    let report = scope.apply([
      SyncFragment(.add, uuid: part, className: "Part", properties: ["number": 3]),
      state(["colour": 5, "label": "n", "child": .string(part.uuidString.lowercased())]),
    ])
    #expect(report.isComplete)
    #expect(model.color.rgba == 5 && model.name == "n" && model.part?.number == 3)
    #expect(told == ["color", "name", "part"])
    #expect(model.part?.parents.map(\.key) == ["part"])
    scope.flush()
    #expect(listener.count == 1)
    #expect(
      scope.apply([state(["color": 6])]).kept.map(\.reason) == [
        .unknownProperty(className: "Renamed", model: model.uuid, property: "color")
      ])
    #expect(
      scope.apply([state(["colour": "red"])]).errors.map(\.error) == [
        .invalidValue(
          className: "Renamed", model: model.uuid, property: "colour", expected: "Number")
      ])
    #expect(model.color.rgba == 5)
    #expect(scope.apply([state(["plain": 1])], resettingMissing: true).isComplete)
    #expect(model.color == .red && model.name == nil)
    #expect(model.schema["color"]?.wireName == "colour" && model.schema["colour"] == nil)
    #expect(model.schema[wireName: "colour"]?.name == "color")
    #expect(model.schema[wireName: "color"] == nil)
  }

  @Test("A subclass gives options to what it inherits, for itself alone")
  func inherited() {
    #expect(ModelSchema.of(Renamed.self)["color"]?.options == .wireName("colour"))
    let schema = ModelSchema.of(Silent.self)
    #expect(schema["color"]?.options == [.local, .wireName("colour")])
    #expect(schema["plain"]?.wireName == "simple" && schema["extra"]?.wireName == "more")
    #expect(ModelSchema.of(Renamed.self)["plain"]?.wireName == "plain")
    let model = Silent()
    let sets = manualScope(model).changeSets {
      model.color = .blue
      model.plain = 1
      model.extra = 2
    }
    #expect(sets.map { $0.fragments.map(\.properties) } == [[["simple": 1, "more": 2]]])
  }

  @Test("What a superclass says counts behind what the class says")
  func inheritedTwice() {
    #expect(ModelSchema.of(Middle.self)["color"]?.wireName == "tint")
    #expect(ModelSchema.of(Bottom.self)["color"]?.wireName == "shade")
    #expect(ModelSchema.of(BottomWithout.self)["color"]?.wireName == "tint")
    #expect(ModelSchema.of(Bottom.self)["plain"]?.isSynced == false)
    #expect(ModelSchema.of(Bottom.self)["position"]?.wireName == "pos")
  }

  @Test("properties of one type and default keep their options, whatever init() assigns first")
  func assignedLate() {
    let schema = ModelSchema.of(Late.self)
    #expect(schema.properties.map(\.name) == ["a", "b", "c", "d", "e"])
    #expect(schema.properties.map(\.isSynced) == [true, false, true, false, true])
    #expect(schema["c"]?.wireName == "third")
  }

  @Test("an initializer that makes the storage itself traps with a sentence")
  func byHand() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = ByHand().uuid
    }
    #expect(text(result).contains("ByHand.init() makes the storage of a property itself"))
  }

  @Test("an option for a property that the class does not have traps and names it")
  func unknown() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = UnknownOption().uuid
    }
    #expect(
      text(result).contains(
        "UnknownOption.propertyOptions names \"kolor\", but UnknownOption has no such property."))
  }

  @Test("two properties with one wire name trap, naming both")
  func sameWireName() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = SameWireName().uuid
    }
    #expect(
      text(result).contains(
        "SameWireName.first and SameWireName.second are both called first on the wire."))
  }

  @Test("a property that holds models cannot be throttled")
  func throttledModels() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = ThrottledParts().uuid
    }
    #expect(text(result).contains("ThrottledParts.parts holds models"))
  }
}
