import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension UUID {
  /// Returns a random version 4 UUID from a pool of system entropy.
  ///
  /// The pool is filled for 256 UUIDs at a time, which is many times cheaper than `UUID()`.
  static func pooled() -> UUID { EntropyPool.shared.withLock { $0.next() } }
}

private struct EntropyPool {
  static let shared = Mutex(EntropyPool())

  private static let batch = 256
  private var bytes = [UInt8](repeating: 0, count: EntropyPool.batch * 16)
  private var used = EntropyPool.batch

  mutating func next() -> UUID {
    if used == Self.batch { refill() }
    let at = used * 16
    used += 1
    var uuid = bytes.withUnsafeBytes {
      $0.loadUnaligned(fromByteOffset: at, as: uuid_t.self)
    }
    uuid.6 = (uuid.6 & 0x0F) | 0x40
    uuid.8 = (uuid.8 & 0x3F) | 0x80
    return UUID(uuid: uuid)
  }

  private mutating func refill() {
    // getentropy gives at most 256 bytes a call.
    for start in stride(from: 0, to: bytes.count, by: 256) {
      let status = bytes.withUnsafeMutableBytes {
        getentropy($0.baseAddress! + start, 256)
      }
      precondition(status == 0, "The system refused to give random bytes for a UUID.")
    }
    used = 0
  }
}
