#if canImport(Darwin)
import Darwin
#endif
import Foundation

/// The identity of the machine's boot, as the system tells it.
extension POSIXLogDirectory {
  /// The boot that the system names; nil if it names none, as without `/proc` on Linux.
  ///
  /// Containers that share the machine's kernel have its boot in common. In others, which have a kernel of
  /// their own, it is that of the container: the next container counts as a machine that was started again.
  package var boot: UUID? { Self.currentBoot }

  private static let currentBoot = bootText.flatMap {
    UUID(uuidString: $0.trimmingCharacters(in: .whitespacesAndNewlines))
  }

  #if canImport(Darwin)
  private static var bootText: String? {
    // It has the length of a UUID, and a zero behind it.
    var bytes = [UInt8](repeating: 0, count: 64)
    var size = bytes.count
    guard sysctlbyname("kern.bootsessionuuid", &bytes, &size, nil, 0) == 0 else { return nil }
    return String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
  }
  #else
  private static var bootText: String? {
    try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
  }
  #endif
}
