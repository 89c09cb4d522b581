import Testing

@testable import JetstreamWebSocket

@Suite struct OutboundRoomTests {
  private var room = OutboundRoom()

  private mutating func admits(_ size: Int, beside waiting: Int) -> Bool {
    room.admits(size, beside: waiting, upTo: 1000)
  }

  @Test mutating func aLargeMessageThatHasGoneOutLeavesNoRoomBehindIt() {
    var admitted = [admits(64_000, beside: 0), admits(900, beside: 64_000)]
    // The last bytes of the large one wait in front, then none, without a moment at which nothing waits.
    admitted += [admits(50, beside: 1000), admits(50, beside: 950)]
    #expect(admitted == [true, true, true, true])
    admitted = [admits(1, beside: 1000), admits(100, beside: 900), admits(1, beside: 1000)]
    #expect(admitted == [false, true, false])
  }

  @Test mutating func asMuchWaitsBehindALargeMessageAsWithoutIt() {
    var admitted = [admits(10, beside: 0), admits(2000, beside: 10), admits(2001, beside: 2010)]
    #expect(admitted == [true, true, false])
    // Of the large message waits less than the limit at last.
    admitted = [admits(900, beside: 2000), admits(100, beside: 1800), admits(1, beside: 1900)]
    #expect(admitted == [true, true, false])
    admitted = [admits(2000, beside: 1000), admits(2000, beside: 2001)]
    #expect(admitted == [true, false])
  }
}
