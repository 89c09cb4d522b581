import Foundation

/// The content of a scope without model objects: a row for each model, below a root.
///
/// It agrees with what a `Scope` makes of the same fragments. A row is in the document while a synced property of
/// another row in it, or a chain of them, leads from the root to it. A row that has left keeps its contents, as long
/// as it is held, and comes back with them when a fragment names it and ``apply(_:known:)`` is told of it.
///
/// It does no I/O, and has no observers: each input returns what has changed. Not thread-safe.
package final class Document {
  /// The changes that fragments have made to a document.
  package struct Outcome {
    /// The parts that could not be applied, by the index of the fragment. Everything else was applied.
    package internal(set) var errors: [(fragment: Int, error: ScopeError)] = []
    /// The rows that have come in, in that order.
    package internal(set) var entered: [Row] = []
    /// The rows that have left, in that order. A row can come in and leave at once.
    package internal(set) var left: [Row] = []
    /// True if everything was applied, and the rows that the change set adds, all of them and no others, have come in.
    package internal(set) var onlyAdds = false
  }

  /// The classes of the document.
  package let schema: Schema
  /// The row of the root.
  package private(set) var root: Row
  /// The rows that the root leads to, with the root.
  private(set) var rows: RowIndex
  /// The number of rows, with the root.
  package var count: Int { rows.count }

  /// Makes a document of a new root.
  package init(schema: Schema, root uuid: UUID) {
    self.schema = schema
    root = Row.make(schema.root, uuid)
    rows = RowIndex(root)
  }

  /// The row of a model; nil if the document does not have it.
  package subscript(_ uuid: UUID) -> Row? { rows[uuid] }

  /// The UUIDs of all models, copied in O(n).
  package var uuids: [UUID] { rows.all.map(\.uuid) }

  /// Returns true if a row is in the document.
  package func has(_ row: Row) -> Bool { rows[row.uuid] === row }

  /// Returns the properties that hold a row, and of dictionaries the entries.
  package func holders(of row: Row) -> [PropertyKey] {
    row.holders.all.flatMap { holder -> [PropertyKey] in
      let (uuid, name) = (holder.row.uuid, holder.property.wireName)
      guard case .dictionary(let models) = holder.row[holder.property] else {
        return [PropertyKey(uuid: uuid, name: name)]
      }
      return models.keys(of: row.uuid).map {
        PropertyKey(uuid: uuid, name: EntryName.text(of: $0, in: name))
      }
    }
  }

  /// Applies the fragments of a change set: the additions first, then the changes. A part that does not fit is left out
  /// and told, and the rest is applied.
  ///
  /// Cost: O(n) in the fragments, in the collections that they change, and in the models above those that a property lets
  /// go of.
  ///
  /// - Parameter known: Finds rows that have left and may come back.
  package func apply(_ fragments: [SyncFragment], known: @escaping (UUID) -> Row? = { _ in nil })
    -> Outcome
  {
    var preparation = RowPreparation(of: fragments, in: self, known: known)
    preparation.finish()
    return apply(&preparation)
  }

  /// Applies a change set that was made ready. Nothing may have changed since. Cost: as for that of its fragments, but without
  /// what it takes to read the additions, and to apply many operations to a collection.
  ///
  /// - Parameter preparation: The preparation. It is of no use afterwards, and takes time to be freed.
  package func apply(_ preparation: inout RowPreparation) -> Outcome {
    precondition(
      preparation.isComplete && preparation.writer.document === self,
      "The preparation is not complete, or that of another document.")
    preparation.writer.link()
    return preparation.writer.outcome
  }

  /// Replaces everything by a full state, whose first fragment is the root.
  ///
  /// - Throws: ``ScopeError/invalidState(problem:)`` if the state is empty; ``ScopeError/classMismatch(model:className:other:)``
  ///   if its root has another class. Nothing is changed then.
  package func restore(_ state: [SyncFragment]) throws(ScopeError) -> Outcome {
    guard let first = state.first else { throw .invalidState(problem: "it has no root.") }
    guard first.className == schema.root.wireName else {
      throw .classMismatch(
        model: first.uuid, className: schema.root.wireName, other: first.className)
    }
    // A row that is kept elsewhere must not name holders that are freed.
    for row in rows.all { row.holders = RowHolders() }
    root = Row.make(schema.root, first.uuid)
    rows = RowIndex(root)
    return apply(state)
  }

  /// Returns every model as a fragment: the root as a change, first, then the others in depth-first order, each once.
  /// Cost: O(n) in all values.
  package func fullState() -> [SyncFragment] { subtree(of: root, first: .change) }

  /// Returns a row and all rows below it, depth first, each once.
  package func subtree(of row: Row, first: SyncFragment.Kind = .add) -> [SyncFragment] {
    var result: [SyncFragment] = []
    var visited: Set<UUID> = []
    var open = [row]
    while let next = open.popLast() {
      guard visited.insert(next.uuid).inserted else { continue }
      result.append(fragment(of: next, result.isEmpty ? first : .add))
      let bottom = open.count
      next.forEachChild { uuid, _ in if let child = rows[uuid] { open.append(child) } }
      open[bottom...].reverse()
    }
    return result
  }

  /// Returns a row as a fragment.
  package func fragment(of row: Row, _ kind: SyncFragment.Kind = .add) -> SyncFragment {
    SyncFragment(
      kind, uuid: row.uuid, className: row.schema.wireName, properties: row.properties)
  }

  /// The content in the form of `Scope.canonicalJSON`.
  package var canonicalJSON: String { fullState().canonicalJSON }

  /// Gives a row that is not in the document other values, which fit their properties. A dictionary has no entries then
  /// but those that are named.
  package func setValues(of row: Row, to properties: JSONObject) {
    precondition(!has(row), "\(row.uuid.wireText) is in the document, which fragments change.")
    for property in row.schema.properties where property.isSynced {
      if property.kind == .dictionary {
        row[property] = RowContent(of: property)
        continue
      }
      guard let json = properties[property.wireName] else { continue }
      row[property] = RowContent(json, of: property)
    }
    guard row.schema.hasDictionaries else { return }
    for (name, json) in properties {
      guard let entry = row.schema[wireName: name], entry.entryKey != nil, entry.isSynced else {
        continue
      }
      row[entry] = RowContent(json, of: entry)
    }
  }

  /// Makes a row with the values of an addition, which fit their properties, outside of the document; nil if its class is
  /// not known.
  package func makeRow(_ addition: SyncFragment) -> Row? {
    guard let schema = schema[addition.className] else { return nil }
    let row = Row.make(schema, addition.uuid)
    setValues(of: row, to: addition.properties)
    return row
  }

  // MARK: Coming and going

  /// Takes a row in. The caller tells its children that it holds them.
  func insert(_ row: Row) { rows.insert(row) }

  /// Makes room for a number of rows more.
  func reserve(_ additional: Int) { rows.reserve(additional) }

  /// Takes a row out. Returns false if it is not in the document. The caller tells its children that it no longer holds
  /// them.
  func remove(_ row: Row) -> Bool { rows.remove(row.uuid) }

  /// Describes what must not be the case, a line for each; empty if all is well. For tests and simulations. Cost: O(n)
  /// in all values.
  package func checkInvariants() -> [String] {
    var problems = rows.checkInvariants()
    var holders: [UUID: Set<RowHolders.Holder>] = [:]
    var reached: Set<UUID> = [root.uuid]
    var open = [root]
    while let row = open.popLast() {
      for property in row.schema.properties {
        if case .collection(let list) = row[property],
          Set(list.elements).count != list.elements.count
        {
          problems.append("\(row.uuid.wireText).\(property.wireName) has an element twice")
        }
        if case .dictionary(let models) = row[property],
          models.entries.contains(where: {
            !EntryName.normal($0.key).utf8.elementsEqual($0.key.utf8)
          })
        {
          problems.append("\(row.uuid.wireText).\(property.wireName) has a key that is not normal")
        }
        if case .value(let value) = row[property], property.normalized(value) != value {
          problems.append("\(row.uuid.wireText).\(property.wireName) is not as its type writes it")
        }
      }
      row.forEachChild { uuid, property in
        holders[uuid, default: []].insert(.init(row, property))
        guard let child = rows[uuid] else {
          return problems.append("\(row.uuid.wireText) holds \(uuid.wireText), which is not there")
        }
        if reached.insert(uuid).inserted { open.append(child) }
      }
    }
    for row in rows.all {
      let uuid = row.uuid
      if !reached.contains(uuid) { problems.append("the root does not lead to \(uuid.wireText)") }
      if Set(row.holders.all) != holders[uuid] ?? [] {
        problems.append("\(uuid.wireText) is held by others than it knows")
      }
    }
    return problems
  }
}
