import Foundation
import Jetstream

let fragmentSuite = Suite(
  name: "fragments", summary: "fragments to and from JSON, and into models"
) {
  [
    Row(
      name: "encode a fragment, of 100,000", unit: "ns", peerName: "JSONEncoder, concrete struct",
      bar: 0.1
    ) {
      let encoder = JSONEncoder()
      let peers = Samples.wireShapes
      return Probes(
        ours: Samples.encoding(),
        peer: { perFragment { Sink.take(try! encoder.encode(peers).count) } })
    },
    Row(
      name: "encode a fragment, of 100,000", unit: "ns", peerName: "JSONSerialization, dictionaries"
    ) {
      let peers = try! JSONSerialization.jsonObject(with: Samples.data)
      return Probes(
        ours: Samples.encoding(),
        peer: {
          perFragment { Sink.take(try! JSONSerialization.data(withJSONObject: peers).count) }
        })
    },
    Row(
      name: "decode a fragment, of 100,000", unit: "ns", peerName: "JSONDecoder, concrete struct",
      bar: 0.1
    ) {
      let data = Samples.data
      let decoder = JSONDecoder()
      return Probes(
        ours: Samples.decoding(),
        peer: {
          perFragment {
            let shapes = try! decoder.decode([WireShape].self, from: data)
            Sink.take(Int(shapes[shapes.count / 2].properties.width))
          }
        })
    },
    Row(
      name: "decode a fragment, of 100,000", unit: "ns", peerName: "JSONSerialization, dictionaries"
    ) {
      let data = Samples.data
      return Probes(
        ours: Samples.decoding(),
        peer: {
          perFragment {
            let shapes = try! JSONSerialization.jsonObject(with: data) as! [Any]
            Sink.take(shapes.count)
          }
        })
    },
    Row(name: "apply 100,000 changes to 10,000 models, each", unit: "ns", bar: 1000, rounds: 9) {
      let ours = RemoteChanges(models: 10_000, changes: 100_000)
      return Probes(ours: { ours.measure() * 1e9 / 100_000 })
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

/// Returns the nanoseconds per fragment that `body` takes.
private func perFragment(_ body: () -> Void) -> Double {
  nanoseconds(body) / Double(Samples.count)
}

/// A fragment as an app without Jetstream would declare it.
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

/// Many changes, with coordinates that have fractions, as dragging gives them.
private enum Samples {
  static let count = 100_000

  static let wireShapes: [WireShape] = (0..<count).map { place in
    let step = Float(place % 1000)
    let properties = WireShape.Properties(
      x: step * 0.37, y: 1000 - step * 0.11, width: Float(place % 90) + 10,
      color: UInt32(truncatingIfNeeded: place &* 2_654_435_761))
    return WireShape(type: .change, uuid: UUID(), clsName: "Shape", properties: properties)
  }

  static let fragments = wireShapes.map { shape in
    SyncFragment(
      .change, uuid: shape.uuid, className: shape.clsName,
      properties: [
        "x": .float(shape.properties.x), "y": .float(shape.properties.y),
        "width": .float(shape.properties.width), "color": .integer(Int64(shape.properties.color)),
      ])
  }

  /// The array of all fragments, which both sides read.
  static var data: Data { try! JSONEncoder().encode(wireShapes) }

  /// Writes them as one array.
  static func encoding() -> Probe {
    let fragments = fragments
    return {
      perFragment {
        var bytes: [UInt8] = [UInt8(ascii: "[")]
        for (place, fragment) in fragments.enumerated() {
          if place > 0 { bytes.append(UInt8(ascii: ",")) }
          fragment.write(to: &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
        Sink.take(bytes.count)
      }
    }
  }

  /// Reads the array.
  static func decoding() -> Probe {
    let bytes = [UInt8](data)
    return {
      perFragment {
        let fragments = try! SyncFragment.array(parsing: bytes)
        Sink.take(fragments[fragments.count / 2].properties.count)
      }
    }
  }
}

/// Messages that each change every shape of a scope, a fragment a shape, read and applied.
private final class RemoteChanges {
  private let scope: Scope
  private let shapes: ContiguousArray<Shape>
  private let messages: [[[UInt8]]]
  private var turn = 0

  init(models: Int = 1000, changes: Int = 1_000_000, propertiesInEach: Int = 1) {
    let (canvas, shapes) = Shape.canvas(of: models)
    self.shapes = shapes
    scope = Scope(name: "Canvas", root: canvas, ticker: .manual())
    // Two sets of messages by turns, so that every change is one.
    messages = (0..<2).map { turn in
      (0..<(changes / models / propertiesInEach)).map { message in
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

  /// Returns the time in seconds.
  func measure() -> Double {
    turn = 1 - turn
    let time = nanoseconds {
      for message in messages[turn] {
        let report = scope.apply(try! SyncFragment.array(parsing: message))
        precondition(report.isComplete, "A change does not fit.")
      }
    }
    Sink.take(Int(shapes[0].x))
    return time / 1e9
  }
}
