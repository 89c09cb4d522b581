import Foundation

/// What objects take in memory, with all that comes with them and the allocator's own overhead.
///
/// It is the growth of the process's resident memory over a million objects. All of them are kept,
/// so that no object gets the place of one that has gone.
final class MemoryProbe<Object: AnyObject> {
  private let make: () -> Object
  private var kept: [ContiguousArray<Object?>] = []

  init(_ make: @escaping () -> Object) { self.make = make }

  /// Bytes an object.
  func measure() -> Double {
    let count = 1_000_000
    var objects = ContiguousArray<Object?>(repeating: nil, count: count)
    let before = ProcessMemory.residentBytes
    for place in 0..<count { objects[place] = make() }
    let after = ProcessMemory.residentBytes
    kept.append(objects)
    return Double(after - before) / Double(count)
  }
}

/// What the system says of this process.
enum ProcessMemory {
  /// The most that has ever been resident.
  static var peakBytes: Int {
    var usage = rusage()
    #if canImport(Darwin)
    getrusage(RUSAGE_SELF, &usage)
    return usage.ru_maxrss
    #else
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return usage.ru_maxrss << 10
    #endif
  }

  static var residentBytes: Int {
    #if canImport(Darwin)
    var info = mach_task_basic_info()
    var count = mach_msg_type_number_t(
      MemoryLayout<mach_task_basic_info>.size / MemoryLayout<natural_t>.size)
    let status = withUnsafeMutablePointer(to: &info) {
      $0.withMemoryRebound(to: integer_t.self, capacity: Int(count)) {
        task_info(mach_task_self_, task_flavor_t(MACH_TASK_BASIC_INFO), $0, &count)
      }
    }
    precondition(status == KERN_SUCCESS, "The system does not tell how much memory is in use.")
    return Int(info.resident_size)
    #else
    // The second number is the resident pages.
    guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8),
      let pages = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { preconditionFailure("The system does not tell how much memory is in use.") }
    return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    #endif
  }
}
