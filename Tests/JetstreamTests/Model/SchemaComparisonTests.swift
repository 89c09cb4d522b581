import Foundation
import Testing

@testable import Jetstream

private enum Level: Int, PropertyValue { case low, high }

private struct Spot: CodableValue { var x = 0 }

private final class Leaf: ModelObject {
  @Property var number = 0
}

private enum First {
  final class Thing: ModelObject {
    @Property var flag = false
    @Property var int = 0
    @Property var byte: UInt8 = 0
    @Property var float: Float = 0
    @Property var double: Double?
    @Property var text = ""
    @Property var date = Date(timeIntervalSince1970: 0)
    @Property var id: UUID?
    @Property var link: URL?
    @Property var data = Data()
    @Property var color = RGBAColor.red
    @Property var level = Level.low
    @Property var names: [String?] = []
    @Property var counts: [String: [Int]] = [:]
    @Property var spot = Spot()
    @WeakReference var weak: Leaf?
    @Property var leaf: Leaf?
    @Property var leaves: ModelArray<Leaf> = []
    @Property(.local) var hidden = 0
  }
}

/// The same on the wire, in another order and under other names in the source.
private enum Second {
  final class Thing: ModelObject {
    @Property var leaves: ModelArray<Leaf> = []
    @Property(.local) var alsoHidden = ""
    @Property(.wireName("leaf")) var child: Leaf?
    @WeakReference var weak: Leaf?
    @Property var spot = Spot(x: 1)
    @Property var counts: [String: [Int]] = [:]
    @Property var names: [String?] = []
    @Property var level = Level.high
    @Property var color = RGBAColor.blue
    @Property var data = Data()
    @Property var link: URL?
    @Property var id: UUID?
    @Property(.minSyncInterval(.seconds(1))) var date = Date(timeIntervalSince1970: 0)
    @Property var text = ""
    @Property var double: Double?
    @Property var float: Float = 0
    @Property var byte: UInt8 = 0
    @Property var int = 0
    @Property var flag = false
  }
}

private enum Old {
  final class Small: ModelObject {
    @Property var x: Float = 0
    @Property var same = true
    @Property var gone = 0
    @Property(.local) var shared = 0
    @Property(.wireName("color")) var paint = 1
    @Property var start = 1
  }
}

private enum New {
  final class Small: ModelObject {
    @Property var start = 2
    @Property var same = true
    @Property var x: Double = 0
    @Property(.minSyncInterval(.seconds(1))) var shared = 0
    @Property var color = 1
    @Property var added: String?
  }
}

private enum Reordered {
  final class Small: ModelObject {
    @Property var start = 1
    @Property var x: Float = 0
    @Property(.wireName("color")) var paint = 1
    @Property(.local) var shared = 0
    @Property var gone = 0
    @Property var same = true
  }
}

@Suite(.paced) struct SchemaComparisonTests {
  @Test("the fingerprint is the same in every process, on every platform and in every version")
  func golden() {
    let fingerprint = ModelSchema.of(First.Thing.self).fingerprint
    #expect(fingerprint.description == "099be1b9458d42e9")
    #expect(SchemaFingerprint(fingerprint.description) == fingerprint)
    let root = Board()
    #expect(manualScope(root).schemaFingerprint.description == "168c15e9ee0398fc")
  }

  private final class Board: ModelObject {
    @Property var things: ModelArray<First.Thing> = []
  }

  @Test("what is not on the wire does not count for it")
  func independent() {
    #expect(
      ModelSchema.of(First.Thing.self).fingerprint == ModelSchema.of(Second.Thing.self).fingerprint)
    #expect(ModelSchema.of(First.Thing.self) != ModelSchema.of(Second.Thing.self))
  }

  @Test("every difference of names and types on the wire counts")
  func distinguished() {
    let types: [_PropertyType] = [
      .boolean, .integer("Int"), .integer("UInt8"), .number("Float"), .number("Double"), .string,
      .date, .uuid, .url, .data, .color, .enumeration(.string), .enumeration(.integer("Int")),
      .optional(.string), .array(.string), .array(.optional(.string)),
      .optional(.array(.string)), .dictionary(.string), .value("Spot"), .value("Other"),
      .weakReference("Leaf"), .reference("Leaf"), .reference("Other"), .collection("Leaf"),
    ]
    #expect(Set(types.map(\.signature)).count == types.count)
    #expect(Set(types.map { SchemaFingerprint(of: ["a", $0.signature]) }).count == types.count)
    #expect(SchemaFingerprint(of: ["ab", "c"]) != SchemaFingerprint(of: ["a", "bc"]))
    #expect(
      ModelSchema.of(Old.Small.self).fingerprint != ModelSchema.of(New.Small.self).fingerprint)
    #expect(
      ModelSchema.of(Old.Small.self).fingerprint
        == ModelSchema.of(Reordered.Small.self).fingerprint)
  }

  @Test("a scope's fingerprint follows the classes that it knows")
  func scopes() {
    let plain = manualScope(Leaf())
    let more = manualScope(Leaf(), models: [Old.Small.self])
    #expect(plain.schemas.map(\.wireName) == ["Leaf"])
    #expect(more.schemas.map(\.wireName) == ["Leaf", "Small"])
    #expect(plain.schemaFingerprint != more.schemaFingerprint)
    #expect(manualScope(Leaf()).schemaFingerprint == plain.schemaFingerprint)
  }

  @Test("texts of fingerprints are 16 digits, and nothing else is read")
  func texts() {
    #expect(SchemaFingerprint(rawValue: 0xAB).description == "00000000000000ab")
    #expect(SchemaFingerprint("00000000000000AB")?.rawValue == 0xAB)
    for text in ["", "ab", "+0000000000000ab", "-0000000000000ab", "g000000000000000"] {
      #expect(SchemaFingerprint(text) == nil, "\(text)")
    }
  }

  @Test("differences are told in lines, and schemas without any are equal")
  func differences() {
    let old = ModelSchema.of(Old.Small.self)
    let new = ModelSchema.of(New.Small.self)
    #expect(
      new.differences(from: old) == [
        "Small.start begins as 2, began as 1.",
        "Small.x is Double, was Float.",
        "Small.shared is synced, was local.",
        "Small.shared is sent at most every 1.0 seconds, was sent without an interval.",
        "Small.color is called color in the source, was called paint.",
        "Small.added is new: optional string.",
        "Small.gone is gone.",
      ])
    #expect(new != old && old == old)
    #expect(old == ModelSchema.of(Reordered.Small.self))
    #expect(old.differences(from: ModelSchema.of(Reordered.Small.self)).isEmpty)
    #expect(ModelSchema.of(Leaf.self).differences(from: old).first == "Leaf was called Small.")
  }

  @Test("a schema is printed with types and options")
  func printed() {
    #expect(
      ModelSchema.of(New.Small.self).description == """
        Small {
          start: Number
          same: Boolean
          x: Number
          shared: Number (at most every 1.0 seconds)
          color: Number
          added: String
        }
        """)
  }
}
