import Foundation

/// Writes the fragments of one change set into a document.
struct RowWriter {
  let document: Document
  /// Finds rows that have left and may come back.
  let known: (UUID) -> Row?
  private(set) var outcome = Document.Outcome()
  /// The rows that the fragments add.
  private var created = RowIndex()
  /// Those of them that a property has held.
  private var referenced = RowIndex()
  /// The rows that a property has let go of.
  private var suspects: [Row] = []

  init(document: Document, known: @escaping (UUID) -> Row?) {
    self.document = document
    self.known = known
  }

  mutating func write(_ fragments: [SyncFragment]) {
    let additions = fragments.indices.filter { fragments[$0].kind == .add }
    created.reserve(additions.count)
    for at in additions { make(fragments[at], at) }
    referenced.reserve(created.count)
    document.reserve(created.count)
    for at in additions { write(fragments[at], at) }
    for at in fragments.indices where fragments[at].kind == .change { write(fragments[at], at) }
    letGo()
    for at in additions {
      let uuid = fragments[at].uuid
      guard let row = created[uuid], !document.has(row), referenced[uuid] == nil else { continue }
      fail(at, .noParent(className: fragments[at].className, model: uuid))
    }
  }

  private mutating func make(_ fragment: SyncFragment, _ at: Int) {
    if let row = find(fragment.uuid) {
      if !document.has(row) { dropEntries(of: row, notIn: fragment) }
      guard row.schema.wireName != fragment.className else { return }
      return fail(
        at,
        .classMismatch(
          model: fragment.uuid, className: row.schema.wireName, other: fragment.className))
    }
    guard let schema = document.schema[fragment.className] else {
      return fail(at, .unknownClass(className: fragment.className, model: fragment.uuid))
    }
    created.insert(Row.make(schema, fragment.uuid))
  }

  private mutating func write(_ fragment: SyncFragment, _ at: Int) {
    guard let row = find(fragment.uuid) else {
      if fragment.kind == .change {
        fail(at, .unknownModel(className: fragment.className, model: fragment.uuid))
      }
      return
    }
    if fragment.kind == .add, row.schema.wireName != fragment.className { return }
    for member in fragment.properties.members {
      guard let property = property(member.key, row, at) else { continue }
      write(member.value, to: property, of: row, at)
    }
    for entry in fragment.operations {
      guard let property = property(entry.key, row, at) else { continue }
      if property.isCollection {
        edit(property, of: row, entry.operations, at)
      } else {
        add(entry.operations, to: property, of: row, at)
      }
    }
  }

  /// Removes the entries that an addition does not name from a row that it may bring back. An addition names all that
  /// its model has, and a dictionary has no value by which it could say that there are no more.
  private func dropEntries(of row: Row, notIn addition: SyncFragment) {
    guard row.schema.wireName == addition.className else { return }
    for property in row.schema.properties where property.isSynced {
      guard case .dictionary(let models) = row[property], !models.isEmpty else { continue }
      var kept = models
      for (key, _) in models.entries
      where addition.properties[EntryName.text(of: key, in: property.wireName)] == nil {
        kept[key] = nil
      }
      row[property] = .dictionary(kept)
    }
  }

  private mutating func property(_ key: String, _ row: Row, _ at: Int) -> PropertySchema? {
    guard let property = row.schema[wireName: key] else {
      fail(
        at,
        .unknownProperty(className: row.schema.wireName, model: row.uuid, property: key))
      return nil
    }
    return property.isSynced ? property : nil
  }

  // MARK: Values

  private mutating func write(
    _ value: JSONValue, to property: PropertySchema, of row: Row, _ at: Int
  ) {
    switch property.kind {
    case .plain:
      guard let normal = property.normalized(value) else {
        fail(at, invalid(property, row))
        if let null = property.normalized(.null) { set(.value(null), property, row) }
        return
      }
      // The same value written in another way changes nothing.
      if !property.isSame(row[property].json, as: normal) { set(.value(normal), property, row) }
    case .reference:
      if value == .null { return set(.reference(nil), property, row) }
      guard let uuid = uuid(in: value) else { return fail(at, invalid(property, row)) }
      if child(uuid, property, row, at) != nil { set(.reference(uuid), property, row) }
    case .dictionary:
      // No name in a fragment is that of a whole dictionary.
      fail(at, invalid(property, row))
    case .collection:
      guard case .array(let elements) = value else { return fail(at, invalid(property, row)) }
      var list: [UUID] = []
      list.reserveCapacity(elements.count)
      var seen: Set<UUID> = []
      for element in elements {
        guard let uuid = uuid(in: element) else {
          fail(at, invalid(property, row))
          continue
        }
        guard child(uuid, property, row, at) != nil, seen.insert(uuid).inserted else { continue }
        list.append(uuid)
      }
      set(.collection(CollectionContent(list)), property, row)
    }
  }

  private mutating func edit(
    _ property: PropertySchema, of row: Row, _ operations: [PropertyOperation], _ at: Int
  ) {
    var applied: [PropertyOperation] = []
    applied.reserveCapacity(operations.count)
    for operation in operations {
      switch operation {
      case .insert(let uuid, _):
        if child(uuid, property, row, at) != nil { applied.append(operation) }
      case .move, .remove: applied.append(operation)
      case .add: fail(at, invalid(property, row))
      }
    }
    row.apply(applied, to: property)
    if document.has(row) { noteMembers(after: applied, on: property, of: row) }
  }

  /// Takes in the rows that a collection of a row in the document holds after operations, and suspects those that it let go
  /// of. The holders tell which it held before: the other elements are not looked at.
  private mutating func noteMembers(
    after operations: [PropertyOperation], on property: PropertySchema, of row: Row
  ) {
    let holder = RowHolders.Holder(row, property)
    var isMember: [UUID: Bool] = [:]
    for operation in operations {
      switch operation {
      case .insert(let uuid, _): isMember[uuid] = true
      case .remove(let uuid): isMember[uuid] = false
      case .move, .add: break
      }
    }
    for operation in operations {
      guard let uuid = operation.model, let isIn = isMember.removeValue(forKey: uuid),
        let child = find(uuid), child.holders.contains(holder) != isIn
      else { continue }
      if isIn {
        child.holders.insert(holder)
        if !document.has(child) { takeIn(child) }
      } else {
        child.holders.remove(holder)
        suspects.append(child)
      }
    }
  }

  private mutating func add(
    _ operations: [PropertyOperation], to property: PropertySchema, of row: Row, _ at: Int
  ) {
    let additions = operations.filter { $0.model == nil }
    if additions.count < operations.count { fail(at, invalid(property, row)) }
    guard let range = property.counterRange else { return fail(at, invalid(property, row)) }
    let sum = PropertyOperation.apply(additions, to: row[property].json, within: range)
    set(.value(sum), property, row)
  }

  private func uuid(in value: JSONValue) -> UUID? {
    if case .string(let text) = value { UUID(wireText: text) } else { nil }
  }

  /// Returns the row that a property is to hold. Nil, after noting an error, if it cannot hold it.
  private mutating func child(
    _ uuid: UUID, _ property: PropertySchema, _ row: Row, _ at: Int
  ) -> Row? {
    guard let child = find(uuid) else {
      fail(
        at,
        .unknownReference(
          className: row.schema.wireName, model: row.uuid, property: property.wireName,
          missing: uuid.wireText))
      return nil
    }
    guard property.canHold(child.schema) else {
      fail(at, invalid(property, row))
      return nil
    }
    if created[uuid] != nil { referenced.insert(child) }
    return child
  }

  /// Gives a property its content. Those that a row in the document no longer holds are suspects, those that it holds
  /// from now on come in at once, even if another fragment lets go of them again.
  private mutating func set(_ content: RowContent, _ property: PropertySchema, _ row: Row) {
    let old = row[property]
    row[property] = content
    guard property.kind != .plain, document.has(row), old != content else { return }
    let holder = RowHolders.Holder(row, property)
    let (gone, come) = old.differences(to: content)
    for uuid in gone {
      guard let child = find(uuid) else { continue }
      // The dictionary is one holder, whatever the number of entries by which it holds the model.
      if property.entryKey != nil, row.hasEntry(uuid, in: property) { continue }
      child.holders.remove(holder)
      suspects.append(child)
    }
    for uuid in come {
      guard let child = find(uuid) else { continue }
      child.holders.insert(holder)
      if !document.has(child) { takeIn(child) }
    }
  }

  // MARK: Coming and going

  /// Takes in a row that the document holds now, with those below it, depth first.
  private mutating func takeIn(_ top: Row) {
    document.insert(top)
    var open = [top]
    while let row = open.popLast() {
      outcome.entered.append(row)
      let bottom = open.count
      row.forEachChild { uuid, property in
        guard let child = find(uuid) else { return }
        child.holders.insert(.init(row, property))
        if document.has(child) { return }
        document.insert(child)
        open.append(child)
      }
      open[bottom...].reverse()
    }
  }

  /// Takes out the rows that the root no longer leads to.
  private mutating func letGo() {
    var reach = RowReach(root: document.root)
    while let row = suspects.popLast() {
      guard document.has(row), !reach.leads(to: row) else { continue }
      document.remove(row)
      // The root does not lead to those that hold it, either.
      row.holders = RowHolders()
      outcome.left.append(row)
      row.forEachChild { uuid, property in
        guard let child = document[uuid] else { return }
        child.holders.remove(.init(row, property))
        suspects.append(child)
      }
    }
  }

  private func find(_ uuid: UUID) -> Row? { document[uuid] ?? created[uuid] ?? known(uuid) }

  private mutating func fail(_ at: Int, _ error: ScopeError) { outcome.errors.append((at, error)) }

  private func invalid(_ property: PropertySchema, _ row: Row) -> ScopeError {
    .invalidValue(
      className: row.schema.wireName, model: row.uuid, property: property.wireName,
      expected: property.type.description)
  }
}
