import Foundation

extension StringProtocol {
  /// Returns true if the UTF-8 bytes of this string come before those of another one. `String`'s own order is another.
  package func precedesInBytes(_ other: some StringProtocol) -> Bool {
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
}
