import Testing

@testable import Jetstream

private final class Box<Content: PropertyValue>: ModelObject {
  @Property var number = 0
}

private enum Other {
  final class Node: ModelObject { @Property var number = 0 }
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

  @Test("Observing an unknown key traps and names it")
  func unknownKey() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Node().observeChange(Listener(), keys: ["nope"]) { _ in }
    }
    #expect(text(result).contains("Node has no property \"nope\"; it has label, number, left"))
  }

  @Test("An unknown key traps in every way of observing by text")
  func unknownKeys() async {
    let immediately = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      Node().observeChangeImmediately(keys: ["label", "nope"]) { _ in }
    }
    #expect(text(immediately).contains("Node has no property \"nope\"; it has label"))
    let collection = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      Node().observeCollectionAdd(key: "label") { _, _ in }
    }
    #expect(text(collection).contains("Node.label is no ModelArray; its type is String."))
    let difference = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      Node().observeDifference(key: "none") { _ in }
    }
    #expect(text(difference).contains("Node has no property \"none\""))
  }

  @Test("A path that the declared classes do not have traps, and tells where")
  func unknownPath() async {
    let segment = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Canvas().observeTreeChange(path: "shapes.parts.z") {}
    }
    #expect(text(segment).contains("Shape has no property \"z\"; it has x, y"))
    let plain = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Canvas().observeTreeChange(path: "shapes.x.y") {}
    }
    #expect(text(plain).contains("Shape.x holds no models, so there is nothing called \"y\" below"))
    let empty = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Canvas().observeTreeChange(path: "shapes.") {}
    }
    #expect(text(empty).contains("Shape has no property \"\""))
  }

  @Test("A computed property traps where only stored ones can be observed")
  func computed() async {
    let tree = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Shape().observeTreeChange(\.area) {}
    }
    #expect(text(tree).contains("is not a @Property of Shape"))
    let several = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Shape().observeChangeImmediately(\.x, \.area) { _ in }
    }
    #expect(text(several).contains("one at a time with observeChangeImmediately"))
  }

  @Test("Where no actor is known it is a misuse")
  func noActor() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      await Task.detached { Node().isScopeRoot = true }.value
    }
    #expect(
      text(result).contains("Node.isScopeRoot was set where no actor is known; use makeScopeRoot"))
  }

  @Test("a scope that is made on no actor and without a ticker traps")
  func noIsolation() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Scope(name: "S", root: Node(), isolation: nil)
    }
    #expect(text(result).contains("Scope S has no isolation domain"))
  }
}
