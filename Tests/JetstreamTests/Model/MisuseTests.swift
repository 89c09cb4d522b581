import Testing

@testable import Jetstream

private final class Box<Content: PropertyValue>: ModelObject {
  @Property var number = 0
}

private enum Other {
  final class Node: ModelObject { @Property var number = 0 }
}

private final class PlainDictionary: ModelObject {
  @Property var shapes: [String: Shape] = [:]
}

private final class LikeEntry: ModelObject {
  @Property var shapes: ModelDictionary<String, Shape> = [:]
  @Property(.wireName("shapes/a")) var number = 0
}

private func text(_ result: ExitTest.Result?) -> String {
  String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
}

@Suite(.paced) struct MisuseTests {
  @Test("a generic class without a wire name traps with a sentence")
  func genericName() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Box<Int>().uuid
    }
    #expect(text(result).contains("is generic and must override wireName"))
  }

  @Test("two classes with one wire name in a scope trap, naming both")
  func twoClasses() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Scope(name: "S", root: Node(), models: [Other.Node.self], ticker: .manual())
    }
    #expect(text(result).contains("Two classes are called Node on the wire in scope S"))
  }

  @Test("A plain dictionary of models traps, and so does a name that is that of an entry")
  func dictionaries() async {
    let plain = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = PlainDictionary().uuid
      _ = ModelSchema.of(PlainDictionary.self)
    }
    #expect(
      text(plain).contains(
        "PlainDictionary.shapes is a plain dictionary that holds models; declare it as "
          + "ModelDictionary<String, Shape>."))
    let name = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = ModelSchema.of(LikeEntry.self)
    }
    #expect(
      text(name).contains(
        "LikeEntry has a property that is called shapes/a on the wire, as an entry of its dictionary "
          + "shapes is."))
  }

  @Test("A path that the declared classes do not have traps, and tells where")
  func unknownPath() async {
    let segment = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Canvas().observeTreeChange(path: "shapes.parts.z", isolation: here()) {}
    }
    #expect(text(segment).contains("Shape has no property \"z\"; it has x, y"))
    let plain = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Canvas().observeTreeChange(path: "shapes.x.y", isolation: here()) {}
    }
    #expect(text(plain).contains("Shape.x holds no models, so there is nothing called \"y\" below"))
    let empty = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Canvas().observeTreeChange(path: "shapes.", isolation: here()) {}
    }
    #expect(text(empty).contains("Shape has no property \"\""))
  }

  @Test("A computed property traps where only stored ones can be observed")
  func computed() async {
    let tree = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Shape().observeTreeChange(\.area, isolation: here()) {}
    }
    #expect(text(tree).contains("is not a @Property of Shape"))
    let several = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Shape().observeTreeChange(\.x, \.area, isolation: here()) {}
    }
    #expect(text(several).contains("one at a time with observeChangeImmediately"))
  }
}
