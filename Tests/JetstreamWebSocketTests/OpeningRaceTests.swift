import Synchronization
import Testing

@testable import JetstreamWebSocket

@Suite("The outcome of opening a connection")
struct OpeningRaceTests {
  /// The times that were slept for, and how often opening was given up.
  private final class Notes: Sendable {
    private let state = Mutex((slept: [Duration](), givenUp: 0))

    var slept: [Duration] { state.withLock { $0.slept } }
    var givenUp: Int { state.withLock { $0.givenUp } }

    func sleep(_ time: Duration) { state.withLock { $0.slept.append(time) } }
    func giveUp() { state.withLock { $0.givenUp += 1 } }
  }

  /// Waits until the task is cancelled.
  @Sendable private static func forever(_ time: Duration) async throws {
    let (never, _) = AsyncStream.makeStream(of: Never.self)
    for await _ in never {}
    throw CancellationError()
  }

  @Test("A connection that is not open in time is given up, whatever comes of it later")
  func late() async {
    let (race, notes) = (OpeningRace(), Notes())
    let outcome = await race.outcome(within: .seconds(7), sleep: { notes.sleep($0) }) {
      notes.giveUp()
    }
    #expect(throws: WebSocketError.timedOut) { try outcome.get() }
    #expect(notes.slept == [.seconds(7)] && notes.givenUp == 1)
    #expect(!race.settle(.success(())))
  }

  @Test("The first outcome counts, before and while it is waited for", arguments: [false, true])
  func first(isEarly: Bool) async {
    let (race, notes) = (OpeningRace(), Notes())
    if isEarly { #expect(race.settle(.success(()))) }
    let opening = Task {
      await race.outcome(within: .seconds(7), sleep: Self.forever) { notes.giveUp() }
    }
    if !isEarly { #expect(race.settle(.success(()))) }
    #expect(!race.settle(.failure(.connectionLost)))
    let opened = await opening.value
    #expect(throws: Never.self) { try opened.get() }
    #expect(notes.givenUp == 0)
    let failed = OpeningRace()
    failed.settle(.failure(.connectionLost))
    let outcome = await failed.outcome(within: .seconds(7), sleep: Self.forever) { notes.giveUp() }
    #expect(throws: WebSocketError.connectionLost) { try outcome.get() }
    #expect(notes.givenUp == 0)
  }

  @Test("A task that is cancelled gives up")
  func cancelled() async {
    let (race, notes) = (OpeningRace(), Notes())
    let opening = Task {
      await race.outcome(within: .seconds(7), sleep: Self.forever) { notes.giveUp() }
    }
    opening.cancel()
    let outcome = await opening.value
    #expect(throws: WebSocketError.cancelled) { try outcome.get() }
    #expect(notes.givenUp == 1)
  }
}
