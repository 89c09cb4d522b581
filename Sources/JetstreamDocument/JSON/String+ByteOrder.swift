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
  package func sortedByBytes() -> [String] { sorted { $0.precedesInBytes($1) } }
}
