import Foundation

/// Looks at the memory of the process once a second, where there is a limit on it.
struct MemoryWatch {
  /// What a look has found.
  enum Look {
    case bytes(Int)
    /// The system does not tell; true if it is the first time.
    case unknown(isNew: Bool)
  }

  /// The looks between two times that freed memory is given back: that stops other threads for milliseconds.
  private static let pause = 10

  private var isUnknown = false
  /// The looks until freed memory is given back again.
  private var rest = 0

  mutating func look() -> Look {
    if rest > 0 { rest -= 1 }
    if let bytes = ProcessMemory.residentBytes { return .bytes(bytes) }
    defer { isUnknown = true }
    return .unknown(isNew: !isUnknown)
  }

  /// Gives freed memory back to the system, since the process has too much: otherwise it would count on.
  mutating func trim() {
    guard rest == 0 else { return }
    rest = Self.pause
    DispatchQueue.global(qos: .utility).async { ProcessMemory.trim() }
  }
}
