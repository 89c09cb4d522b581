#if JETSTREAM_TSAN
@testable import Jetstream

/// In builds for the thread sanitizer, the tests' own locks are ones that it understands as well.
typealias Mutex = Jetstream.Mutex
#endif
