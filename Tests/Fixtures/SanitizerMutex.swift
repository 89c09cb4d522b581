#if JETSTREAM_TSAN
import JetstreamMutex

/// In builds for the thread sanitizer, the tests' own locks are ones that it understands as well.
typealias Mutex = SanitizerMutex
#endif
