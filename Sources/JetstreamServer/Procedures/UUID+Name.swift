import Foundation
import JetstreamWebSocket

extension UUID {
  /// Makes the UUID of a name: the same for the same name, in version 5, which is made of a digest.
  init(named name: String) {
    var bytes = Array(SHA1.digest(Array(name.utf8))[..<16])
    (bytes[6], bytes[8]) = (bytes[6] & 0x0F | 0x50, bytes[8] & 0x3F | 0x80)
    self = bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }
}
