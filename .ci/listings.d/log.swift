import Foundation
import Jetstream

final class Canvas: ModelObject {
  @Property var title = ""
}

@MainActor func run(_ scope: Scope, _ canvas: Canvas, log: FragmentLog) async throws {
  do {
    // listing
  }
}
