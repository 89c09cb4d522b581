/// The keys and names found in one text, each made into a string once.
///
/// A table of 64 places, each of which keeps the last string that belongs there, so that a text full of different
/// keys takes no more memory than any other. It is made for a text with more than a few keys: making it costs as much
/// as reading a short text.
struct JSONKeys: ~Copyable {
  /// The longest key that is kept, in bytes.
  static let maxLength = 64

  private struct Entry {
    var string: String
    /// The first and the last eight bytes, or all of them twice.
    var head: UInt64
    var tail: UInt64
    /// The offset in the text at which the key was found.
    var start: Int
    var length: Int
    var isASCII: Bool
  }

  /// The number of keys that are made into strings before there is a table.
  static let tableless = 8

  // Owned by this value alone, which cannot be copied, and made when it is first needed: the places
  // whose bits are set in `used` are initialized, the others are not.
  private var entries: UnsafeMutablePointer<Entry>?
  private var used: UInt64 = 0
  private var early = 0

  /// The number of keys that were replaced by another one.
  private(set) var evictions = 0

  init() { entries = nil }

  deinit {
    guard let entries else { return }
    for place in 0..<64 where used & (1 << UInt64(place)) != 0 {
      (entries + place).deinitialize(count: 1)
    }
    entries.deallocate()
  }

  /// Returns the string of some bytes of a text, and a bit that stands for it until the next eviction; no bit if
  /// another string could be canonically equivalent. Nil if the bytes are not UTF-8.
  ///
  /// All calls have to be about the same text.
  @inline(__always)
  mutating func string(
    _ text: UnsafeBufferPointer<UInt8>, from start: Int, to end: Int
  ) -> (string: String, bit: UInt64)? {
    let length = end - start
    let (head, tail) = Self.words(text, from: start, to: end)
    let hash = (head ^ (tail << 23 | tail >> 41) &+ UInt64(length)) &* 0x9E37_79B9_7F4A_7C15
    let place = Int(truncatingIfNeeded: hash >> 58)
    let bit: UInt64 = 1 << UInt64(place)
    if used & bit != 0, let entry = entries.map({ $0 + place }),
      entry.pointee.head == head, entry.pointee.tail == tail, entry.pointee.length == length,
      length <= 16 || Self.isSame(text, entry.pointee.start, start, length)
    {
      return (entry.pointee.string, entry.pointee.isASCII ? bit : 0)
    }
    return insert(text, from: start, to: end, head: head, tail: tail, place: place)
  }

  @inline(never)
  private mutating func insert(
    _ text: UnsafeBufferPointer<UInt8>, from start: Int, to end: Int, head: UInt64, tail: UInt64,
    place: Int
  ) -> (string: String, bit: UInt64)? {
    let bytes = UnsafeBufferPointer(rebasing: text[start..<end])
    guard let string = JSONScan.string(bytes) else { return nil }
    if early < Self.tableless {
      early += 1
      return (string, 0)
    }
    let isASCII = bytes.reduce(0, |) < 0x80
    let bit: UInt64 = 1 << UInt64(place)
    let entries = self.entries ?? .allocate(capacity: 64)
    self.entries = entries
    if used & bit != 0 {
      (entries + place).deinitialize(count: 1)
      evictions += 1
    }
    (entries + place).initialize(
      to: Entry(
        string: string, head: head, tail: tail, start: start, length: end - start,
        isASCII: isASCII))
    used |= bit
    return (string, isASCII ? bit : 0)
  }

  @inline(__always)
  private static func words(
    _ text: UnsafeBufferPointer<UInt8>, from start: Int, to end: Int
  ) -> (UInt64, UInt64) {
    let raw = UnsafeRawBufferPointer(text)
    let length = end - start
    if length >= 8 {
      return (
        raw.loadUnaligned(fromByteOffset: start, as: UInt64.self),
        raw.loadUnaligned(fromByteOffset: end - 8, as: UInt64.self)
      )
    }
    var word: UInt64 = 0
    if start + 8 <= text.count {
      let mask: UInt64 = (1 << UInt64(length * 8)) - 1
      let bytes = raw.loadUnaligned(fromByteOffset: start, as: UInt64.self)
      word = UInt64(littleEndian: bytes) & mask
    } else {
      for place in (start..<end).reversed() { word = word << 8 | UInt64(text[place]) }
    }
    return (word, word)
  }

  private static func isSame(
    _ text: UnsafeBufferPointer<UInt8>, _ left: Int, _ right: Int, _ length: Int
  ) -> Bool {
    text[left..<left + length].elementsEqual(text[right..<right + length])
  }
}
