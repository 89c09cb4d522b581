/// The times at which a writer makes change sets at a rate.
struct BenchSchedule {
  let start: Int
  let end: Int
  /// The number of change sets a second.
  let rate: Double

  /// Returns the time at which a change set is due, numbered from 0; nil for those behind the end.
  func time(of number: Int) -> Int? {
    let time = start + Int(Double(number) / rate * Double(BenchClock.second))
    return time < end ? time : nil
  }

  /// The number of change sets that are due until the end.
  var count: Int {
    // The product may be a little off, and is not what decides.
    var count = Int(Double(end - start) / Double(BenchClock.second) * rate)
    while time(of: count) != nil { count += 1 }
    while count > 0, time(of: count - 1) == nil { count -= 1 }
    return count
  }
}
