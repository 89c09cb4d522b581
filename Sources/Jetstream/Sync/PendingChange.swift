import Foundation

/// The change that a change set makes to one property. All but assignments are boxed: most changes are assignments, and
/// a client may keep many of them.
enum PendingChange {
  case assign(PropertyContent)
  /// Operations on a collection or a counter.
  ///
  /// - Parameters:
  ///   - value: the counter's value after the operations, for servers that do not support operations.
  ///   - range: the range of the counter.
  indirect case operations([PropertyOperation], value: JSONValue?, range: CounterRange)
  /// A new value for a property that a rule merges, if the property no longer has the value `base` that it had when
  /// it was set.
  indirect case merge(PropertyContent, base: PropertyContent, ModelSchema.Property)
  /// A value of a model that is put back; `base` is the value that it had then. See
  /// ``ModelSchema/Property/putBack(_:onto:base:)``.
  indirect case putBack(PropertyContent, base: PropertyContent, ModelSchema.Property)

  func applied(to base: PropertyContent, asValue: Bool) -> PropertyContent {
    switch self {
    case .assign(let value): value
    case .operations(_, let value?, _) where asValue: .json(value)
    case .operations(let operations, _, let range): base.applying(operations, within: range)
    case .merge(let mine, let before, let property):
      Self.merge(mine, base, before: before, property)
    case .putBack(let mine, let before, let property):
      base.isWritten(as: before)
        ? mine
        : PropertyContent(property.putBack(mine.json, onto: base.json, base: before.json))
    }
  }

  private static func merge(
    _ mine: PropertyContent, _ theirs: PropertyContent, before: PropertyContent,
    _ property: ModelSchema.Property
  ) -> PropertyContent {
    if theirs.isWritten(as: before) { return mine }
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
    case .list(let list): .list(CollectionContent(list.elements.map { self($0) }))
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
