import Foundation
import Jetstream
import JetstreamServer
import Testing

/// A client as those of protocol 1 are: it applies at once whatever it is told, over changes of its
/// own that the server has not seen; sends whole values; goes back to the value before when one is
/// rejected; and acknowledges now and then, not when it submits.
final class OldClient: WorldPeer {
  unowned let world: InMemoryWorld
  let canvas = Canvas()
  let scope: Scope
  let ticker = Ticker.manual()
  private var link: InMemoryWorld.Link?
  private var token: String?
  private var channel = ReliableChannel(side: .client)
  private var pending: [Int: ChangeSet] = [:]
  private var listening: ObservationToken?
  /// Whether changes are sent at once.
  private var isResumed = false
  private(set) var rejections: [WireError] = []

  init(_ world: InMemoryWorld) {
    self.world = world
    scope = Scope(name: "Canvas", root: canvas, ticker: ticker)
    world.add(self)
    connect()
  }

  private func connect() {
    link = world.connect(self, params: token.map { ["sessiontoken": $0] } ?? [:])
  }

  func opened(_ link: InMemoryWorld.Link) {
    if token == nil {
      transmit(.sessionCreate(SessionCreate(version: "0.1.0")))
    } else {
      transmit(channel.ping(resendMissing: true))
    }
  }

  func ping() { if isResumed { transmit(channel.ping(resendMissing: false)) } }

  private func transmit(_ message: Message) {
    link?.toServer.append(Message.encodeFrame([message], asArray: false))
  }

  private func changed(_ set: ChangeSet) {
    let message = channel.stamp(
      .scopeSync(ScopeSync(scopeIndex: 0, fragments: set.fragments, atomic: false)))
    pending[message.index] = set
    if isResumed { transmit(message) }
  }

  func received(_ frame: [UInt8], on link: InMemoryWorld.Link) {
    for case .success(let message) in (try? Message.decodeFrame(frame)) ?? [] {
      guard link === self.link else { return }
      handle(message)
    }
  }

  private func handle(_ message: Message) {
    switch channel.receive(index: message.index) {
    case .duplicate: return
    case .gap:
      isResumed = false
      world.disconnected(self)
      return connect()
    case .process: break
    }
    switch message {
    case .sessionCreateReply(let reply):
      token = reply.sessionToken
      isResumed = true
      transmit(channel.stamp(.scopeFetch(ScopeFetch(name: "Canvas"))))
    case .scopeState(let state):
      _ = try? scope.applyFullState(state.fragments, rootUUID: state.rootUUID)
      listening = scope.onSealedChanges.listen { [weak self] in self?.changed($0.whole) }
    case .scopeSync(let sync): scope.apply(sync.fragments)
    case .scopeSyncReply(let reply): decide(reply)
    case .ping(let ping):
      if ping.resendMissing { isResumed = true }
      for message in channel.receive(ping) { transmit(message) }
    case .sessionCreate, .scopeFetch, .scopeFetchReply, .scopeLeave: break
    }
  }

  /// Takes back what was rejected, unless a later change is on its way.
  private func decide(_ reply: ScopeSyncReply) {
    guard let set = pending.removeValue(forKey: reply.replyTo) else { return }
    for (fragment, answer) in zip(set.fragments, reply.fragmentReplies) {
      guard let error = answer.error else { continue }
      rejections.append(error)
      guard fragment.kind == .change, let base = set.bases[fragment.uuid] else { continue }
      var before = JSONObject()
      for (key, value) in base where !isPending(fragment.uuid, key) { before[key] = value }
      scope.apply([
        SyncFragment(
          .change, uuid: fragment.uuid, className: fragment.className, properties: before)
      ])
    }
  }

  private func isPending(_ uuid: UUID, _ key: String) -> Bool {
    pending.values.contains { $0.bases[uuid]?[key] != nil }
  }

  func closed(_ link: InMemoryWorld.Link, code: Int, reason: String) {
    guard link === self.link else { return }
    isResumed = false
    connect()
  }

  func advance(by duration: Duration) { ticker.advance(by: duration) }

  func flush() { scope.flush() }

  var isAtRest: Bool { pending.isEmpty }
}
