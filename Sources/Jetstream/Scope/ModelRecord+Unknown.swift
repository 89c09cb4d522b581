import Foundation

extension ModelRecord {
  /// The unknown properties and the unknown class of the model; nil if it has none.
  var unknown: UnknownValues? {
    get { observers?.extras?.unknown }
    set {
      if newValue == nil, observers?.extras == nil { return }
      ensureObservers().ensureExtras().unknown = newValue
    }
  }

  /// The name of the model's class at all replicas.
  var wireClassName: String { observers?.extras?.unknown?.className ?? schema.wireName }

  /// The unknown properties in order; empty for nearly every model.
  var unknownProperties: JSONObject {
    guard let extras = observers?.extras, extras.unknown != nil else { return JSONObject() }
    return extras.unknown!.sorted
  }

  /// Keeps the values of properties that the model's class does not know.
  func keepUnknown(_ values: JSONObject) {
    if values.isEmpty { return }
    let extras = ensureObservers().ensureExtras()
    if extras.unknown == nil { extras.unknown = UnknownValues() }
    let old = values.members.compactMap { extras.unknown!.properties[$0.key] }
    extras.unknown!.set(values)
    tree?.scope?.ensureUnknown().carry(self, from: old, to: values.members.map(\.value))
  }

  /// Drops the values of the properties that the model's class does not know and that `state` does not name.
  func keepUnknown(onlyIn state: JSONObject) {
    guard let extras = observers?.extras, extras.unknown != nil else { return }
    let old = extras.unknown!.values
    extras.unknown!.keep(onlyIn: state)
    tree?.scope?.ensureUnknown().carry(self, from: old, to: extras.unknown!.values)
  }

  /// Returns true if a UUID in an unknown property may be that of a model. A scope has each model to which another one
  /// refers, also without an object. Of a model that is in no scope, it is not known.
  func mayName(_ uuid: UUID) -> Bool {
    guard let scope = tree?.scope else { return true }
    return scope.tree.record(of: uuid) != nil || scope.unknownModel(uuid) != nil
      || scope.knownModel(uuid) != nil
  }

  /// Returns the last shared value of every synced property: as of the last change set and of what other replicas
  /// have written since.
  func confirmedProperties() -> JSONObject {
    var values = syncedProperties()
    guard let model else { return values }
    for property in schema.properties where property.isSynced && isChanged(property.index) {
      let (index, name) = (property.index, property.wireName)
      switch property.kind {
      case .collection:
        values[name] = knownLists(of: index, now: model.list(of: property)).first?.json
      case .dictionary:
        guard let old = knownTables(of: index).first else { continue }
        let changes = model.table(of: property).changes(since: old)
        var added: Set<String> = []
        for change in changes {
          let entry = EntryName.text(of: change.key, in: name)
          if let old = change.old { values[entry] = old._jsonValue } else { added.insert(entry) }
        }
        if !added.isEmpty { values.removeAll { key, _ in added.contains(key) } }
      case .plain, .model, .reference: values[name] = knownJSON(of: index)
      }
    }
    return values
  }
}

extension ModelObject {
  /// The name of the model's class at all replicas.
  package final var wireClassName: String { record?.wireClassName ?? schema.wireName }

  /// Returns the value of a property that the model's class does not know, by its name on the wire.
  package final func unknownValue(_ key: String) -> JSONValue? { record?.unknown?.properties[key] }
}

extension JSONValue {
  /// Calls `body` with every UUID that the value contains as text, at any depth.
  package func forEachUUID(_ body: (UUID) -> Void) {
    switch self {
    case .string(let text): if let uuid = UUID(wireText: text) { body(uuid) }
    case .array(let elements): for element in elements { element.forEachUUID(body) }
    case .object(let object): for (_, value) in object { value.forEachUUID(body) }
    default: break
    }
  }
}
