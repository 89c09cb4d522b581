import Foundation
import JetstreamServer

/// The memory that objects take, including everything that they retain and the allocator's overhead.
///
/// It is measured as the growth of the process's resident memory over a million objects. All of them are kept, so that
/// no object reuses the memory of a released one.
final class MemoryProbe<Object: AnyObject> {
  private let make: () -> Object
  private var kept: [ContiguousArray<Object?>] = []

  init(_ make: @escaping () -> Object) { self.make = make }

  /// Returns the bytes per object.
  func measure() -> Double {
    let count = 1_000_000
    var objects = ContiguousArray<Object?>(repeating: nil, count: count)
    let before = ProcessMemory.knownBytes
    for place in 0..<count { objects[place] = make() }
    let after = ProcessMemory.knownBytes
    kept.append(objects)
    return Double(after - before) / Double(count)
  }
}

/// More of the system's figures about the memory of this process.
extension ProcessMemory {
  /// The largest resident size so far, in bytes.
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

  /// The bytes of the heap that are allocated and not freed; 0 where the system does not tell. It grows with what is
  /// kept, and ``residentBytes`` also with the gaps that the allocator leaves.
  static var heapBytes: Int {
    #if canImport(Darwin)
    var statistics = malloc_statistics_t()
    malloc_zone_statistics(nil, &statistics)
    return Int(statistics.size_in_use)
    #elseif canImport(Glibc)
    // Swift does not import the header that declares it.
    typealias Describe = @convention(c) (Int32, OpaquePointer) -> Int32
    guard let describe = dlsym(nil, "malloc_info") else { return 0 }
    var text: UnsafeMutablePointer<CChar>?
    var size = 0
    guard let file = open_memstream(&text, &size) else { return 0 }
    _ = unsafeBitCast(describe, to: Describe.self)(0, OpaquePointer(file))
    fclose(file)
    defer { free(text) }
    guard let text else { return 0 }
    let description = String(cString: text)
    // The totals of all arenas come last.
    func total(_ element: String) -> Int {
      guard let start = description.range(of: element, options: .backwards)?.upperBound,
        let size = description[start...].range(of: "size=\"")?.upperBound
      else { return 0 }
      return Int(description[size...].prefix { $0 != "\"" }) ?? 0
    }
    return total("<system type=\"current\"") - total("<total type=\"fast\"")
      - total("<total type=\"rest\"")
    #else
    return 0
    #endif
  }

  /// The resident size in bytes, on systems that tell it.
  static var knownBytes: Int {
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
    guard let bytes = residentBytes else {
      preconditionFailure("The system does not tell how much memory is in use.")
    }
    return bytes
    #endif
  }
}
