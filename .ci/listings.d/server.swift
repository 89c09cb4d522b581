import Foundation
import Jetstream
import JetstreamServer
import JetstreamWebSocket

final class Canvas: ModelObject {
  @Property var title = ""
}

struct Room {
  let scope: Scope
  let owner: String
}

@MainActor
func run(_ scope: Scope, _ server: Server, users: [String: String], rooms: [String: Room])
  async throws
{
  do {
    // listing
  }
}
