#if canImport(Glibc)
import Glibc
#endif

/// The parts into which the system's allocator divides the heap.
package enum MemoryArenas {
  /// Has the allocator of Glibc use two arenas, whatever the number of threads. By default it makes up to eight for each
  /// processor, and each keeps the gaps that its threads have left. Does nothing elsewhere. Call it before threads are made.
  package static func limit() {
    #if canImport(Glibc)
    // Swift does not import the header that declares it, with M_ARENA_MAX, which is -8.
    typealias SetOption = @convention(c) (Int32, Int32) -> Int32
    if let setOption = dlsym(nil, "mallopt") {
      _ = unsafeBitCast(setOption, to: SetOption.self)(-8, 2)
    }
    #endif
  }
}
