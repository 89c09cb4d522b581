import Foundation

/// Writes the fragments of one change set into a document.
///
/// First it makes the rows that the change set adds, and writes to them: nothing in the document leads to them yet, and nothing
/// in it changes. ``link()`` does the rest.
struct RowWriter {
  let document: Document
  /// Finds rows that have left and may come back.
  let known: (UUID) -> Row?
  let fragments: [SyncFragment]
  var outcome = Document.Outcome()
  /// The rows that the fragments add.
  var created = CreatedRows()
  /// The class of the last one.
  private var createdSchema: ClassSchema?
  /// The rows that a property has let go of.
  var suspects: [Row] = []
  /// The rows below which ``takeIn(_:)`` has not looked yet.
  var open: [Row] = []

  /// The positions of the additions that were looked at.
  private var additions: [Int] = []
  /// The row of each of them; nil for one that has failed, and for one that is left to ``link()``.
  private var rows: [Row?] = []
  /// The places, among the additions, of those of rows that are in the document or may come back. Their rows change when
  /// nothing comes in between any more.
  private var later: [Int] = []
  /// The number of additions that were written, but for those that are left to ``link()``.
  private var writtenCount = 0
  /// The operations on collections that were looked at before ``link()``, by the position of the fragment and the key.
  var edits: [Int: [String: CollectionEdit]] = [:]

  init(_ fragments: [SyncFragment], document: Document, known: @escaping (UUID) -> Row?) {
    self.document = document
    self.known = known
    self.fragments = fragments
  }

  /// Makes room for the rows of all additions.
  mutating func expectAdditions() {
    let fragments = fragments
    let count = fragments.count { $0.kind == .add }
    created.reserve(count)
    additions.reserveCapacity(count)
    rows.reserveCapacity(count)
  }

  /// Makes the rows of the additions in a part of the fragments. Each part begins where the last one ended.
  mutating func make(_ part: Range<Int>) {
    // The fragments are read where they stand: each copy is retained field by field.
    let fragments = fragments
    for at in part where fragments[at].kind == .add {
      let uuid = fragments[at].uuid
      if document[uuid] != nil || created[uuid] == nil && known(uuid) != nil {
        later.append(additions.count)
        rows.append(nil)
      } else {
        rows.append(make(fragments.span[at], at))
      }
      additions.append(at)
    }
  }

  /// Writes the additions in a part of the fragments to the rows that were made for them, once all were made. Each part
  /// begins where the last one ended.
  mutating func writeAdditions(_ part: Range<Int>) {
    let fragments = fragments
    for at in part where fragments[at].kind == .add {
      if let row = rows[writtenCount] { write(fragments.span[at], to: row, at) }
      writtenCount += 1
    }
  }

  /// Changes the document.
  mutating func link() {
    let fragments = fragments
    document.reserve(created.count)
    outcome.entered.reserveCapacity(created.count)
    for place in later { rows[place] = make(fragments.span[additions[place]], additions[place]) }
    for place in later {
      if let row = rows[place] {
        write(fragments.span[additions[place]], to: row, additions[place])
      }
    }
    for at in fragments.indices where fragments[at].kind == .change {
      guard let row = find(fragments[at].uuid) else {
        fail(at, .unknownModel(className: fragments[at].className, model: fragments[at].uuid))
        continue
      }
      write(fragments.span[at], to: row, at)
    }
    letGo()
    var areAllIn = true
    for (place, at) in additions.enumerated() {
      if let row = rows[place], isIn(row) { continue }
      areAllIn = false
      let uuid = fragments[at].uuid
      guard let row = created.unreferenced(uuid), !isIn(row) else { continue }
      fail(at, .noParent(className: fragments[at].className, model: uuid))
    }
    // Each of them has come in, and each row that comes in is noted as often as it does.
    outcome.onlyAdds =
      areAllIn && outcome.errors.isEmpty && outcome.left.isEmpty
      && outcome.entered.count == created.count
  }

  /// Returns the row that an addition is written to. Nil, after noting an error, if there is none.
  private mutating func make(_ fragment: SyncFragment, _ at: Int) -> Row? {
    let uuid = fragment.uuid
    let present = document[uuid]
    if let row = present ?? created[uuid] ?? known(uuid) {
      if present == nil { dropEntries(of: row, notIn: fragment) }
      if row.schema.wireName == fragment.className { return row }
      fail(
        at,
        .classMismatch(model: uuid, className: row.schema.wireName, other: fragment.className))
      return nil
    }
    if createdSchema?.wireName != fragment.className {
      createdSchema = document.schema[fragment.className]
    }
    guard let schema = createdSchema else {
      fail(at, .unknownClass(className: fragment.className, model: uuid))
      return nil
    }
    let row = Row.make(schema, uuid)
    created.append(row)
    return row
  }

  private mutating func write(_ fragment: SyncFragment, to row: Row, _ at: Int) {
    reserveEntries(of: row, for: fragment)
    for member in fragment.properties.members {
      guard let property = property(member.key, row, at) else { continue }
      write(member.value, to: property, of: row, at)
    }
    for entry in fragment.operations {
      guard let property = property(entry.key, row, at) else { continue }
      if property.isCollection {
        let known = edits.isEmpty ? nil : edits[at]?.removeValue(forKey: entry.key)
        link(known ?? edit(property, of: row, entry.operations, at), property, row)
      } else {
        add(entry.operations, to: property, of: row, at)
      }
    }
  }

  /// Makes room for the entries that a fragment with many values names.
  private func reserveEntries(of row: Row, for fragment: SyncFragment) {
    guard row.schema.hasDictionaries, fragment.properties.count > 16 else { return }
    for property in row.schema.holding where property.kind == .dictionary {
      let count = fragment.properties.members.count {
        EntryName.isEntry($0.key, of: property.wireName)
      }
      row.reserve(count, in: property)
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

  mutating func property(_ key: String, _ row: Row, _ at: Int) -> PropertySchema? {
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
        if let null = property.normalized(.null) { row[property] = .value(null) }
        return
      }
      // The same value written in another way changes nothing.
      if !property.isSame(row[property].json, as: normal) { row[property] = .value(normal) }
    case .reference:
      if case .null = value { return set(nil, property, row) }
      guard let uuid = uuid(in: value) else { return fail(at, invalid(property, row)) }
      if let child = child(uuid, property, row, at) { set(child, property, row) }
    case .dictionary:
      // No name in a fragment is that of a whole dictionary.
      fail(at, invalid(property, row))
    case .collection:
      guard case .array(let elements) = value else { return fail(at, invalid(property, row)) }
      var list = UUIDList(capacity: elements.count)
      for element in elements {
        guard let uuid = uuid(in: element) else {
          fail(at, invalid(property, row))
          continue
        }
        if child(uuid, property, row, at) != nil { list.insert(uuid) }
      }
      set(CollectionContent(Array(list.elements)), property, row)
    }
  }

  private mutating func add(
    _ operations: [PropertyOperation], to property: PropertySchema, of row: Row, _ at: Int
  ) {
    let additions = operations.filter { $0.model == nil }
    if additions.count < operations.count { fail(at, invalid(property, row)) }
    guard let range = property.counterRange else { return fail(at, invalid(property, row)) }
    row[property] = .value(
      PropertyOperation.apply(additions, to: row[property].json, within: range))
  }

  private func uuid(in value: JSONValue) -> UUID? {
    if case .string(let text) = value { UUID(wireText: text) } else { nil }
  }

  /// Returns the row that a property is to hold. Nil, after noting an error, if it cannot hold it.
  mutating func child(
    _ uuid: UUID, _ property: PropertySchema, _ row: Row, _ at: Int
  ) -> Row? {
    let new = created.index(of: uuid)
    guard let child = new.map({ created[$0] }) ?? document[uuid] ?? known(uuid) else {
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
    if let new { created.isReferenced[new] = true }
    return child
  }

  /// Returns the row of a model that is in the document, is added, or has left. No two of them are different.
  mutating func find(_ uuid: UUID) -> Row? {
    created[uuid] ?? document[uuid] ?? known(uuid)
  }

  mutating func fail(_ at: Int, _ error: ScopeError) { outcome.errors.append((at, error)) }

  func invalid(_ property: PropertySchema, _ row: Row) -> ScopeError {
    .invalidValue(
      className: row.schema.wireName, model: row.uuid, property: property.wireName,
      expected: property.type.description)
  }
}
