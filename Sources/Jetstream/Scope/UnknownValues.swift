import Foundation

/// What newer peers say of a model that its class does not know, as it came. Stands with what
/// observes the model, so that a model without any has no room for it.
struct UnknownValues {
  /// By their names on the wire.
  private(set) var properties = JSONObject()
  /// The class that the others know the model by, if it is one that the scope does not know.
  var className: String?
  private var isSorted = true

  init(className: String? = nil) { self.className = className }

  /// The properties in the order of their names, so that replicas agree.
  var sorted: JSONObject {
    mutating get {
      if !isSorted {
        properties = JSONObject(properties.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
        isSorted = true
      }
      return properties
    }
  }

  var isEmpty: Bool { properties.isEmpty && className == nil }

  mutating func set(_ key: String, to value: JSONValue) {
    if properties[key] == nil { isSorted = properties.isEmpty }
    properties[key] = value
  }

  /// Forgets the properties that `state` does not name.
  mutating func keep(onlyIn state: JSONObject) {
    let gone = properties.filter { state[$0.key] == nil }.map(\.key)
    if gone.isEmpty { return }
    properties = JSONObject(
      properties.filter { state[$0.key] != nil }.map { ($0.key, $0.value) })
  }
}

extension ModelRecord {
  /// What is kept with the model although its class does not know it.
  var unknown: UnknownValues? {
    get { observers?.extras?.unknown }
    set {
      if newValue == nil, observers?.extras == nil { return }
      ensureObservers().ensureExtras().unknown = newValue
    }
  }

  /// The class of the model as all replicas call it.
  var wireClassName: String { observers?.extras?.unknown?.className ?? schema.wireName }

  /// The unknown properties in order; empty for nearly every model.
  var unknownProperties: JSONObject {
    guard let extras = observers?.extras, extras.unknown != nil else { return JSONObject() }
    return extras.unknown!.sorted
  }

  /// Keeps the value of a property that the class does not know.
  func keepUnknown(_ key: String, _ value: JSONValue) {
    let extras = ensureObservers().ensureExtras()
    if extras.unknown == nil { extras.unknown = UnknownValues() }
    extras.unknown!.set(key, to: value)
    scope?.ensureUnknown().carry(self)
  }

  /// Every synced property as the last change set left it: what the others know, as far as this
  /// replica has told them.
  func confirmedProperties() -> JSONObject {
    var values = syncedProperties()
    guard let model else { return values }
    var lists: [Int: ModelList] = [:]
    // What a call of `modify` has set aside came before.
    let own = ObjectIdentifier(self)
    let aside = modification?.aside.reversed().compactMap { $0.bases[own] } ?? []
    for base in ([bases] + aside).joined() {
      let property = schema.properties[base.index]
      guard property.isSynced else { continue }
      if case .json(let old) = base.value {
        values[property.wireName] = old
      } else {
        lists[base.index] = base.list(now: lists[base.index] ?? model.list(of: property))
        values[property.wireName] = lists[base.index]?.json
      }
    }
    return values
  }
}

extension ModelObject {
  /// The class of the model as all replicas call it.
  package final var wireClassName: String { record?.wireClassName ?? schema.wireName }

  /// What the model has under a name on the wire that its class does not know.
  package final func unknownValue(_ key: String) -> JSONValue? { record?.unknown?.properties[key] }
}

extension JSONValue {
  /// Calls `body` with every UUID that the value has as text, at any depth.
  package func forEachUUID(_ body: (UUID) -> Void) {
    switch self {
    case .string(let text): if let uuid = UUID(wireText: text) { body(uuid) }
    case .array(let elements): for element in elements { element.forEachUUID(body) }
    case .object(let object): for (_, value) in object { value.forEachUUID(body) }
    default: break
    }
  }
}
