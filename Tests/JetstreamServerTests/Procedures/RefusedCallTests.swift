import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// The server decides what it refuses, since a client whose session is lost takes what is not told for accepted.
@Suite("Calls that are refused")
struct RefusedCallTests {
  private final class Open {
    var requests: [ProcedureRequest] = []
  }
  private let world = InMemoryWorld()
  private let open = Open()
  private let ann = UUID()

  init() {
    world.procedures[Like.name] = ServedProcedure(takesArguments: true) { [open] in
      open.requests.append($0)
    }
  }

  private func peer(as client: UUID) -> RawPeer {
    let peer = RawPeer(world)
    peer.createSession()
    peer.fetch(as: client)
    return peer
  }

  private func named(_ text: String) -> [SyncFragment] {
    [
      SyncFragment(
        .change, uuid: world.canvas.uuid, className: "Canvas", properties: ["name": .string(text)])
    ]
  }

  @Test("One that is refused since too many are left behind stays refused in a later session")
  func tooMany() throws {
    let peer = peer(as: UUID())
    for _ in 0..<16 {
      peer.fetch(as: UUID())
      peer.call(number: 1)
      peer.send(peer.stamp(.scopeLeave(ScopeLeave(scopeIndex: peer.scopeIndex))))
    }
    peer.fetch(as: ann)
    let refused = peer.call(number: 1)
    #expect(peer.reply(to: refused)?.outcome?.error?.denial == .notNow)
    let behind = peer.submit(named("behind"), number: 2)
    #expect(peer.replies(to: behind) == [FragmentReply()])
    #expect(open.requests.count == 16)

    let later = self.peer(as: ann)
    let standings = later.messages.compactMap { message -> ScopeStanding? in
      if case .scopeFetchReply(let reply) = message { reply.standing } else { nil }
    }
    let decisions = try #require(standings.last).decisions
    #expect(decisions.map(\.number) == [1, 2])
    #expect(decisions.first?.outcome?.error?.denial == .notNow)
    let again = later.call(number: 1)
    #expect(later.reply(to: again)?.outcome?.error?.denial == .notNow)
    #expect(open.requests.count == 16 && world.server.checkInvariants() == [])
  }
}
