import Foundation
import Jetstream

/// Comparing what was applied with what was submitted.
extension SyncFragment {
  /// Returns true if an applied fragment equals the submitted one to the letter. A value that is equal only as the property's
  /// type reads it, such as a rounded number, is sent back to its writer: replicas are equal byte for byte.
  func isSame(as submitted: SyncFragment) -> Bool {
    guard uuid == submitted.uuid, kind == submitted.kind, operations == submitted.operations,
      properties.count == submitted.properties.count
    else { return false }
    let values = submitted.properties
    return properties.members.allSatisfy { member in
      values[member.key]?.isWritten(as: member.value) ?? false
    }
  }

  /// Returns true if an applied fragment, which equals the submitted one, has the same text.
  func hasSameText(as submitted: SyncFragment) -> Bool {
    submitted.bases.isEmpty && className.hasBytes(of: submitted.className)
      && zip(properties.members, submitted.properties.members).allSatisfy {
        $0.key.utf8.elementsEqual($1.key.utf8) && !$0.value.hasObject
      }
  }
}

extension [SyncFragment] {
  /// Returns true if the applied fragments equal the submitted ones to the letter.
  func areSame(as submitted: [SyncFragment]) -> Bool {
    areAll(submitted) { $0.isSame(as: $1) }
  }

  /// Returns true if the applied fragments, which equal those of the submitted ones that were accepted, are all of them and
  /// have the same text.
  func haveSameText(as submitted: [SyncFragment]) -> Bool {
    areAll(submitted) { $0.hasSameText(as: $1) }
  }

  @inline(__always)
  private func areAll(
    _ others: [SyncFragment], _ body: (SyncFragment, SyncFragment) -> Bool
  ) -> Bool {
    guard count == others.count else { return false }
    // They are read where they stand: each copy would be retained field by field.
    let (own, others) = (span, others.span)
    for at in own.indices where !body(own[at], others[at]) { return false }
    return true
  }
}

extension JSONValue {
  /// True if the value has members in some order.
  var hasObject: Bool {
    switch self {
    case .object: true
    case .array(let elements): elements.contains(where: \.hasObject)
    default: false
    }
  }
}
