/// A growing buffer that JSON is written into.
///
/// Appending single bytes to it is cheaper than to an array, which checks each time whether its storage is shared.
package struct JSONOutput: ~Copyable {
  private var base: UnsafeMutablePointer<UInt8>
  private var capacity: Int

  /// The number of bytes written.
  package private(set) var count = 0
  /// Bytes that belong between those written, and how many of these are in front of them.
  private(set) var inset: (at: Int, bytes: [UInt8])?

  /// True if bytes may be left out for ``inset``.
  private let takesInset: Bool

  package init(capacity: Int = 512, takesInset: Bool = false) {
    self.takesInset = takesInset
    self.capacity = max(capacity, 64)
    base = .allocate(capacity: self.capacity)
  }

  deinit { base.deallocate() }

  /// The bytes written, valid until the next change.
  package var bytes: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: base, count: count) }

  @inline(__always)
  mutating func append(_ byte: UInt8) {
    if count == capacity { grow(by: 1) }
    base[count] = byte
    count += 1
  }

  @inline(__always)
  package mutating func append(_ character: Unicode.Scalar) {
    append(UInt8(ascii: character))
  }

  /// Appends fixed text as it is.
  @inline(__always)
  package mutating func append(fixed text: StaticString) {
    append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Appends a comma, a key that is written as it is, and a colon.
  package mutating func append(key: StaticString) {
    let length = key.utf8CodeUnitCount
    if capacity - count < length + 4 { grow(by: length + 4) }
    let place = base + count
    (place[0], place[1]) = (UInt8(ascii: ","), UInt8(ascii: "\""))
    (place + 2).update(from: key.utf8Start, count: length)
    (place[length + 2], place[length + 3]) = (UInt8(ascii: "\""), UInt8(ascii: ":"))
    count += length + 4
  }

  @inline(__always)
  mutating func append(_ other: UnsafeBufferPointer<UInt8>) {
    guard let start = other.baseAddress else { return }
    if capacity - count < other.count { grow(by: other.count) }
    (base + count).update(from: start, count: other.count)
    count += other.count
  }

  /// Appends bytes that were written before once more.
  package mutating func append(copyOf range: Range<Int>) {
    if capacity - count < range.count { grow(by: range.count) }
    (base + count).update(from: base + range.lowerBound, count: range.count)
    count += range.count
  }

  /// Appends bytes as they are.
  package mutating func append(_ bytes: [UInt8]) {
    bytes.withUnsafeBufferPointer { append($0) }
  }

  /// Appends an object of the fields that `write` puts, each with a comma in front.
  package mutating func object(_ write: (inout JSONOutput) -> Void) {
    let start = count
    write(&self)
    if count == start { append("{") } else { base[start] = UInt8(ascii: "{") }
    append("}")
  }

  /// Leaves out bytes that belong here, so that they are copied once only; see ``inset``. Returns false if that is not
  /// wanted, or was done already.
  package mutating func leaveOut(_ bytes: [UInt8]) -> Bool {
    guard takesInset, inset == nil else { return false }
    inset = (count, bytes)
    return true
  }

  /// Appends `length` bytes, at most, that `fill` writes; it returns how many it wrote.
  @inline(__always)
  mutating func append(
    upTo length: Int, _ fill: (UnsafeMutablePointer<UInt8>) -> Int
  ) {
    if capacity - count < length { grow(by: length) }
    count += fill(base + count)
  }

  /// Removes the last bytes.
  package mutating func removeLast(_ length: Int) { count -= length }

  @inline(never)
  private mutating func grow(by length: Int) {
    let newCapacity = max(capacity * 2, count + length)
    let newBase = UnsafeMutablePointer<UInt8>.allocate(capacity: newCapacity)
    newBase.update(from: base, count: count)
    base.deallocate()
    base = newBase
    capacity = newCapacity
  }
}

extension [UInt8] {
  /// Appends the bytes that `write` puts out: `size` of them, approximately.
  package mutating func append(size: Int = 512, written write: (inout JSONOutput) -> Void) {
    var output = JSONOutput(capacity: size, takesInset: true)
    write(&output)
    guard let inset = output.inset else { return append(contentsOf: output.bytes) }
    reserveCapacity(count + output.count + inset.bytes.count + 1)
    append(contentsOf: output.bytes[..<inset.at])
    append(contentsOf: inset.bytes)
    append(contentsOf: output.bytes[inset.at...])
  }
}
