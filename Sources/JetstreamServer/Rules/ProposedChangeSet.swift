import Foundation
import Jetstream

/// A client's change set before it is applied, for ``ScopeRules/review(_:)``.
///
/// ```swift
/// rules.review { changes in
///   if changes.fragments.count > 50 { throw WireError.rejected("Too much at once") }
///   for (index, fragment) in changes.fragments.enumerated() where fragment.className == "Message" {
///     guard case .string(let text)? = fragment.properties["text"] else { continue }
///     changes.set("text", to: .string(censored(text)), at: index)
///   }
/// }
/// ```
public struct ProposedChangeSet {
  /// The session of the client.
  public let session: SessionInfo
  /// The fragments as the client has sent them, each with the class of its model, and with the values that
  /// ``set(_:to:at:)`` has given since. Those that cannot be applied are among them, and are rejected in any case.
  public private(set) var fragments: [SyncFragment]
  /// True if all fragments are applied or none.
  public let isAtomic: Bool
  private(set) var objections: [Int: WireError] = [:]
  /// The fragment whose rejection causes that of all others; nil if the change set is not rejected as a whole.
  private(set) var cause: Int?

  init(_ fragments: [SyncFragment], isAtomic: Bool, of session: SessionInfo) {
    (self.fragments, self.isAtomic, self.session) = (fragments, isAtomic, session)
  }

  /// Rejects the fragment at an index; its client gets the reason. With an atomic change set, all fragments are rejected.
  public mutating func reject(at index: Int, _ reason: String) {
    precondition(fragments.indices.contains(index), "The change set has no fragment at \(index).")
    objections[index] = objections[index] ?? .rejected(reason)
  }

  /// Gives a property that the fragment at an index names another value. The client is told of it with the answer. A value
  /// that does not fit the property rejects the fragment.
  public mutating func set(_ property: String, to value: JSONValue, at index: Int) {
    precondition(
      fragments[index].properties[property] != nil,
      "The fragment at \(index) does not name a value of '\(property)'.")
    fragments[index].properties[property] = value
  }

  /// Rejects all fragments that are not rejected yet.
  mutating func reject(with error: WireError) {
    cause = fragments.indices.first { objections[$0] == nil }
    for index in fragments.indices { objections[index] = objections[index] ?? error }
  }
}
