#if JETSTREAM_TSAN
import JetstreamMutex

/// Shadows `Mutex` of the Synchronization module in builds for the thread sanitizer, which does not
/// understand that one.
typealias Mutex = SanitizerMutex
#endif
