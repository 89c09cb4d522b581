import Jetstream
import JetstreamServer
import Testing

/// A connection on which a test speaks the protocol by hand.
final class RawPeer: WorldPeer {
  let world: InMemoryWorld
  private(set) var link: InMemoryWorld.Link!
  /// Every message that came, in order.
  private(set) var messages: [Message] = []
  /// How many of them each frame brought.
  private(set) var frames: [Int] = []
  private(set) var close: (code: Int, reason: String)?
  private var next = 1

  init(_ world: InMemoryWorld, params: [String: String] = [:], address: String? = nil) {
    self.world = world
    world.add(self)
    link = world.connect(self, params: params, address: address)
    world.deliver(link, toServer: true)
  }

  /// A peer with a session that has fetched the scope.
  static func joined(
    _ world: InMemoryWorld, version: String = "0.1.0", protocol: Int = 1
  ) -> RawPeer {
    let peer = RawPeer(world)
    let spoken = `protocol` > 1 ? #""protocol":\#(`protocol`),"# : ""
    peer.send(#"{"type":"SessionCreate","index":0,"version":"\#(version)",\#(spoken)"params":{}}"#)
    peer.send(peer.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    return peer
  }

  /// Asks for a session. Returns the error with which it is refused; nil if the peer has got one.
  @discardableResult
  func createSession(as author: String? = nil) -> WireError? {
    let params: JSONValue = author.map { ["author": .string($0)] } ?? [:]
    send(
      #"{"type":"SessionCreate","index":0,"version":"1.0.0","protocol":2,"params":\#(params.text)}"#
    )
    for case .sessionCreateReply(let reply) in messages { return reply.error }
    return nil
  }

  /// The error with which the server has closed the connection.
  var closeError: WireError? {
    close.flatMap { try? WireError(json: JSONValue(parsing: $0.reason.utf8)) }
  }

  var token: String? {
    messages.lazy.compactMap {
      if case .sessionCreateReply(let reply) = $0 { reply.sessionToken } else { nil }
    }.first
  }

  /// Gives a message the peer's next number.
  func stamp(_ message: Message) -> Message {
    var message = message
    message.index = next
    next += 1
    return message
  }

  /// Sends text as one frame and takes what comes back.
  func send(_ text: String) {
    link.toServer.append(Array(text.utf8))
    while !link.toServer.isEmpty { world.deliver(link, toServer: true) }
    take()
  }

  func send(_ message: Message) {
    send(String(decoding: Message.encodeFrame([message], asArray: false), as: UTF8.self))
  }

  /// The number of the scope that was granted last.
  var scopeIndex: Int {
    messages.lazy.reversed().compactMap {
      if case .scopeFetchReply(let reply) = $0 { reply.scopeIndex } else { nil }
    }.first ?? 0
  }

  /// Sends changes, and returns the index of the message: the reply may come later. Without `scope`, the changes are of the
  /// scope that was granted last.
  @discardableResult
  func send(_ fragments: [SyncFragment], atomic: Bool? = nil, scope: Int? = nil) -> Int {
    let message = stamp(
      .scopeSync(ScopeSync(scopeIndex: scope ?? scopeIndex, fragments: fragments, atomic: atomic)))
    send(message)
    return message.index
  }

  /// Sends changes, and returns the replies. Records an issue if they do not come at once.
  @discardableResult
  func submit(
    _ fragments: [SyncFragment], atomic: Bool? = nil, scope: Int? = nil,
    at location: SourceLocation = #_sourceLocation
  ) -> [FragmentReply] {
    let index = send(fragments, atomic: atomic, scope: scope)
    if let replies = replies(to: index) { return replies }
    Issue.record("There is no reply to message \(index).", sourceLocation: location)
    return []
  }

  func replies(to index: Int) -> [FragmentReply]? {
    for case .scopeSyncReply(let reply) in messages where reply.answers(index) {
      // One that answers several change sets accepts each of them, here of one fragment.
      return reply.count > 1 ? [FragmentReply()] : reply.fragmentReplies
    }
    return nil
  }

  /// The changes that the peer was told.
  var syncs: [ScopeSync] {
    messages.compactMap { if case .scopeSync(let sync) = $0 { sync } else { nil } }
  }

  /// Acknowledges everything that came.
  func acknowledge() {
    var ping = Ping(ack: messages.map(\.index).max() ?? 0)
    if let sequence = syncs.compactMap(\.sequence).max() {
      ping.seen = [Ping.Place(scopeIndex: scopeIndex, sequence: sequence)]
    }
    send(.ping(ping))
  }

  /// Takes what is on its way.
  func take() {
    while !link.toClient.isEmpty || link.serverClose != nil, close == nil {
      world.deliver(link, toServer: false)
    }
  }

  func received(_ frame: [UInt8], on link: InMemoryWorld.Link) {
    let found = (try? Message.decodeFrame(frame)) ?? []
    frames.append(found.count)
    for case .success(let message) in found { messages.append(message) }
    #expect(frames.last == found.count { (try? $0.get()) != nil })
  }

  func closed(_ link: InMemoryWorld.Link, code: Int, reason: String) { close = (code, reason) }
}
