import Foundation

/// The identity of one property of one model.
package struct PropertyKey: Hashable, Sendable {
  package let uuid: UUID
  package let name: String

  @inlinable
  package init(uuid: UUID, name: String) {
    self.uuid = uuid
    self.name = name
  }

  // Written out so that the compiler can inline them into tables of other targets.
  @inlinable
  package static func == (a: PropertyKey, b: PropertyKey) -> Bool {
    a.uuid == b.uuid && a.name == b.name
  }

  @inlinable
  package func hash(into hasher: inout Hasher) {
    hasher.combine(uuid)
    hasher.combine(name)
  }
}
