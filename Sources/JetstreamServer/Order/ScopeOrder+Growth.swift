import Foundation
import Jetstream

/// The growth of a scope by changes of models that it has, for the limits on its size and on the memory of the process.
extension ScopeOrder {
  /// The number of bytes by which a change set may make values longer, and the limit that it exceeds with more.
  struct Room {
    let bytes: Int
    let limit: ServerLimit
  }

  /// Returns the number of bytes by which the fragments of a draft would make values and collections longer, roughly;
  /// negative if they would make them shorter. Additions of new models do not count. Cost: O(n) in the fragments, in the
  /// values that they replace, and in the places of the models that they insert and remove.
  func growth(by fragments: [SyncFragment]) -> Int {
    var growth = Growth(of: content)
    for fragment in fragments { growth.add(fragment) }
    return growth.total
  }
}

/// The difference between what the properties of a scope have and what fragments leave in them, each counted once.
private struct Growth {
  /// A value of up to this number of bytes counts like a number: a property can always have one.
  private static let shortValue = 64
  /// The size of a reference to a model, in quotes and with a comma.
  private static let reference = 39

  /// The size of a value, before and after.
  private struct Sizes {
    let old: Int
    var new: Int
  }

  /// A model that fragments insert into a collection, or remove from it.
  private struct Member: Hashable {
    let collection: PropertyKey
    let model: UUID
  }

  private let content: any HostedContent
  private var values: [PropertyKey: Sizes] = [:]
  /// True for the models that are in a collection, before and after.
  private var members: [Member: (before: Bool, after: Bool)] = [:]
  private var holders: [UUID: Set<PropertyKey>] = [:]

  init(of content: any HostedContent) { self.content = content }

  var total: Int {
    let lengths = values.values.reduce(0) { $0 + $1.new - $1.old }
    return members.values.reduce(lengths) { sum, member in
      sum + Self.reference * ((member.after ? 1 : 0) - (member.before ? 1 : 0))
    }
  }

  mutating func add(_ fragment: SyncFragment) {
    let model = content.sharedModel(fragment.uuid)
    if model == nil, content.unknownModel(fragment.uuid) == nil { return }
    for (key, value) in fragment.properties {
      let name = PropertyKey(uuid: fragment.uuid, name: key)
      let property = model?.classSchema[wireName: key]
      let new = size(of: value, property, named: key)
      if values[name] != nil {
        values[name]!.new = new
      } else if let model, let property {
        let old = oldSize(of: property, of: model, named: key)
        values[name] = Sizes(old: old, new: new)
      } else {
        let old = content.unknownValue(name).map { size(of: $0, nil, named: key) } ?? 0
        values[name] = Sizes(old: old, new: new)
      }
    }
    for entry in fragment.operations {
      let collection = PropertyKey(uuid: fragment.uuid, name: entry.key)
      for operation in entry.operations { add(operation, to: collection) }
    }
  }

  private mutating func add(_ operation: PropertyOperation, to collection: PropertyKey) {
    let isIn: Bool
    switch operation {
    case .insert: isIn = true
    case .remove: isIn = false
    case .move, .add: return
    }
    guard let uuid = operation.model, let model = content.sharedModel(uuid) else { return }
    let member = Member(collection: collection, model: uuid)
    if members[member] == nil {
      let known = holders[uuid] ?? Set(content.holders(of: model))
      holders[uuid] = known
      let isHeld = known.contains(collection)
      members[member] = (isHeld, isHeld)
    }
    members[member]!.after = isIn
  }

  private func oldSize(
    of property: PropertySchema, of model: any HostedModel, named key: String
  ) -> Int {
    property.isCollection
      ? model.models(in: property).count * Self.reference
      : size(of: model.currentJSON(of: property), property, named: key)
  }

  /// Returns the size of a value.
  ///
  /// - Parameter property: the property; nil for one that the server does not know. Such a value counts with its name, which
  ///   the client has chosen as well.
  private func size(of value: JSONValue, _ property: PropertySchema?, named key: String) -> Int {
    // Without its quotes or brackets, as far as it is more than that of a short one.
    let length = max(0, value.roughSize - 2 - Self.shortValue)
    guard let property else { return key.utf8.count + Self.shortValue + length }
    return switch property.kind {
    case .plain: length
    case .collection: FragmentValidator.uuids(in: value).count * Self.reference
    case .reference:
      property.entryKey == nil || value == .null ? 0 : key.utf8.count + Self.reference
    case .dictionary: 0
    }
  }
}
