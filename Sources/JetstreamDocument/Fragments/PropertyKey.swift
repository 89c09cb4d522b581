import Foundation

/// The identity of one property of one model.
package struct PropertyKey: Hashable, Sendable {
  package let uuid: UUID
  package let name: String

  package init(uuid: UUID, name: String) {
    self.uuid = uuid
    self.name = name
  }
}
