/// Values that wait until the array or the object that contains them is complete.
///
/// So the result is allocated once, at its exact size. Values that still wait when reading fails are released with
/// the stack.
struct JSONStack<Element>: ~Copyable {
  // Owned by this value alone, which cannot be copied: the first `count` places are initialized, the
  // others up to `capacity` are not.
  private var base: UnsafeMutablePointer<Element>?
  private var capacity = 0

  /// The number of values that wait.
  private(set) var count = 0

  init() { base = nil }

  deinit {
    guard let base else { return }
    base.deinitialize(count: count)
    base.deallocate()
  }

  /// Adds a value.
  @inline(__always)
  mutating func push(_ element: consuming Element) {
    if count == capacity { grow() }
    (base! + count).initialize(to: element)
    count += 1
  }

  /// Takes off everything from the place `start` on, as an array.
  @inline(__always)
  mutating func pop(from start: Int) -> [Element] {
    let length = count - start
    guard length > 0, let base else { return [] }
    count = start
    var array: [Element] = []
    array.reserveCapacity(length)
    for place in start..<start + length { array.append((base + place).move()) }
    return array
  }

  /// Passes the values from the index `start` on to a closure, without taking them off.
  @inline(__always)
  func withElements<Result>(
    from start: Int, _ body: (UnsafeBufferPointer<Element>) -> Result
  ) -> Result {
    body(UnsafeBufferPointer(start: base.map { $0 + start }, count: count - start))
  }

  @inline(never)
  private mutating func grow() {
    let newCapacity = Swift.max(capacity * 2, 16)
    let newBase = UnsafeMutablePointer<Element>.allocate(capacity: newCapacity)
    if let base {
      newBase.moveInitialize(from: base, count: count)
      base.deallocate()
    }
    base = newBase
    capacity = newCapacity
  }
}
