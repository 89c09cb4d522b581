import Foundation
import Jetstream

/// A model that a change set is about, as it is and as it would be.
final class TentativeModel {
  /// The changes of one property by a change set.
  struct Write {
    let property: PropertySchema
    /// The fragments that change the property.
    fileprivate(set) var fragments: [Int]
    /// The value that was named last; nil if operations alone change the property.
    fileprivate(set) var assigned: JSONValue?
    /// The operations that come behind it.
    fileprivate(set) var operations: [PropertyOperation] = []
  }

  let uuid: UUID
  let schema: ClassSchema
  /// The model that there is: in the scope, or gone and not forgotten; nil for a new one.
  let current: (any HostedModel)?
  /// True if clients have the model now.
  let isShared: Bool
  /// The fragment that adds the model; nil if there is none.
  private(set) var addition: Int?
  /// True if there are fragments of the model.
  private(set) var isWritten = false
  private(set) var writes: [Write] = []
  /// The indices of the writes: a fragment may write any number of entries of a dictionary.
  private var places: [Place: Int] = [:]

  private struct Place: Hashable {
    let index: Int
    let entryKey: String?

    init(_ property: PropertySchema) { (index, entryKey) = (property.index, property.entryKey) }
  }

  init(_ uuid: UUID, _ schema: ClassSchema, current: (any HostedModel)?, isShared: Bool) {
    (self.uuid, self.schema) = (uuid, schema)
    (self.current, self.isShared) = (current, isShared)
  }

  /// Notes what a fragment writes.
  ///
  /// - Returns: false if it names a property that the class does not have.
  func take(_ fragment: SyncFragment, at index: Int) -> Bool {
    var isKnown = true
    isWritten = true
    if fragment.kind == .add { addition = index }
    for member in fragment.properties.members {
      guard let property = schema[wireName: member.key], property.isSynced else {
        isKnown = false
        continue
      }
      write(property, at: index) {
        $0.assigned = member.value
        $0.operations = []
      }
    }
    for entry in fragment.operations {
      guard let property = schema[wireName: entry.key], property.isSynced else {
        isKnown = false
        continue
      }
      write(property, at: index) { $0.operations += entry.operations }
    }
    return isKnown
  }

  private func write(
    _ property: PropertySchema, at index: Int, _ change: (inout Write) -> Void
  ) {
    if let place = place(of: property) {
      if writes[place].fragments.last != index { writes[place].fragments.append(index) }
      return change(&writes[place])
    }
    var write = Write(property: property, fragments: [index])
    change(&write)
    places[Place(property)] = writes.count
    writes.append(write)
  }

  private func place(of property: PropertySchema) -> Int? {
    places[Place(property)]
  }

  /// Returns the change of a property; nil if it stays as it is.
  func write(of property: PropertySchema) -> Write? { place(of: property).map { writes[$0] } }

  // MARK: Values

  /// Returns the value that a property has now; of a new model, its default.
  func oldValue(of property: PropertySchema) -> JSONValue {
    current?.currentJSON(of: property) ?? property.defaultValue
  }

  /// Returns the value that a property would have.
  func newValue(of property: PropertySchema) -> JSONValue {
    guard let write = write(of: property) else { return oldValue(of: property) }
    return newValue(by: write)
  }

  /// Returns the value that a change leads to.
  func newValue(by write: Write) -> JSONValue {
    let property = write.property
    guard !write.operations.isEmpty else {
      return write.assigned.map { property.normalized($0) ?? $0 } ?? oldValue(of: property)
    }
    let start = write.assigned ?? oldValue(of: property)
    if property.isCollection {
      var list = CollectionContent(start) ?? CollectionContent()
      list.apply(write.operations)
      return list.json
    }
    guard let range = property.counterRange else { return start }
    return PropertyOperation.apply(
      write.operations.filter { $0.model == nil }, to: start, within: range)
  }

  /// Returns the models that a property holds now, or would hold.
  func models(in property: PropertySchema, after: Bool) -> [UUID] {
    if property.kind == .dictionary {
      return entries(of: property, after: after).map(\.model)
    }
    let value = after ? newValue(of: property) : oldValue(of: property)
    return CollectionContent(value)?.elements ?? Self.model(in: value).map { [$0] } ?? []
  }

  /// Returns the model that the value of a reference names; nil if it names none.
  static func model(in value: JSONValue) -> UUID? {
    if case .string(let text) = value { UUID(wireText: text) } else { nil }
  }

  /// Returns the entries that a dictionary has now, or would have.
  func entries(of dictionary: PropertySchema, after: Bool) -> [(key: String, model: UUID)] {
    var models: [String: UUID] = [:]
    func note(_ entry: PropertySchema, _ value: JSONValue) {
      guard let key = entry.entryKey, entry.index == dictionary.index else { return }
      models[key] = Self.model(in: value)
    }
    for member in (current?.currentProperties() ?? JSONObject()).members {
      if let entry = schema[wireName: member.key] { note(entry, member.value) }
    }
    if after { for write in writes { note(write.property, newValue(by: write)) } }
    return models.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  /// Calls `body` with each model that a synced property would hold.
  func forEachNewChild(_ body: (UUID) -> Void) {
    for property in schema.properties where property.isSynced && property.kind != .plain {
      for uuid in models(in: property, after: true) { body(uuid) }
    }
  }
}
