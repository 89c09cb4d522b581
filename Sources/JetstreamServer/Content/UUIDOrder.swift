import Foundation

extension Array {
  /// Returns the elements in the order of their UUIDs, each of which one element has.
  ///
  /// It compares pairs of numbers: a change set may bring back all models of a scope, and to compare two UUIDs, byte by byte,
  /// takes many times as long.
  func sorted(byUUID uuid: (Element) -> UUID) -> [Element] {
    if count < 2 { return self }
    let keys = indices.map { at -> (high: UInt64, low: UInt64, at: Int) in
      // Both are sixteen bytes.
      let halves = unsafeBitCast(uuid(self[at]).uuid, to: (UInt64, UInt64).self)
      return (halves.0.bigEndian, halves.1.bigEndian, at)
    }
    return keys.sorted { ($0.high, $0.low) < ($1.high, $1.low) }.map { self[$0.at] }
  }
}
