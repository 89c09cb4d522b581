import Synchronization

/// Which property of a class each key path leads to, for the key paths that were used before.
///
/// Finding that out means running the getter; registering an observer must not cost that each time.
/// A table of 64 words, which are only ever filled: the address of the key path, which is kept alive
/// from then on, and the property's index. Literals of one place in the source are one object, so this
/// is enough for what a program observes by; others are resolved anew.
final class KeyPathCache: Sendable {
  private static let size = 64
  private static let indexBits: UInt64 = 16

  /// Sound although reached from any thread: made once, never freed, only accessed atomically.
  private nonisolated(unsafe) let words: UnsafeMutablePointer<Atomic<UInt64>>

  init() {
    words = .allocate(capacity: Self.size)
    for place in 0..<Self.size { (words + place).initialize(to: Atomic(0)) }
  }

  /// The index that was stored for this key path.
  @inline(__always)
  func index(of keyPath: AnyKeyPath) -> Int? {
    let key = Self.key(keyPath)
    let word = words[Self.place(of: key)].load(ordering: .relaxed)
    guard word >> Self.indexBits == key else { return nil }
    return Int(word & (1 << Self.indexBits - 1))
  }

  /// Stores the index, if the key path's place is free.
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
