import Foundation
import Jetstream

/// The growth of a scope by the changes of a client, for the limits on its size and on the memory of the process.
extension ScopeOrder {
  /// The number of bytes by which a change set may make a scope larger, and the limit that it exceeds with more.
  struct Room {
    let bytes: Int
    let limit: ServerLimit
  }

  /// The number of bytes by which fragments would make a scope larger, roughly; negative if they would make it smaller.
  struct Growth {
    /// The number of bytes by which they would make the values and collections of models longer that the scope has, by
    /// model.
    fileprivate(set) var lengths: [UUID: Int] = [:]
    /// The size of the models that would come in: those that they add, and those that have left and that they name, with
    /// all below them.
    fileprivate(set) var arrivals = 0
    /// The number of those that have left: all were looked at.
    fileprivate(set) var effort = 0

    var total: Int { lengths.values.reduce(arrivals, +) }

    /// Leaves out the models for which `isGone` returns true.
    mutating func leaveOut(where isGone: (UUID) -> Bool) {
      lengths = lengths.filter { !isGone($0.key) }
    }
  }

  /// Returns the growth by the fragments of a draft. Cost: O(n) in the fragments, in the values that they replace, in the
  /// places of the models that they insert and remove, and in the models that come in.
  func growth(by fragments: [SyncFragment]) -> Growth {
    var comparison = growthComparison
    for fragment in fragments where fragment.kind == .add { comparison.expect(fragment) }
    for fragment in fragments { comparison.add(fragment) }
    return comparison.growth
  }

  /// A comparison that has not begun. It is told all additions first, and then all fragments.
  var growthComparison: GrowthComparison { GrowthComparison(of: content, memory: self) }
}

/// The difference between what the properties of a scope have and what fragments leave in them, each counted once.
struct GrowthComparison {
  /// A value of up to this number of bytes counts like a number: a property can always have one.
  private static let shortValue = 64
  /// The size of a reference to a model, in quotes and with a comma.
  private static let reference = FragmentValidator.referenceBytes

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
  private let memory: any ContentMemory
  private var values: [PropertyKey: Sizes] = [:]
  /// True for the models that are in a collection, before and after.
  private var members: [Member: (before: Bool, after: Bool)] = [:]
  private var holders: [UUID: Set<PropertyKey>] = [:]
  /// The values that fragments give to properties which the server does not know.
  private var unknownValues: [PropertyKey: JSONValue] = [:]
  /// The UUIDs in such properties, with what operations have inserted and removed so far; nil for a value that is no array
  /// of UUIDs, which operations leave as it is.
  private var unknownLists: [PropertyKey: Set<UUID>?] = [:]
  /// The models that come in, each counted once.
  private var arrived: Set<UUID> = []
  /// The models without an object that the scope has.
  private let kept: Set<UUID>
  private var arrivals = 0
  private var effort = 0

  init(of content: any HostedContent, memory: any ContentMemory) {
    (self.content, self.memory) = (content, memory)
    kept = content.unknownModelUUIDs()
  }

  var growth: ScopeOrder.Growth {
    var growth = ScopeOrder.Growth()
    (growth.arrivals, growth.effort) = (arrivals, effort)
    for (name, sizes) in values { growth.lengths[name.uuid, default: 0] += sizes.new - sizes.old }
    for (member, isIn) in members where isIn.before != isIn.after {
      growth.lengths[member.collection.uuid, default: 0] +=
        isIn.after ? Self.reference : -Self.reference
    }
    return growth
  }

  /// Notes an addition, whose model counts with its fragments.
  mutating func expect(_ addition: SyncFragment) {
    if !has(addition.uuid) { arrived.insert(addition.uuid) }
  }

  private func has(_ uuid: UUID) -> Bool {
    content.sharedModel(uuid) != nil || kept.contains(uuid)
  }

  mutating func add(_ fragment: SyncFragment) {
    bringBack(by: fragment)
    guard has(fragment.uuid) else {
      arrivals += fragment.roughSize
      if fragment.kind == .add { bringBackRest(of: fragment) }
      return
    }
    let model = content.sharedModel(fragment.uuid)
    for (key, value) in fragment.properties {
      let name = PropertyKey(uuid: fragment.uuid, name: key)
      let property = model?.classSchema[wireName: key]
      let new = size(of: value, property, named: key)
      if property == nil { (unknownValues[name], unknownLists[name]) = (value, nil) }
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
      let name = PropertyKey(uuid: fragment.uuid, name: entry.key)
      if model?.classSchema[wireName: entry.key] == nil {
        add(entry.operations, toUnknown: name)
      } else {
        for operation in entry.operations { add(operation, to: name) }
      }
    }
  }

  // MARK: Models that come back

  private mutating func bringBack(by fragment: SyncFragment) {
    content.forEachModel(namedBy: fragment) { bringBack($0) }
  }

  /// Counts what a model that has left brings back beside the properties that its addition names: it keeps their values,
  /// and the models that they hold.
  private mutating func bringBackRest(of addition: SyncFragment) {
    guard let model = memory.departed(addition.uuid) else { return }
    for (key, value) in model.currentProperties() where addition.properties[key] == nil {
      guard let property = model.classSchema[wireName: key] else { continue }
      arrivals += key.utf8.count + value.roughSize
      if property.kind == .plain { continue }
      for uuid in FragmentValidator.uuids(in: value) { bringBack(uuid) }
    }
  }

  /// Counts a model that has left, with those below it.
  private mutating func bringBack(_ uuid: UUID) {
    var open = [uuid]
    while let uuid = open.popLast() {
      if has(uuid) || arrived.contains(uuid) { continue }
      if let model = memory.departed(uuid) {
        arrivals += model.additionBytes
        content.forEachChild(of: model) { open.append($0) }
      } else if let model = content.unknownModel(uuid) {
        arrivals += model.roughSize
        content.forEachModel(namedBy: model) { open.append($0) }
      } else {
        continue
      }
      arrived.insert(uuid)
      effort += 1
    }
  }

  // MARK: Operations

  private mutating func add(_ operation: PropertyOperation, to collection: PropertyKey) {
    let isIn: Bool
    switch operation {
    case .insert: isIn = true
    case .remove: isIn = false
    case .move, .add: return
    }
    guard let uuid = operation.model else { return }
    let member = Member(collection: collection, model: uuid)
    if members[member] == nil {
      let known =
        holders[uuid] ?? content.sharedModel(uuid).map { Set(content.holders(of: $0)) } ?? []
      holders[uuid] = known
      let isHeld = known.contains(collection)
      members[member] = (isHeld, isHeld)
    }
    members[member]!.after = isIn
  }

  private mutating func add(_ operations: [PropertyOperation], toUnknown name: PropertyKey) {
    let value = unknownValues[name] ?? content.unknownValue(name)
    let size = value.map { self.size(of: $0, nil, named: name.name) } ?? 0
    var sizes = values[name] ?? Sizes(old: size, new: size)
    if value == nil, sizes.new == 0 { sizes.new = name.name.utf8.count + Self.shortValue }
    var list: Set<UUID>?
    if let known = unknownLists[name] {
      list = known
    } else {
      list = value.map { CollectionContent($0).map { Set($0.elements) } } ?? []
    }
    for operation in operations {
      switch operation {
      case .insert(let uuid, _):
        if list?.insert(uuid).inserted == true { sizes.new += Self.reference }
      case .remove(let uuid):
        if list?.remove(uuid) != nil { sizes.new -= Self.reference }
      case .move, .add: break
      }
    }
    values[name] = sizes
    unknownLists[name] = .some(list)
  }

  // MARK: Sizes

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

extension HostedModel {
  /// The approximate size of the model in a full state.
  var additionBytes: Int {
    SyncFragment(
      .add, uuid: uuid, className: wireClassName, properties: currentProperties()
    ).roughSize
  }
}
