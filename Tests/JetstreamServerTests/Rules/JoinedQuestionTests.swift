import Foundation
import Jetstream
import Testing

@testable import JetstreamServer

/// Questions for rights that the app takes long to answer, while clients fetch the scope again.
@Suite("Questions for rights that later fetches join")
struct JoinedQuestionTests {
  private let world = InMemoryWorld()
  private let questions = OpenQuestions()

  /// The app, which is asked and answers when the test says so.
  private final class App {
    var numbers: [Int] = []
    /// The numbers of the questions that were given up.
    var givenUp: [Int] = []
  }
  private let app = App()

  private func joined() -> RawPeer {
    let peer = RawPeer(world)
    world.access = { [app, questions, unowned world] session, name in
      let number = world.questions["\(session.token) \(name)"] ?? 0
      app.numbers.append(number)
      let question = AppQuestion<ScopeAccess>({ .readWrite }) {
        if case .failure(is CancellationError) = $0 { app.givenUp.append(number) }
      }
      questions.keep(question, as: number, of: session.token)
      return .pending
    }
    peer.createSession()
    return peer
  }

  /// Lets time pass as the server's runner does.
  private func pass(_ seconds: Int, _ peer: RawPeer) {
    for _ in 0..<seconds {
      world.advance(by: .seconds(1))
      questions.giveUp { [server = world.server!] in !server.isAsking($0, of: $1) }
    }
    peer.acknowledge()
    peer.take()
    #expect(world.server.checkInvariants() == [])
  }

  private func fetch(by peer: RawPeer) { peer.send(peer.stamp(.scopeFetch(.init(name: "Canvas")))) }

  private func answers(to peer: RawPeer) -> [Denial?] {
    peer.messages.compactMap { message -> Denial?? in
      if case .scopeFetchReply(let reply) = message { .some(reply.error?.denial) } else { nil }
    }
  }

  @Test("A question is kept as long as a fetch waits for it, and its answer serves the last one")
  func joins() throws {
    let peer = joined()
    fetch(by: peer)
    pass(31, peer)
    #expect(answers(to: peer) == [.notNow] && app.givenUp.isEmpty)
    // The next one waits until 65 seconds, and one behind it for no longer.
    pass(4, peer)
    fetch(by: peer)
    pass(20, peer)
    fetch(by: peer)
    pass(11, peer)
    #expect(answers(to: peer) == [.notNow, .notNow, .notNow] && app.givenUp.isEmpty)
    // The last one waits until 115 seconds. By then the question has expired, and is still the one that is asked.
    pass(19, peer)
    fetch(by: peer)
    pass(20, peer)
    #expect(app.numbers.count == 1 && app.givenUp.isEmpty)
    #expect(questions.takeRights(app.numbers[0]))
    world.decide(try #require(peer.token), "Canvas", .success(.readWrite), to: app.numbers[0])
    peer.take()
    #expect(answers(to: peer) == [.notNow, .notNow, .notNow, nil])
  }

  @Test("A question that has expired is given up with the last fetch, and the next one asks anew")
  func expires() throws {
    let peer = joined()
    fetch(by: peer)
    pass(85, peer)
    fetch(by: peer)
    pass(29, peer)
    #expect(app.givenUp.isEmpty && answers(to: peer) == [.notNow])
    pass(2, peer)
    #expect(app.givenUp == app.numbers && answers(to: peer) == [.notNow, .notNow])
    fetch(by: peer)
    #expect(app.numbers.count == 2)
    // The end of the session ends the new one, too.
    world.server.endSession(try #require(peer.token), telling: .rejected("over"))
    questions.giveUp { [server = world.server!] in !server.isAsking($0, of: $1) }
    #expect(app.givenUp == app.numbers)
  }
}
