import Foundation

/// Returns the factor by which work takes longer if its size grows to eight times as much: about 8 if the time is linear,
/// 64 if it is quadratic. Counts the time of this thread alone, and the best of three attempts.
///
/// - Parameter prepare: returns the work of a size, whose own time does not count.
func growth(from size: Int, of prepare: (Int) throws -> () -> Void) rethrows -> Double {
  func best(_ size: Int) throws -> Double {
    try (0..<3).map { _ in
      let work = try prepare(size)
      let start = threadSeconds()
      work()
      return threadSeconds() - start
    }.min()!
  }
  let small = try best(size)
  return try best(8 * size) / small
}

/// A factor that linear work stays below, and that quadratic work exceeds.
let mostLinearGrowth = 28.0

private func threadSeconds() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
