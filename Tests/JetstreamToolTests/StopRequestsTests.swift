import Testing

@testable import JetstreamTool

@Suite("The requests to stop")
struct StopRequestsTests {
  @Test("The first signal is told, its echoes are not, and another one ends the process")
  func echoes() {
    var requests = StopRequests()
    let start = ContinuousClock.now
    #expect(requests.take(at: start) == .stop)
    for milliseconds in [0, 1, 499] {
      #expect(requests.take(at: start + .milliseconds(milliseconds)) == nil)
    }
    // Half a second after the first one, not after its last echo.
    #expect(requests.take(at: start + .milliseconds(500)) == .exit)
    #expect(requests.take(at: start + .seconds(60)) == .exit)
  }
}
