import Foundation
import Jetstream
import JetstreamServer
import Testing

/// An old client shows what it is told at once, over its own changes. The server tells nothing before its log has it,
/// but judges at once what clients submit meanwhile.
@Suite("Old clients that submit while messages to them wait for the log")
struct AwaitedWriteTests {
  private let world = InMemoryWorld()
  private let scope: Scope
  private let shape = Shape()
  private let records = Records()
  private let peer: RawPeer

  private final class Records {
    var count = 0
  }

  init() throws {
    let canvas = Canvas()
    canvas.shapes = [shape]
    scope = Scope(name: "Kept", root: canvas, ticker: world.serverTicker)
    try world.server.host(scope, history: nil) { [records] _ in records.count += 1 }
    world.moreScopes["Kept"] = scope
    peer = RawPeer(world)
    peer.send(#"{"type":"SessionCreate","index":0,"version":"0.1.0","params":{}}"#)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Kept"))))
    store()
  }

  private func store() {
    world.server.stored(records.count, of: scope)
    peer.take()
  }

  /// What the client shows of a property of the shape: what it was told last.
  private func shown(_ property: String) -> JSONValue? {
    peer.syncs.flatMap(\.fragments).last { $0.properties[property] != nil }?.properties[property]
  }

  private func submit(_ properties: JSONObject) {
    peer.send([
      SyncFragment(.change, uuid: shape.uuid, className: "Shape", properties: properties)
    ])
  }

  @Test("The client is told its own value behind another one that was accepted before")
  func others() {
    shape.label = "theirs"
    scope.flush()
    submit(["label": "mine"])
    #expect(peer.syncs.isEmpty && shape.label == "mine")
    store()
    #expect(shown("label") == "mine")
  }

  @Test("The client is told its own value behind a correction of an earlier one")
  func corrections() {
    submit(["x": 16_777_217])
    submit(["x": 5])
    #expect(peer.syncs.isEmpty && shape.x == 5)
    store()
    #expect(shown("x") == 5)
  }

  @Test("Acknowledging one of two messages does not acknowledge the other")
  func acknowledged() {
    shape.label = "first"
    scope.flush()
    store()
    shape.label = "second"
    scope.flush()
    peer.acknowledge()
    submit(["label": "mine"])
    store()
    #expect(shown("label") == "mine")
  }

  @Test("What was acknowledged is not told again")
  func settled() {
    shape.label = "theirs"
    scope.flush()
    store()
    peer.acknowledge()
    submit(["label": "mine"])
    store()
    #expect(shown("label") == "theirs" && shape.label == "mine")
  }
}
