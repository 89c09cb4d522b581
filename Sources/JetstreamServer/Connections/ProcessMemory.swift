import Foundation

/// The memory of this process, as the system and its allocator have it.
package enum ProcessMemory {
  /// The resident size in bytes; nil where the system does not tell it in a file, as Linux does.
  package static var residentBytes: Int? {
    #if os(Linux)
    // The second number is the resident pages.
    guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8),
      let pages = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { return nil }
    return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    #else
    return nil
    #endif
  }

  /// Gives freed memory back to the system, so that ``residentBytes`` falls. The allocator keeps it otherwise.
  package static func trim() {
    #if canImport(Darwin)
    malloc_zone_pressure_relief(nil, 0)
    #else
    // Swift does not import the header that declares it. Other libraries than Glibc do not have it.
    typealias Trim = @convention(c) (Int) -> Int32
    // Sound, since this is the type that Glibc declares.
    if let trim = dlsym(nil, "malloc_trim") { _ = unsafeBitCast(trim, to: Trim.self)(0) }
    #endif
  }

  /// Has the allocator of Glibc use two arenas, whatever the number of threads. By default it makes up to eight for each
  /// processor, and each keeps the gaps that its threads have left. Does nothing elsewhere. Call it before threads are made.
  package static func limitArenas() {
    #if canImport(Glibc)
    // Swift does not import the header that declares it, with M_ARENA_MAX, which is -8.
    typealias SetOption = @convention(c) (Int32, Int32) -> Int32
    // Sound, since this is the type that Glibc declares.
    if let setOption = dlsym(nil, "mallopt") {
      _ = unsafeBitCast(setOption, to: SetOption.self)(-8, 2)
    }
    #endif
  }
}
