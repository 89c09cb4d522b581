import CJetstream
import Foundation

/// The base class of app models: objects with observed properties that form a tree.
///
/// ```swift
/// final class Shape: ModelObject {
///   @Property var x: Float = 0
///   @Property var y: Float = 0
///   @Property var color: RGBAColor = .red
/// }
/// ```
///
/// `init()` must be able to make an object and must have no side effects: one object of each class is
/// made to learn its defaults. Other initializers are up to the class.
///
/// Models are not Sendable: a model, its tree and its scope are used in one isolation domain. What is
/// to be read elsewhere goes there as a ``ModelSnapshot``.
///
/// A class that also adopts `Observable` of the Observation module is followed by SwiftUI and by
/// `withObservationTracking`, property by property, inherited ones included. Each of its objects that
/// is read has a registrar then, as with `@Observable`. Objects of other classes have none, and reading
/// them costs a look at a flag more once there is such a class in the process.
open class ModelObject: Hashable {
  /// Only ever read or replaced as a whole, so there is no access to it that another one could meet.
  @exclusivity(unchecked) @usableFromInline final var record: ModelRecord?

  /// Whether the class adopts `Observable`, so that reads have to be told to its registrar. Set once,
  /// when the model is made.
  @exclusivity(unchecked) @usableFromInline final var isBridged = false

  /// Makes a model with the default values.
  public required init() {
    guard let schema = ModelSchema.shared(for: self) else { return }
    if schema.isObservable { isBridged = true }
    if !schema.childProperties.isEmpty { adoptInitialChildren(schema) }
  }

  /// Makes a model with the default values and a UUID that is known already.
  public convenience init(uuid: UUID) {
    self.init()
    ensureRecord().uuidIfMade = uuid
  }

  /// Makes a model with the default values and a UUID given as text, in upper or lower case; nil for
  /// text that is no UUID.
  package convenience init?(uuid text: String) {
    guard let uuid = UUID(wireText: text) else { return nil }
    self.init(uuid: uuid)
  }

  deinit {
    guard let record else { return }
    // A subclass's stored properties are still there: they are destroyed after this body.
    if !record.schema.childProperties.isEmpty { releaseChildren(record) }
    record.model = nil
    // Released after the access has ended: what callbacks captured may do anything when it goes.
    ChangeChain.release(record.nodes.takeAll())
    let observers = record.observers
    record.observers = nil
    withExtendedLifetime(observers) {}
  }

  /// What objects of this class are called on the wire: the class's name without its module, unless
  /// overridden. A generic class must override it.
  open class var wireName: String {
    let name = String(describing: self)
    precondition(
      !name.contains("<"),
      "\(name) is generic and must override wireName: its instances would share no name otherwise.")
    return name
  }

  /// Options for properties by their names, in front of what their declarations say.
  ///
  /// They count for the class and its subclasses only, so that a class can treat what it inherits in
  /// its own way. What superclasses say here counts as well, behind what the class says:
  ///
  /// ```swift
  /// class Preview: Shape {
  ///   override class var propertyOptions: [String: PropertyOptions] { ["color": .local] }
  /// }
  /// ```
  ///
  /// Read once, when the schema of a class is made. A name that the class does not have is a misuse.
  open class var propertyOptions: [String: PropertyOptions] { [:] }

  /// The model's identity on the wire, made on first use and kept for good.
  public final var uuid: UUID { ensureRecord().uuid }

  /// The scope whose root reaches this model.
  public final var scope: Scope? { record?.scope }

  /// The schema of the model's class.
  package final var schema: ModelSchema { record?.schema ?? ModelSchema.of(type(of: self)) }

  /// The models that hold this one, with the property that does: one entry for each.
  public final var parents: [(parent: ModelObject, key: String)] {
    (record?.parents.all ?? []).compactMap { link in
      link.parent.model.map { ($0, link.parent.schema.properties[link.index].name) }
    }
  }

  /// The properties that hold this model, by their names on the wire.
  package final var holders: [PropertyKey] {
    (record?.parents.all ?? []).filter(\.isSynced).map { link in
      PropertyKey(
        uuid: link.parent.uuid, name: link.parent.schema.properties[link.index].wireName)
    }
  }

  /// Two models are equal only if they are the same object.
  public static func == (a: ModelObject, b: ModelObject) -> Bool { a === b }

  /// Hashes the object's identity.
  public final func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

  // MARK: Access by property

  /// The value of a property as JSON, as the app sees it.
  package final func json(of property: ModelSchema.Property) -> JSONValue {
    contentBefore(property)?.json ?? property.access.json(at: address + property.offset)
  }

  /// The content of a collection. Of one that is being changed in place that is the content before.
  final func list(of property: ModelSchema.Property) -> ModelList {
    contentBefore(property) ?? property.access.list(at: address + property.offset)
  }

  private func contentBefore(_ property: ModelSchema.Property) -> ModelList? {
    guard let record, !record.leases.isEmpty else { return nil }
    return record.leases.content(before: property.index)
  }

  /// Whether the property's value is the one that `json` describes.
  final func holds(_ json: JSONValue, in property: ModelSchema.Property) -> Bool {
    property.access.isSame(json, at: address + property.offset)
  }

  final func child(of property: ModelSchema.Property) -> ModelObject? {
    property.access.model(at: address + property.offset)
  }

  /// The object's address, valid while the caller holds the object.
  final var address: UnsafeRawPointer {
    UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
  }

  // MARK: Record

  @discardableResult
  final func ensureRecord() -> ModelRecord {
    if let record { return record }
    let made = ModelRecord(self, schema: ModelSchema.of(type(of: self)))
    record = made
    return made
  }

  /// Children that the properties were initialized with know their parent from the start.
  private func adoptInitialChildren(_ schema: ModelSchema) {
    for property in schema.childProperties {
      if property.kind == .collection {
        if list(of: property).count == 0 { continue }
      } else if child(of: property) == nil {
        continue
      }
      let record = ensureRecord()
      var events = StructureEvents()
      record.forEachChild { child, index in
        _ = Structure.link(child, to: record, index: index, &events)
      }
      return
    }
  }

  /// Lets go of the children of a model that is being deallocated, or that nobody can reach, without recursion: the outermost
  /// of nested deallocations takes all that is below, one by one.
  final func releaseChildren(_ record: ModelRecord) {
    var children: ContiguousArray<ModelObject> = []
    record.forEachChild { child, index in
      _ = child.record?.parents.remove(.init(parent: record, index: index))
      children.append(child)
    }
    if children.isEmpty { return }
    for property in record.schema.childProperties {
      property.access.clear(at: UnsafeMutableRawPointer(mutating: address) + property.offset)
    }
    Teardown.release(&children)
  }

  /// The compiler is told that nothing is released here, so that a loop that reads properties need
  /// not retain the object around each read. True: notes are only added.
  @usableFromInline @_effects(releasenone)
  final func propertyIsRead(at offset: Int) {
    if jetstream_gate() != 0 {
      switch ThreadTracker.current {
      case .reads(let tracker): tracker.note(self, index: schema.index(atOffset: offset))
      case .recorder: return
      case .teardown, nil: break
      }
    }
    if isBridged { bridgeRead(at: offset) }
  }

  /// Whether anybody might want to know of a read. The gate is open also while there is a class that
  /// adopts `Observable`; what others pay for that is a look at ``isBridged``.
  @inlinable @inline(__always)
  final var readsAreNoted: Bool {
    jetstream_read_gate() != 0 && (isBridged || jetstream_gate() != 0)
  }
}

extension ModelSchema {
  /// The schema of a model under construction; nil for a prototype, which is what one is made from.
  fileprivate static func shared(for model: ModelObject) -> ModelSchema? {
    if jetstream_gate() != 0, case .recorder(let recorder) = ThreadTracker.current {
      if recorder.isPrototype(model) { return nil }
      let schema = SchemaCache.schema(of: type(of: model))
      recorder.objectIsComplete(propertyCount: schema.properties.count)
      return schema
    }
    return SchemaCache.schema(of: type(of: model))
  }
}

extension ModelObject: PropertyValue {
  /// A reference to the class.
  public static var propertyType: PropertyType { .reference(wireName) }
  /// The UUID.
  public var jsonValue: JSONValue { .string(uuid.wireText) }
  /// A model cannot be read without a scope to find it in.
  public static func decode(_ json: JSONValue) -> Self? { nil }
  /// A model.
  @inlinable public static var _storageKind: _StorageKind { .model }
  /// The model itself.
  public static func _model(of value: ModelObject) -> ModelObject? { value }
  /// The model, if it is of this class.
  public static func _value(of model: ModelObject?) -> Self? { model as? Self }
  /// Whether `model` is of this class.
  public static func _canHold(_ model: ModelObject) -> Bool { model is Self }
  /// This class.
  public static var _modelClass: ModelObject.Type? { Self.self }
  /// Whether they are the same object.
  @inlinable public static func isSame(_ a: ModelObject, _ b: ModelObject) -> Bool { a === b }
}
