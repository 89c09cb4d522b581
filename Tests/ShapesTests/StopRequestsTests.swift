import Testing

@testable import shapes

@Suite("The requests to stop")
struct StopRequestsTests {
  @Test("The first signal is told, its echoes are not, and another one ends the process")
  func echoes() {
    var requests = StopRequests()
    let start = ContinuousClock.now
    #expect(requests.take(at: start) == .stop)
    for milliseconds in [0, 499] {
      #expect(requests.take(at: start + .milliseconds(milliseconds)) == nil)
    }
    #expect(requests.take(at: start + .milliseconds(500)) == .exit)
  }
}
