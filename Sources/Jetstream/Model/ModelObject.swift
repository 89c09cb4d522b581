import CJetstream
import Foundation

/// The base class of app models: objects with observed properties that form a tree.
///
/// ```swift
/// final class Shape: ModelObject {
///   @Property var x: Float = 0
///   @Property var y: Float = 0
///   @Property var color = RGBAColor(rgba: 0xFF00_00FF)
/// }
/// ```
///
/// `init()` must make an object without side effects: one object of each class is made to learn its
/// defaults. The class may have other initializers.
///
/// Models are not Sendable: a model, its tree and its scope are used in one isolation domain. To
/// read values in another isolation domain, pass a ``ModelSnapshot``.
///
/// A class that also adopts `Observable` of the Observation module is tracked by SwiftUI and by
/// `withObservationTracking`, property by property, inherited ones included. Each of its objects
/// that is read has a registrar, as with `@Observable`. Objects of other classes have none; reading
/// them checks one more flag once such a class is used in the process.
open class ModelObject: Hashable {
  /// Exempt from exclusivity checks: it is only read or replaced as a whole, so no two accesses
  /// overlap.
  @exclusivity(unchecked) @usableFromInline final var record: ModelRecord?

  /// True if the class adopts `Observable`, so that reads must be reported to its registrar. Set
  /// once, when the model is made.
  @exclusivity(unchecked) @usableFromInline final var isBridged = false

  /// Makes a model with the default values.
  public required init() {
    guard let schema = ModelSchema.shared(for: self) else { return }
    if schema.isObservable { isBridged = true }
    if !schema.childProperties.isEmpty { adoptInitialChildren(schema) }
  }

  /// Makes a model with the default values and the given UUID.
  public convenience init(uuid: UUID) {
    self.init()
    ensureRecord().uuidIfMade = uuid
  }

  /// Makes a model with the default values and a UUID given as text, in upper or lower case.
  /// Returns nil if the text is not a UUID.
  package convenience init?(uuid text: String) {
    guard let uuid = UUID(wireText: text) else { return nil }
    self.init(uuid: uuid)
  }

  deinit {
    guard let record else { return }
    // A subclass's stored properties are still there: they are destroyed after this body.
    if !record.schema.childProperties.isEmpty { releaseChildren(record) }
    record.model = nil
    // Released after the access has ended, since releasing captured objects may run any code.
    ChangeChain.release(record.nodes.takeAll())
    let observers = record.observers
    record.observers = nil
    withExtendedLifetime(observers) {}
  }

  /// The name of the class on the wire. The default is the class's name without its module. A
  /// generic class must override it.
  open class var wireName: String {
    let name = String(describing: self)
    precondition(
      !name.contains("<"),
      "\(name) is generic and must override wireName: its instances would share no name otherwise.")
    return name
  }

  /// Options for properties, by name. They take precedence over the options in the declarations.
  ///
  /// They apply to this class and its subclasses only, so that a class can change the options of
  /// inherited properties. Options that a superclass gives here also apply, with lower precedence:
  ///
  /// ```swift
  /// class Preview: Shape {
  ///   override class var propertyOptions: [String: PropertyOptions] { ["color": .local] }
  /// }
  /// ```
  ///
  /// Read once, when the schema of a class is made. Traps if the class does not have a property of
  /// the given name.
  open class var propertyOptions: [String: PropertyOptions] { [:] }

  /// The UUID that identifies the model on the wire. Made on first use.
  ///
  /// It changes only for the root of a scope that a client fetches: the root takes the server's UUID when the first full
  /// state arrives. Code that keeps the UUID of a root takes it after that.
  public final var uuid: UUID { ensureRecord().uuid }

  /// The schema of the model's class.
  package final var schema: ModelSchema { record?.schema ?? ModelSchema.of(type(of: self)) }

  /// The models that hold this one, each with the name of the property: one entry per property.
  public final var parents: [(parent: ModelObject, key: String)] {
    relativesAreRead()
    return (record?.parents.all ?? []).compactMap { link in
      link.parent.model.map { ($0, link.parent.schema.properties[link.index].name) }
    }
  }

  /// The synced properties that hold this model, by their wire names, of models that are in the same scope. One that has
  /// left may go on holding it, as another instance than the one that has its UUID now.
  package final var holders: [PropertyKey] {
    guard let record else { return [] }
    var holders: [PropertyKey] = []
    record.parents.forEach { link in
      let parent = link.parent
      guard link.isSynced, parent.tree === record.tree else { return }
      let property = parent.schema.properties[link.index]
      if property.kind == .dictionary, let model = parent.model {
        for key in model.table(of: property).keys(of: self) {
          let name = EntryName.text(of: key, in: property.wireName)
          holders.append(PropertyKey(uuid: parent.uuid, name: name))
        }
      } else {
        holders.append(PropertyKey(uuid: parent.uuid, name: property.wireName))
      }
    }
    return holders
  }

  /// Returns true only if both are the same object.
  public static func == (a: ModelObject, b: ModelObject) -> Bool { a === b }

  /// Hashes the object's identity.
  public final func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

  // MARK: Access by property

  /// Returns the value of a property as JSON, as the app sees it. For a collection that is being
  /// changed in place, that is the content before.
  package final func json(of property: ModelSchema.Property) -> JSONValue {
    if property.entryKey != nil { return child(of: property)?._jsonValue ?? .null }
    return contentBefore(property)?.json ?? property.access.json(at: address + property.offset)
  }

  /// Returns the content of a collection. For one that is being changed in place, that is the
  /// content before.
  final func list(of property: ModelSchema.Property) -> ModelList {
    contentBefore(property) ?? property.access.list(at: address + property.offset)
  }

  /// Returns the content of a dictionary, of which `property` may be an entry.
  final func table(of property: ModelSchema.Property) -> ModelTable {
    property.access.table(at: address + property.offset)
  }

  private func contentBefore(_ property: ModelSchema.Property) -> ModelList? {
    guard let record, !record.leases.isEmpty else { return nil }
    return record.leases.content(before: property.index)
  }

  /// Returns true if the property has the value that `json` describes.
  final func holds(_ json: JSONValue, in property: ModelSchema.Property) -> Bool {
    if property.entryKey != nil { return self.json(of: property) == json }
    return property.access.isSame(json, at: address + property.offset)
  }

  /// Returns the model that a reference, or an entry of a dictionary, holds.
  final func child(of property: ModelSchema.Property) -> ModelObject? {
    if let key = property.entryKey { return table(of: property)[key] }
    return property.access.model(at: address + property.offset)
  }

  /// The object's address, valid while the caller holds the object.
  final var address: UnsafeRawPointer {
    UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
  }

  // MARK: Record

  @discardableResult
  final func ensureRecord() -> ModelRecord {
    if let record { return record }
    precondition(
      !isPrototype,
      "\(type(of: self)).init() asks for the UUID of the model, or observes it: `init()` has to make a model without "
        + "side effects, since one is made to learn the defaults of the class.")
    let made = ModelRecord(self, schema: ModelSchema.of(type(of: self)))
    record = made
    return made
  }

  /// True for the object from which the schema of its class is being made. Its children are its defaults, and nothing else
  /// is done with them.
  final var isPrototype: Bool {
    guard jetstream_gate() != 0, case .recorder(let recorder) = ThreadTracker.current else {
      return false
    }
    return recorder.makesSchema(of: type(of: self))
  }

  /// Links the children that the properties were initialized with to this model.
  private func adoptInitialChildren(_ schema: ModelSchema) {
    for property in schema.childProperties {
      switch property.kind {
      case .collection: if list(of: property).count == 0 { continue }
      case .dictionary: if table(of: property).count == 0 { continue }
      case .plain, .model, .reference: if child(of: property) == nil { continue }
      }
      let record = ensureRecord()
      var events = StructureEvents()
      record.forEachChild { child, index in
        _ = Structure.link(child, to: record, index: index, &events, isRepeatable: true)
      }
      return
    }
  }

  /// Releases the children of a model that is being deallocated or can no longer be reached,
  /// without recursion: the outermost of nested deallocations takes over all models below, one by
  /// one.
  final func releaseChildren(_ record: ModelRecord) {
    var children: ContiguousArray<ModelObject> = []
    record.forEachChild { child, index in
      child.record?.parents.remove(.init(parent: record, index: index))
      children.append(child)
    }
    if children.isEmpty { return }
    for property in record.schema.childProperties {
      property.access.clear(at: UnsafeMutableRawPointer(mutating: address) + property.offset)
    }
    Teardown.release(&children)
  }

  /// Reports a read to the thread's tracker and to the Observation module. The compiler is told
  /// that this releases nothing, so that a loop that reads properties need not retain the object
  /// around each read. That is true of all that the caller can have: only objects that are made for
  /// recording the read are released. A tracker that prepares reads also gives children to the copies
  /// of a snapshot, and ``SnapshotCopies`` retains those that are replaced until the getter has run.
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

  /// True if a read may have to be reported. The gate is also open if the process has a class that
  /// adopts `Observable`; reads of other classes then check ``isBridged`` as well.
  @inlinable @inline(__always)
  final var readsAreNoted: Bool {
    jetstream_read_gate() != 0 && (isBridged || jetstream_gate() != 0)
  }
}

extension ModelSchema {
  /// Returns the schema of a model under construction; nil for a prototype, from which the schema
  /// is made.
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
  public static var _propertyType: _PropertyType { .reference(wireName) }
  /// The UUID of the model.
  public var _jsonValue: JSONValue { .string(uuid.wireText) }
  /// Returns nil: a model cannot be decoded without a scope in which to find it.
  public static func _decode(_ json: JSONValue) -> Self? { nil }
  /// Always `model`.
  @inlinable public static var _storageKind: _StorageKind { .model }
  /// The access to the model itself.
  public static var _holder: _ModelHolding? { _ModelHolding(type: Self.self) }
  /// Returns true if both are the same object.
  @inlinable public static func _isSame(_ a: ModelObject, _ b: ModelObject) -> Bool { a === b }
}
