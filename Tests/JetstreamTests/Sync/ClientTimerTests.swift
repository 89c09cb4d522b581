import Testing

@testable import Jetstream

@Suite("The timer of a client")
struct ClientTimerTests {
  @Test("An earlier time replaces the one that was scheduled, and each is served once")
  func earlier() {
    let ticker = Ticker.manual()
    var served: [Duration] = []
    let timer = ClientTimer(on: ticker) { served.append(ticker.now) }
    timer.schedule(at: .seconds(10))
    timer.schedule(at: .seconds(2))
    timer.schedule(at: .seconds(5))
    timer.schedule(at: nil)
    ticker.advance(by: .seconds(60))
    #expect(served == [.seconds(2)])
    timer.schedule(at: .seconds(3))
    ticker.advance(by: .seconds(1))
    #expect(served == [.seconds(2), .seconds(60) + .milliseconds(1)])
    #expect(ticker.isIdle)
  }

  @Test("A client that polls between its pings is served once at each of these times")
  func polls() {
    let ticker = Ticker.manual()
    var served: [Duration] = []
    var timer: ClientTimer?
    func goOn() {
      // First until the next ping, and then, once the poll is over, until the next poll.
      let ping = ticker.now / .seconds(10)
      timer?.schedule(at: .seconds(10) * (Int(ping) + 1))
      timer?.schedule(at: ticker.now + .seconds(2))
    }
    timer = ClientTimer(on: ticker) {
      served.append(ticker.now)
      goOn()
    }
    goOn()
    ticker.advance(by: .seconds(600))
    #expect(served == (1...300).map { .seconds(2 * $0) })
  }

  @Test("A timer that is gone serves nothing, and leaves nothing to do")
  func gone() {
    let ticker = Ticker.manual()
    var count = 0
    var timer: ClientTimer? = ClientTimer(on: ticker) { count += 1 }
    timer?.schedule(at: .seconds(1))
    timer = nil
    ticker.advance(by: .seconds(5))
    #expect(count == 0 && ticker.isIdle)
  }
}
