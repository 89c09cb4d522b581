import Foundation
import Jetstream

final class Shape: ModelObject {
  @Property var name: String?
  @Property var width = 100.0
  @Property var height = 100.0
  var area: Double { width * height }
}

final class Canvas: ModelObject {
  @Property var title = ""
  @Property var shapes: ModelArray<Shape> = []
}

struct Battery {
  let isLow = false
}

@MainActor
final class CanvasView {
  let canvas = Canvas()
  let shape = Shape()
  let scope: Scope
  let client: Client

  init() {
    scope = Scope(name: "Canvas", root: canvas)
    client = Client(url: "ws://127.0.0.1:8080")
  }

  func redraw() {}
  func show(_ text: String) {}
  func insertRow(at index: Int) {}
  func deleteRow(at index: Int) {}
  func apply(_ difference: CollectionDifference<Shape>) {}

  func run() async throws {
    let battery = Battery()
    // listing
  }
}
