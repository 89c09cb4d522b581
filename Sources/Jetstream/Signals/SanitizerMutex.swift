#if JETSTREAM_TSAN
import JetstreamWebSocket

/// In builds for the thread sanitizer, goes before the one of the Synchronization module, which the
/// sanitizer does not understand.
typealias Mutex = SanitizerMutex
#endif
