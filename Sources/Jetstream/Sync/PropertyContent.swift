import Foundation

/// A property's value in the form in which replicas compare and change it: a collection is a list of UUIDs.
package enum PropertyContent: Sendable, Hashable {
  case json(JSONValue)
  case list([UUID])

  /// Treats an array of UUIDs as a collection, even if it is not one: that makes no difference to the result.
  init(_ json: JSONValue) {
    guard case .array(let elements) = json else {
      self = .json(json)
      return
    }
    var list: [UUID] = []
    list.reserveCapacity(elements.count)
    for case .string(let text) in elements {
      guard let uuid = UUID(wireText: text), uuid.wireText == text else { break }
      list.append(uuid)
    }
    self = list.count == elements.count ? .list(list) : .json(json)
  }

  package var json: JSONValue {
    switch self {
    case .json(let value): value
    case .list(let list): .array(list.map { .string($0.wireText) })
    }
  }

  /// Returns the value after some operations. A counter stays within `range`.
  func applying(_ operations: [PropertyOperation], within range: CounterRange) -> PropertyContent {
    guard case .list(var list) = self else {
      return .json(PropertyOperation.apply(operations, to: json, within: range))
    }
    PropertyOperation.apply(operations, to: &list)
    return .list(list)
  }

  /// Adds the UUIDs in the value to `result`.
  func collect(into result: inout Set<UUID>) {
    switch self {
    case .list(let list): result.formUnion(list)
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

/// The change that a change set makes to one property.
enum PendingChange {
  case assign(PropertyContent)
  /// Operations on a collection or a counter.
  ///
  /// - Parameters:
  ///   - value: the counter's value after the operations, for servers that do not support operations.
  ///   - range: the range of the counter.
  case operations([PropertyOperation], value: JSONValue?, range: CounterRange)
  /// A new value for a property that a rule merges, if the property no longer has the value `base` that it had when
  /// it was set.
  case merge(PropertyContent, base: PropertyContent, ModelSchema.Property)
  /// A value of a model that is put back; `base` is the value that it had then. See
  /// ``ModelSchema/Property/putBack(_:onto:base:)``.
  case putBack(PropertyContent, base: PropertyContent, ModelSchema.Property)

  func applied(to base: PropertyContent, asValue: Bool) -> PropertyContent {
    switch self {
    case .assign(let value): value
    case .operations(_, let value?, _) where asValue: .json(value)
    case .operations(let operations, _, let range): base.applying(operations, within: range)
    case .merge(let mine, let before, let property):
      Self.merge(mine, base, before: before, property)
    case .putBack(let mine, let before, let property):
      base == before
        ? mine
        : PropertyContent(property.putBack(mine.json, onto: base.json, base: before.json))
    }
  }

  private static func merge(
    _ mine: PropertyContent, _ theirs: PropertyContent, before: PropertyContent,
    _ property: ModelSchema.Property
  ) -> PropertyContent {
    if theirs == before { return mine }
    let value = property.merged(mine.json, onto: theirs.json, base: before.json)
    // The server would reject any other value.
    return property.accepts(value) ? PropertyContent(value) : mine
  }

  /// Returns the value after a server has accepted the change as it was sent.
  func accepted(on base: PropertyContent) -> PropertyContent {
    switch self {
    case .merge(let value, _, _), .putBack(let value, _, _): value
    case .assign, .operations: applied(to: base, asValue: false)
    }
  }

  func collect(into result: inout Set<UUID>) {
    switch self {
    case .assign(let value), .merge(let value, _, _), .putBack(let value, _, _):
      value.collect(into: &result)
    case .operations(let operations, _, _):
      for operation in operations { if let uuid = operation.model { result.insert(uuid) } }
    }
  }
}

extension RootRenaming {
  func callAsFunction(_ content: PropertyContent) -> PropertyContent {
    switch content {
    case .json(let value): .json(self(value))
    case .list(let list): .list(list.map { self($0) })
    }
  }
}

extension PendingChange {
  /// Returns the change with the root's new UUID.
  func renaming(_ renaming: RootRenaming) -> PendingChange {
    switch self {
    case .assign(let value): .assign(renaming(value))
    case .operations(let operations, let value, let range):
      .operations(
        operations.map { $0.renaming(renaming.old, to: renaming.new) }, value: value, range: range)
    case .merge(let mine, let base, let property):
      .merge(renaming(mine), base: renaming(base), property)
    case .putBack(let mine, let base, let property):
      .putBack(renaming(mine), base: renaming(base), property)
    }
  }
}
