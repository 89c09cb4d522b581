#if os(Linux)
import Foundation

/// The processors that this process may use.
enum Processors {
  private typealias Affinity = @convention(c) (pid_t, Int, UnsafeMutableRawPointer) -> Int32

  /// Calls a function that Swift does not see, because its header declares it for GNU sources only.
  private static func call(_ name: String, with set: inout cpu_set_t) throws {
    guard let function = dlsym(nil, name) else {
      throw RoleProblem(text: "the system has no \(name)")
    }
    // Sound: that is the function's type in C, and it keeps no pointer.
    guard unsafeBitCast(function, to: Affinity.self)(0, MemoryLayout<cpu_set_t>.size, &set) == 0
    else { throw RoleProblem(text: "\(name) failed with errno \(errno)") }
  }

  /// Keeps the calling thread, and all threads and processes that it starts, on one of the processors.
  ///
  /// - Parameter place: the place of the processor among those that the process may use.
  static func pin(to place: Int) throws {
    var permitted = cpu_set_t()
    try call("sched_getaffinity", with: &permitted)
    // The macros for the set are not there in Swift. It has a bit for each processor, in words.
    let words = withUnsafeBytes(of: permitted) { Array($0.bindMemory(to: UInt.self)) }
    let numbers = (0..<words.count * UInt.bitWidth).filter {
      words[$0 / UInt.bitWidth] >> ($0 % UInt.bitWidth) & 1 == 1
    }
    guard place < numbers.count else {
      throw RoleProblem(text: "there are only \(numbers.count) processors")
    }
    let number = numbers[place]
    var chosen = cpu_set_t()
    withUnsafeMutableBytes(of: &chosen) {
      $0.bindMemory(to: UInt.self)[number / UInt.bitWidth] = 1 << (number % UInt.bitWidth)
    }
    try call("sched_setaffinity", with: &chosen)
  }

  /// Returns the seconds of processor time that all threads of a process have used.
  static func time(of process: Int32) throws -> Double {
    var clock = clockid_t()
    var time = timespec()
    guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0 else {
      throw RoleProblem(text: "the processor time of process \(process) cannot be read")
    }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
#endif
