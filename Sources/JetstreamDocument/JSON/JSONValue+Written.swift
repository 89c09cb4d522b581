import Foundation

/// Comparing values by the text that they are written as.
///
/// `==` compares strings as Swift does: two texts that look the same but have different bytes are equal. Replicas that
/// treat one of them as the other do not have the same canonical JSON any more. So values are compared by their text
/// wherever it matters whether one has changed.
extension JSONValue {
  /// Returns true if both values have the same canonical text, byte for byte: strings of different bytes are different,
  /// and numbers are the same whatever their type. Cost: O(n).
  package func isWritten(as other: JSONValue) -> Bool {
    switch (self, other) {
    case (.null, .null): true
    case (.bool(let a), .bool(let b)): a == b
    case (.integer(let a), .integer(let b)): a == b
    case (.unsigned(let a), .unsigned(let b)): a == b
    case (.double(let a), .double(let b)) where a.isFinite && b.isFinite: a == b
    case (.float(let a), .float(let b)) where a.isFinite && b.isFinite: a == b
    case (.string(let a), .string(let b)): a.hasBytes(of: b)
    case (.array(let a), .array(let b)):
      a.count == b.count && zip(a, b).allSatisfy { $0.isWritten(as: $1) }
    case (.object(let a), .object(let b)):
      a.count == b.count
        && zip(a.membersByKey, b.membersByKey).allSatisfy { own, other in
          own.key.hasBytes(of: other.key) && own.value.isWritten(as: other.value)
        }
    case (.bool, _), (_, .bool), (.string, _), (_, .string), (.array, _), (_, .array),
      (.object, _), (_, .object):
      false
    // Numbers of different types, and null, as which those are written that are not finite.
    default: canonicalBytes == other.canonicalBytes
    }
  }

  private var canonicalBytes: [UInt8] {
    var bytes: [UInt8] = []
    writeCanonical(to: &bytes)
    return bytes
  }
}

extension JSONObject {
  /// The members in the order of the UTF-8 bytes of their keys. Cost: O(n log n), or O(n) if that is their order.
  var membersByKey: [Member] {
    isSortedByKey
      ? members : ByteOrder.places(members.count) { members[$0].key }.map { members[$0] }
  }
}

extension JSONValue? {
  /// Returns true if both are nil, or values with the same canonical text.
  package func isWritten(as other: JSONValue?) -> Bool {
    switch (self, other) {
    case (nil, nil): true
    case (let value?, let other?): value.isWritten(as: other)
    default: false
    }
  }
}
