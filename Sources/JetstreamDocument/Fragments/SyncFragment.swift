import Foundation

/// A change of one model: its addition, or new values of some of its properties.
///
/// A fragment is plain data. It is sent and stored as
/// `{"type":"add","uuid":"...","clsName":"Shape","properties":{"x":1}}`, with `operations` and `bases` behind the
/// properties if there are any.
///
/// There is no fragment for a removal: a model is gone when no property refers to it any more.
public struct SyncFragment: Sendable, Hashable {
  /// The kind of a fragment.
  public enum Kind: Sendable {
    /// A model that the receiver does not have yet, with its properties.
    case add
    /// New values for some properties of a model that the receiver has.
    case change

    /// Reads the word on the wire; nil for any other.
    package init?(rawValue: String) {
      switch rawValue {
      case "add": self = .add
      case "change": self = .change
      default: return nil
      }
    }

    /// The word on the wire.
    package var rawValue: String { self == .add ? "add" : "change" }
  }

  /// The kind of the fragment: an addition or a change.
  public var kind: Kind

  /// The UUID of the model. It is written in lower case and read in either.
  public var uuid: UUID

  /// The name of the model's class on the wire.
  public var className: String

  /// The values by property name. They are not checked against the class here.
  public var properties: JSONObject

  /// The operations on properties whose new values are not named: on collections and counters, in a change. Peers
  /// of version 1 of the protocol do not know operations and get values instead.
  package var operations: PropertyOperations

  /// The values that some of the properties had before, for a server that has to merge the new values with those
  /// that other replicas have written. In a change, these are the values of properties with a ``MergeRule``; in an
  /// addition, the last shared values of a model that other replicas have had before.
  package var bases: JSONObject

  /// Returns the operations on a property, in order: those on a collection or a counter, in a change. Empty for a
  /// property whose new value is in ``properties``, and for one that the fragment does not change.
  package func operations(on property: String) -> [PropertyOperation] { operations[property] }

  /// Makes a fragment that names values.
  public init(_ kind: Kind, uuid: UUID, className: String, properties: JSONObject) {
    self.init(
      kind, uuid: uuid, className: className, properties: properties, operations: [:], bases: [:])
  }

  /// Makes a fragment with operations.
  package init(
    _ kind: Kind, uuid: UUID, className: String, properties: JSONObject,
    operations: PropertyOperations
  ) {
    self.init(
      kind, uuid: uuid, className: className, properties: properties, operations: operations,
      bases: [:])
  }

  /// Makes a fragment.
  package init(
    _ kind: Kind, uuid: UUID, className: String, properties: JSONObject,
    operations: PropertyOperations = [:], bases: JSONObject
  ) {
    self.kind = kind
    self.uuid = uuid
    self.className = className
    self.properties = properties
    self.operations = operations
    self.bases = bases
  }

  /// Reads a fragment from its ``json``. `type`, `uuid`, `clsName` and `properties` are required, for changes too;
  /// `operations`, `bases` and `known` are optional; other keys are ignored.
  ///
  /// - Throws: ``FragmentError`` naming the first field that is missing or wrong.
  public init(json: JSONValue) throws(FragmentError) {
    guard case .object(let object) = json else { throw .notAnObject }
    let kindText = try object.fragmentString("type")
    guard let kind = Kind(rawValue: kindText) else {
      throw .invalid(field: "type", problem: "should be \"add\" or \"change\"")
    }
    guard let uuid = UUID(wireText: try object.fragmentString("uuid")) else {
      throw .invalid(field: "uuid", problem: "should be a UUID")
    }
    let className = try object.fragmentString("clsName")
    guard let properties = object["properties"] else { throw .missing(field: "properties") }
    guard case .object(let properties) = properties else {
      throw .invalid(field: "properties", problem: "should be an object")
    }
    self.init(kind, uuid: uuid, className: className, properties: properties)
    if let operations = object["operations"] {
      guard kind == .change else {
        throw .invalid(field: "operations", problem: "should not be in an addition")
      }
      self.operations = try PropertyOperations(json: operations)
    }
    if let bases = object["bases"] {
      guard case .object(let bases) = bases, kind == .change else {
        throw .invalid(field: "bases", problem: "should be an object, in a change")
      }
      self.bases = bases
    }
    if kind == .add, let known = object["known"] {
      guard case .object(let known) = known else {
        throw .invalid(field: "known", problem: "should be an object")
      }
      bases = known
    }
  }

  /// The fragment as JSON, with its keys in the order `type`, `uuid`, `clsName`, `properties`,
  /// `operations`, `bases`; the latter is called `known` in an addition.
  public var json: JSONValue {
    var object: JSONObject = [
      "type": .string(kind.rawValue), "uuid": .string(uuid.wireText),
      "clsName": .string(className), "properties": .object(properties),
    ]
    if !operations.isEmpty { object.append(newKey: "operations", operations.json) }
    if !bases.isEmpty { object.append(newKey: kind == .add ? "known" : "bases", .object(bases)) }
    return .object(object)
  }

  /// Appends ``json`` as UTF-8 to `bytes`, without making a JSON value first.
  package func write(to bytes: inout [UInt8]) {
    bytes.append(written: { write(to: &$0) })
  }

  /// Appends ``json`` as UTF-8.
  package func write(to output: inout JSONOutput) {
    switch kind {
    case .add: output.append(fixed: #"{"type":"add","uuid":""#)
    case .change: output.append(fixed: #"{"type":"change","uuid":""#)
    }
    uuid.writeWireText(to: &output)
    output.append(fixed: #"","clsName":"#)
    JSONWriter.write(className, to: &output)
    output.append(fixed: #","properties":"#)
    JSONWriter.write(properties, sorted: false, to: &output)
    if !operations.isEmpty {
      output.append(fixed: ",\"operations\":")
      operations.write(to: &output)
    }
    if !bases.isEmpty {
      output.append(fixed: kind == .add ? ",\"known\":" : ",\"bases\":")
      JSONWriter.write(bases, sorted: false, to: &output)
    }
    output.append("}")
  }
}

extension JSONObject {
  /// Returns the string of a required key.
  package func fragmentString(_ field: String) throws(FragmentError) -> String {
    guard let value = self[field] else { throw .missing(field: field) }
    guard case .string(let text) = value else {
      throw .invalid(field: field, problem: "should be a string")
    }
    return text
  }
}
