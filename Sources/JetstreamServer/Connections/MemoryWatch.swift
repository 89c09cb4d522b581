import Foundation

/// Looks at the memory of the process once a second, where there is a limit on it.
struct MemoryWatch {
  /// The result of a look.
  enum Look {
    case bytes(Int)
    /// The system does not tell; true if it is the first time.
    case unknown(isNew: Bool)
  }

  /// The looks from one time that freed memory is given back to the next: it stops other threads for milliseconds.
  private static let pause = 3

  private var isUnknown = false
  /// The looks until freed memory is given back again.
  private var rest = 0

  mutating func look() -> Look {
    if rest > 0 { rest -= 1 }
    if let bytes = ProcessMemory.residentBytes { return .bytes(bytes) }
    defer { isUnknown = true }
    return .unknown(isNew: !isUnknown)
  }

  /// Gives freed memory back to the system, unless that was done a moment ago. The allocator keeps it otherwise, and it
  /// counts.
  mutating func trim() {
    guard rest == 0 else { return }
    rest = Self.pause
    DispatchQueue.global(qos: .utility).async { ProcessMemory.trim() }
  }
}
