import Foundation

/// A property's value in the form in which replicas compare and change it: a collection is a list of UUIDs.
package enum PropertyContent: Sendable, Hashable {
  case json(JSONValue)
  case list(CollectionContent)

  /// Treats an array of UUIDs as a collection, even if it is not one: that makes no difference to the result.
  package init(_ json: JSONValue) {
    self = CollectionContent(exactly: json).map { .list($0) } ?? .json(json)
  }

  package var json: JSONValue {
    switch self {
    case .json(let value): value
    case .list(let list): list.json
    }
  }

  /// Returns the value after some operations. A counter stays within `range`.
  package func applying(
    _ operations: [PropertyOperation], within range: CounterRange
  ) -> PropertyContent {
    guard case .list(var list) = self else {
      return .json(PropertyOperation.apply(operations, to: json, within: range))
    }
    list.apply(operations)
    return .list(list)
  }

  /// Adds the UUIDs in the value to `result`.
  package func collect(into result: inout Set<UUID>) {
    switch self {
    case .list(let list): result.formUnion(list.elements)
    case .json(let value): Self.collect(value, into: &result)
    }
  }

  private static func collect(_ value: JSONValue, into result: inout Set<UUID>) {
    switch value {
    case .string(let text): if let uuid = UUID(wireText: text) { result.insert(uuid) }
    case .array(let elements): for element in elements { collect(element, into: &result) }
    default: break
    }
  }
}

extension PropertyContent {
  /// Returns true if both are written as the same JSON, byte for byte. Cost: O(n).
  package func isWritten(as other: PropertyContent) -> Bool {
    switch (self, other) {
    case (.list(let a), .list(let b)): a == b
    default: json.isWritten(as: other.json)
    }
  }
}
