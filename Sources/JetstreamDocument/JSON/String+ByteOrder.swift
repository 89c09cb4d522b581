import Foundation

extension String {
  /// Returns true if the UTF-8 bytes of this string come before those of another one. `String`'s own order is another.
  package func precedesInBytes(_ other: String) -> Bool {
    let isBefore = utf8.withContiguousStorageIfAvailable { own in
      other.utf8.withContiguousStorageIfAvailable { other -> Bool in
        guard let first = own.baseAddress, let second = other.baseAddress else {
          return own.count < other.count
        }
        let order = memcmp(first, second, Swift.min(own.count, other.count))
        return order == 0 ? own.count < other.count : order < 0
      }
    }
    if let isBefore = isBefore ?? nil { return isBefore }
    return utf8.lexicographicallyPrecedes(other.utf8)
  }

  /// Returns true if both strings have the same UTF-8 bytes. `==` takes strings for equal that only look the same.
  package func hasBytes(of other: String) -> Bool {
    let isSame = utf8.withContiguousStorageIfAvailable { own in
      other.utf8.withContiguousStorageIfAvailable { other -> Bool in
        guard own.count == other.count else { return false }
        guard let first = own.baseAddress, let second = other.baseAddress else { return true }
        return memcmp(first, second, own.count) == 0
      }
    }
    return (isSame ?? nil) ?? utf8.elementsEqual(other.utf8)
  }
}

extension [String] {
  /// Returns the strings in the order of their UTF-8 bytes. Cost: O(n log n).
  ///
  /// Within a generic function, which is not specialized for other modules, sorting takes three times as long.
  package func sortedByBytes() -> [String] {
    ByteOrder.places(count) { self[$0] }.map { self[$0] }
  }
}

/// Sorting by the UTF-8 bytes of many keys: mostly the first bytes, which are one number, tell two keys apart.
enum ByteOrder {
  private struct Key {
    let start: UInt64
    let place: Int
  }

  /// Returns the places of keys in the order of their bytes; equal ones stay in their order. Cost: O(n log n).
  static func places(_ count: Int, _ key: (Int) -> String) -> [Int] {
    let keys = (0..<count).map { Key(start: start(of: key($0)), place: $0) }
    return keys.sorted { a, b in
      a.start == b.start ? key(a.place).precedesInBytes(key(b.place)) : a.start < b.start
    }.map(\.place)
  }

  /// Returns the first eight bytes, with zeros behind a shorter key, the first one at the top.
  private static func start(of key: String) -> UInt64 {
    var start: UInt64 = 0
    var shift: UInt64 = 64
    for byte in key.utf8 {
      shift -= 8
      start |= UInt64(byte) << shift
      if shift == 0 { break }
    }
    return start
  }
}
