import Foundation
import Testing

@testable import Jetstream
@testable import JetstreamServer

/// All who ask for the state of a scope share what was read of it.
@Suite("Full states that sessions share", .paced)
struct SharedStateTests {
  private let world = InMemoryWorld()

  private var copy: StateCopy? { world.server.hosts.values.first?.states.last }

  private func state(of peer: RawPeer) throws -> [SyncFragment] {
    let states = peer.messages.compactMap {
      if case .scopeState(let state) = $0 { state.fragments } else { nil }
    }
    return try #require(states.last)
  }

  @Test("Sessions share the copy while the scope stays the same")
  func shares() throws {
    world.canvas.name = "first"
    let one = RawPeer.joined(world, protocol: 2)
    let first = try #require(copy)
    let two = RawPeer.joined(world, protocol: 2)
    #expect(copy === first)
    #expect(try state(of: one) == world.scope.fullState())
    #expect(try state(of: two) == world.scope.fullState())
  }

  @Test("Sessions of version 1 are sent the models depth first, in one message")
  func whole() throws {
    let configuration = ServerEngine.Configuration.withStates(of: 100)
    let world = InMemoryWorld(configuration: configuration)
    func uuids() throws -> [UUID] {
      try state(of: RawPeer.joined(world, protocol: 1)).map(\.uuid)
    }
    for _ in 0..<20 { world.canvas.shapes.append(Shape()) }
    #expect(try uuids() == world.scope.fullState().map(\.uuid))
    world.canvas.shapes.remove(at: 3)
    #expect(try uuids() == world.scope.fullState().map(\.uuid))
  }

  @Test("Those who come after a change of the app or of a client are sent it", arguments: [1, 2])
  func changes(version: Int) throws {
    let one = RawPeer.joined(world, protocol: version)
    world.canvas.name = "by the app"
    let two = RawPeer.joined(world, protocol: version)
    #expect(try state(of: two).canonicalJSON == world.scope.canonicalJSON)
    one.submit([
      SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": "by a client"])
    ])
    let three = RawPeer.joined(world, protocol: version)
    #expect(try state(of: three).canonicalJSON == world.scope.canonicalJSON)
    #expect(world.canvas.name == "by a client")
  }

  @Test("It is released when no session has begun with it for a second")
  func released() {
    _ = RawPeer.joined(world, protocol: 2)
    weak let last = copy
    #expect(last != nil)
    let start = world.now
    world.server.advance(to: start + .milliseconds(900))
    #expect(last != nil)
    world.now = start + .milliseconds(900)
    _ = RawPeer.joined(world, protocol: 2)
    world.server.advance(to: start + .milliseconds(1_800))
    #expect(last != nil)
    world.server.advance(to: start + .milliseconds(1_900))
    #expect(last == nil)
  }

  @Test("The text of a part is the one that its fragments have")
  func text() throws {
    for _ in 0..<3 { world.canvas.shapes.append(Shape()) }
    world.scope.flush()
    let fragments = world.scope.fullState()
    let state = StateCopy(
      sequence: 1, root: world.canvas.uuid,
      parts: [StatePart(Array(fragments[..<2])), StatePart(Array(fragments[2...]))])
    var (number, sum) = (0, 0)
    while true {
      let message = state.message(number, scopeIndex: 3)
      var plain = message
      plain.text = nil
      #expect(message.text != nil)
      let frames = [message, plain].map { Message.encodeFrame([.scopeState($0)], asArray: true) }
      #expect(frames[0] == frames[1])
      (number, sum) = (number + 1, sum + message.fragments.count)
      guard message.more else { break }
    }
    #expect(number == 2 && sum == fragments.count)
    var whole = ScopeState(scopeIndex: 3, rootUUID: state.root, fragments: fragments)
    whole.index = 7
    var joined = state.joined().message(0, scopeIndex: 3)
    joined.index = 7
    #expect(JSONValue.object(joined.json).text == JSONValue.object(whole.json).text)
    let frames = [joined, whole].map { Message.encodeFrame([.scopeState($0)], asArray: true) }
    #expect(frames[0] == frames[1])
  }
}

extension ServerEngine.Configuration {
  /// Sends states in parts of about so many bytes.
  static func withStates(of bytes: Int) -> ServerEngine.Configuration {
    var configuration = ServerEngine.Configuration()
    configuration.stateBytes = bytes
    return configuration
  }
}
