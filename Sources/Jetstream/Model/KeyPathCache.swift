import Synchronization

/// A cache from key paths of a class to the indices of its properties.
///
/// Resolving a key path runs the getter, some of them on new models, which is too expensive for each
/// registration of an observer. The cache is a table of 64 words that are only ever filled: each
/// holds the address of a key path, which is then kept alive, and the index of the property. A key
/// path literal at one place in the source is one object, so the words suffice for typical programs.
/// Key paths that share a word, or that are made anew each time, are looked up in a dictionary, under
/// a lock.
final class KeyPathCache: Sendable {
  private static let size = 64
  private static let indexBits: UInt64 = 16
  /// Stands for a key path that leads to no property.
  private static let computed = 1 << Int(indexBits) - 1
  private static let limit = 1024

  /// Safe to share between threads: allocated once, never freed, and only accessed atomically.
  private nonisolated(unsafe) let words: UnsafeMutablePointer<Atomic<UInt64>>
  /// The resolved key paths, ``limit`` at most.
  private let resolved = Mutex<[PathKey: Int]>([:])

  init() {
    words = .allocate(capacity: Self.size)
    for place in 0..<Self.size { (words + place).initialize(to: Atomic(0)) }
  }

  /// Returns the index stored for this key path object; nil if there is none, or if it leads to no property.
  @inline(__always)
  func index(of keyPath: AnyKeyPath) -> Int? {
    word(of: keyPath).flatMap { $0 == Self.computed ? nil : $0 }
  }

  /// Returns the index of the property that the key path leads to, and nil for any other. Calls `resolve` to find
  /// it, and stores the result.
  func index(of keyPath: AnyKeyPath, resolve: () -> Int?) -> Int? {
    var index = word(of: keyPath)
    if index == nil {
      let key = PathKey(path: keyPath)
      index = resolved.withLock { $0[key] }
      if index == nil {
        let found = resolve() ?? Self.computed
        index = found
        store(found, for: keyPath)
        // Full, it is released after the lock, with all that its key paths have captured: that may call back.
        let full = resolved.withLock { resolved -> [PathKey: Int]? in
          let full = resolved.count >= Self.limit ? resolved : nil
          if full != nil { resolved = [:] }
          resolved[key] = found
          return full
        }
        _ = full
      }
    }
    return index == Self.computed ? nil : index
  }

  @inline(__always)
  private func word(of keyPath: AnyKeyPath) -> Int? {
    let key = Self.key(keyPath)
    let word = words[Self.place(of: key)].load(ordering: .relaxed)
    guard word >> Self.indexBits == key else { return nil }
    return Int(word & (1 << Self.indexBits - 1))
  }

  /// Stores the index if the key path's word is free.
  private func store(_ index: Int, for keyPath: AnyKeyPath) {
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

  /// Safe for key paths without captured arguments, although they are not Sendable: they are immutable, and are only
  /// compared, hashed and released. Arguments that key paths have captured have to bear that on any thread.
  private struct PathKey: Hashable, @unchecked Sendable {
    let path: AnyKeyPath
  }
}
