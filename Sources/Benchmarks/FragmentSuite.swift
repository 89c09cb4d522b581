import Foundation
import Jetstream

let fragmentSuite = Suite(
  name: "fragments", summary: "fragments to and from JSON, and into models"
) {
  [
    Row(
      name: "encode a fragment", unit: "ns", peerName: "JSONEncoder, concrete struct", bar: 0.1
    ) {
      let encoder = JSONEncoder()
      let ours = Samples.fragments
      let peers = Samples.wireShapes
      return Probes(
        ours: {
          perFragment {
            var bytes: [UInt8] = [UInt8(ascii: "[")]
            for (place, fragment) in ours.enumerated() {
              if place > 0 { bytes.append(UInt8(ascii: ",")) }
              fragment.write(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
            Sink.take(bytes.count)
          }
        },
        peer: { perFragment { Sink.take(try! encoder.encode(peers).count) } })
    },
    Row(
      name: "decode a fragment", unit: "ns", peerName: "JSONDecoder, concrete struct", bar: 0.1
    ) {
      let data = Samples.data
      let bytes = [UInt8](data)
      let decoder = JSONDecoder()
      return Probes(
        ours: {
          perFragment {
            let fragments = Samples.fragments(of: bytes)
            Sink.take(fragments[fragments.count / 2].properties.count)
          }
        },
        peer: {
          perFragment {
            let shapes = try! decoder.decode([WireShape].self, from: data)
            Sink.take(Int(shapes[shapes.count / 2].properties.width))
          }
        })
    },
    Row(
      name: "apply 1,000,000 changes from bytes, 1 a fragment", unit: "s", bar: 1, rounds: 5
    ) {
      let ours = RemoteChanges(propertiesInEach: 1)
      return Probes(ours: ours.measure)
    },
    Row(
      name: "apply 1,000,000 changes from bytes, 4 a fragment", unit: "s", bar: 1, rounds: 5
    ) {
      let ours = RemoteChanges(propertiesInEach: 4)
      return Probes(ours: ours.measure)
    },
  ]
}

private func perFragment(_ body: () -> Void) -> Double {
  let passes = 5
  return nanoseconds { for _ in 0..<passes { body() } } / Double(passes * Samples.count)
}

/// A fragment as somebody without Jetstream would declare it.
private struct WireShape: Codable {
  enum Kind: String, Codable { case add, change }

  struct Properties: Codable {
    var x: Float
    var y: Float
    var width: Float
    var color: UInt32
  }

  var type: Kind
  var uuid: UUID
  var clsName: String
  var properties: Properties
}

/// A thousand fragments, with coordinates that have fractions, as dragging gives them.
private enum Samples {
  static let count = 1000

  static let wireShapes: [WireShape] = (0..<count).map { place in
    WireShape(
      type: .add, uuid: UUID(), clsName: "Shape",
      properties: .init(
        x: Float(place) * 0.37, y: 1000 - Float(place) * 0.11, width: Float(place % 90) + 10,
        color: UInt32(truncatingIfNeeded: place &* 2_654_435_761)))
  }

  static let fragments = wireShapes.map { shape in
    SyncFragment(
      .add, uuid: shape.uuid, className: shape.clsName,
      properties: [
        "x": .float(shape.properties.x), "y": .float(shape.properties.y),
        "width": .float(shape.properties.width), "color": .integer(Int64(shape.properties.color)),
      ])
  }

  /// The array of all fragments, which both sides read.
  static var data: Data { try! JSONEncoder().encode(wireShapes) }

  static func fragments(of bytes: [UInt8]) -> [SyncFragment] {
    guard case .array(let values) = try! JSONValue(parsing: bytes) else { return [] }
    return values.map { try! SyncFragment(json: $0) }
  }
}

/// Messages of a thousand fragments each that change shapes which the scope has, read and applied.
private final class RemoteChanges {
  private let scope: Scope
  private let shapes: ContiguousArray<Shape>
  private let messages: [[[UInt8]]]
  private var turn = 0

  init(propertiesInEach: Int) {
    let (canvas, shapes) = Shape.canvas(of: 1000)
    self.shapes = shapes
    scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    // Two sets of messages by turns, so that every change is one.
    messages = (0..<2).map { turn in
      (0..<(1000 / propertiesInEach)).map { message in
        Self.message(shapes, value: Float(message * 2 + turn) + 0.5, propertiesInEach)
      }
    }
  }

  private static func message(
    _ shapes: ContiguousArray<Shape>, value: Float, _ properties: Int
  ) -> [UInt8] {
    let names = ["x", "y", "width", "height"].prefix(properties)
    let content = JSONObject(names.map { ($0, .float(value)) })
    let fragments: [JSONValue] = shapes.map {
      SyncFragment(.change, uuid: $0.uuid, className: "Shape", properties: content).json
    }
    var bytes: [UInt8] = []
    JSONValue.array(fragments).write(to: &bytes)
    return bytes
  }

  /// Seconds.
  func measure() -> Double {
    turn = 1 - turn
    let time = nanoseconds {
      for message in messages[turn] {
        let report = scope.apply(Samples.fragments(of: message))
        precondition(report.isComplete, "A change does not fit.")
      }
    }
    Sink.take(Int(shapes[0].x))
    return time / 1e9
  }
}
