import Synchronization

/// A cache from key paths of a class to the indices of its properties.
///
/// Resolving a key path runs the getter, which is too expensive for each registration of an
/// observer. The cache is a table of 64 words that are only ever filled: each holds the address of
/// a key path, which is then kept alive, and the index of the property. A key path literal at one
/// place in the source is one object, so the table suffices for typical programs; other key paths
/// are resolved each time.
final class KeyPathCache: Sendable {
  private static let size = 64
  private static let indexBits: UInt64 = 16

  /// Safe to share between threads: allocated once, never freed, and only accessed atomically.
  private nonisolated(unsafe) let words: UnsafeMutablePointer<Atomic<UInt64>>

  init() {
    words = .allocate(capacity: Self.size)
    for place in 0..<Self.size { (words + place).initialize(to: Atomic(0)) }
  }

  /// Returns the index stored for this key path; nil if there is none.
  @inline(__always)
  func index(of keyPath: AnyKeyPath) -> Int? {
    let key = Self.key(keyPath)
    let word = words[Self.place(of: key)].load(ordering: .relaxed)
    guard word >> Self.indexBits == key else { return nil }
    return Int(word & (1 << Self.indexBits - 1))
  }

  /// Stores the index if the key path's slot is free.
  func store(_ index: Int, for keyPath: AnyKeyPath) {
    let key = Self.key(keyPath)
    guard index < 1 << Self.indexBits, key < 1 << (64 - Self.indexBits) else { return }
    let kept = Unmanaged.passRetained(keyPath)
    let (exchanged, _) = words[Self.place(of: key)].compareExchange(
      expected: 0, desired: key << Self.indexBits | UInt64(index), ordering: .relaxed)
    if !exchanged { kept.release() }
  }

  @inline(__always)
  private static func key(_ keyPath: AnyKeyPath) -> UInt64 {
    UInt64(UInt(bitPattern: Unmanaged.passUnretained(keyPath).toOpaque()))
  }

  @inline(__always)
  private static func place(of key: UInt64) -> Int {
    Int((key >> 4 &* 0x9E37_79B9_7F4A_7C15) >> 58)
  }
}
