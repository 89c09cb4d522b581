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

@Suite struct MisuseTests {
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

  @Test("J044: observing an unknown key traps and names it")
  func unknownKey() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      Node().observeChange(Listener(), keys: ["nope"]) { _ in }
    }
    #expect(text(result).contains("Node has no property \"nope\"; it has label, number, left"))
  }

  @Test("a scope that is made on no actor and without a ticker traps")
  func noIsolation() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Scope(name: "S", root: Node(), isolation: nil)
    }
    #expect(text(result).contains("Scope S has no isolation domain"))
  }
}
