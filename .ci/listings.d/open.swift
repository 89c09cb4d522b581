import Foundation
import Jetstream

final class Shape: ModelObject {
  @Property var name: String?
}

final class Canvas: ModelObject {
  @Property var title = ""
  @Property var shapes: ModelArray<Shape> = []
}

@MainActor func open(_ path: String) throws {
  // listing
}
