import Foundation

extension UUID {
  /// The UUID with these bits.
  init(pair high: UInt64, _ low: UInt64) {
    let bytes = (high.bigEndian, low.bigEndian)
    self.init(uuid: unsafeBitCast(bytes, to: uuid_t.self))
  }
}
