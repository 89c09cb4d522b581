import Foundation

/// A property's value as replicas compare it and work on it: a collection as the UUIDs in it.
package enum PropertyContent: Sendable, Hashable {
  case json(JSONValue)
  case list([UUID])

  /// Takes an array of UUIDs for a collection; if it is none, that makes no difference to anybody.
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

  /// The value after some operations: those of a counter stay within `range`.
  func applying(_ operations: [PropertyOperation], within range: CounterRange) -> PropertyContent {
    guard case .list(var list) = self else {
      return .json(PropertyOperation.apply(operations, to: json, within: range))
    }
    PropertyOperation.apply(operations, to: &list)
    return .list(list)
  }

  /// The UUIDs in it.
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

/// What a change set does to one property.
enum PendingChange {
  case assign(PropertyContent)
  /// - Parameters:
  ///   - value: what a counter was then, which is what counts towards peers that know no operations.
  ///   - range: what a counter can be.
  case operations([PropertyOperation], value: JSONValue?, range: CounterRange)
  /// A value for a property that a rule merges, if it is not what it was when the value was set.
  case merge(PropertyContent, base: PropertyContent, ModelSchema.Property)
  /// A value of a model that is put back, which had the value `base` when it was; see
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
    // The server will reject anything else.
    return property.accepts(value) ? PropertyContent(value) : mine
  }

  /// What a server makes of it that says that it has done what it was sent.
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
  /// The change with the root's new name.
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
