import Foundation
import Jetstream
import JetstreamServer

final class Message: ModelObject {
  @Property var text = ""
  @Property var author = ""
  @Property var date: Date?
  @Property(.counter) var score = 0
}

final class Room: ModelObject {
  @Property var isClosed = false
  @Property var messages: ModelArray<Message> = []
}

@MainActor
final class RoomView {
  func show(_ text: String) {}

  func run(_ scope: Scope, _ configuration: inout Server.Configuration) {
    var rules = ScopeRules()
    do {
      // listing
    }
    configuration.rules = { [rules] _ in rules }
  }
}
