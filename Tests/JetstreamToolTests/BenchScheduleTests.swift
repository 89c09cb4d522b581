import Testing

@testable import JetstreamTool

@Suite("The times of a rate")
struct BenchScheduleTests {
  @Test("All change sets that are due before the end are counted", arguments: [0.1, 3, 40, 333.3])
  func count(rate: Double) {
    for seconds in [1, 2, 7] {
      let schedule = BenchSchedule(start: 5, end: 5 + seconds * BenchClock.second, rate: rate)
      var count = 0
      while let time = schedule.time(of: count) {
        #expect(time >= 5 && time < schedule.end)
        count += 1
      }
      #expect(schedule.count == count && count == Int((rate * Double(seconds)).rounded(.up)))
    }
  }

  @Test("The change sets of a writer that is behind are late, and the first one is due at once")
  func times() {
    let schedule = BenchSchedule(start: 100, end: 100 + BenchClock.second, rate: 4)
    #expect(
      (0...4).map(schedule.time)
        == [100, 250_000_100, 500_000_100, 750_000_100, nil])
    #expect(schedule.count == 4)
  }
}
