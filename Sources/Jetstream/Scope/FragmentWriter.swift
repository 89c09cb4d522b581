import Foundation

/// Writes fragments into models, as changes of other replicas or as local ones.
struct FragmentWriter {
  let scope: Scope
  /// True if the changes are local ones, to be collected like any others.
  var isLocal = false
  /// True if properties that a fragment does not name return to their defaults.
  var resetsMissing = false
  /// True if properties that a fragment does not name keep the models that an initializer has made.
  var keepsMadeModels = false
  var report = ApplyReport()
  /// Models that fragments add, until they are part of the tree.
  var created: [UUID: ModelObject] = [:]
  /// The added models that were not in the tree. An addition names all their entries of dictionaries; one of a model that
  /// is there may leave out those that its maker did not know.
  var outside: Set<UUID> = []
  /// Models that fragments refer to, held because they might leave the tree meanwhile.
  var held: [UUID: ModelObject] = [:]
  /// Kept models that became objects because a known property refers to them.
  var materialised: [UUID] = []
  /// Models of unknown classes that local changes add, kept until a known property makes objects of them.
  var addedAsKept: Set<UUID> = []
  /// The other kept models that local changes have made objects.
  var takenOut: [SyncFragment] = []
  /// Models that fragments have changed and that this scope does not show as other replicas see them.
  var beside: [UUID] = []
  /// Models that only such models hold, and that count as having left.
  var kept: [ModelObject] = []
  /// The model that is being written although another instance with its UUID has taken its place in the scope.
  var writtenBehind: ModelObject?
  /// Unknown values that were written and that may refer to models which have left.
  var unknownValues: [JSONValue] = []
  /// The created models that a property refers to.
  var referenced: Set<UUID> = []

  /// Finds models outside of the scope that may return to it.
  private let alsoKnown: (UUID) -> ModelObject?

  init(scope: Scope, alsoKnown: @escaping (UUID) -> ModelObject?) {
    self.scope = scope
    self.alsoKnown = alsoKnown
  }

  /// Makes the models that the fragments add, so that any fragment can refer to any other, and holds the models
  /// that they refer to: one fragment may take a model out before the next one puts it in again.
  mutating func prepare(_ fragments: [SyncFragment]) {
    defer {
      // They are read where they stand: each copy would be retained field by field.
      let all = fragments.span
      for at in all.indices { hold(all[at]) }
      if scope.hasUnknownModels { materialise(for: fragments) }
    }
    for position in fragments.indices where fragments[position].kind == .add {
      let fragment = fragments[position]
      if scope.tree.hasDictionaries, scope.tree.record(of: fragment.uuid) == nil {
        outside.insert(fragment.uuid)
      }
      if let kept = scope.unknown?.fragments[fragment.uuid] {
        if !isLocal {
          scope.unknown?.update(by: fragment, as: scope.schema(of: fragment), resetsMissing: true)
        }
        if kept.className != fragment.className {
          fail(
            position,
            .classMismatch(
              model: fragment.uuid, className: kept.className, other: fragment.className))
          continue
        }
      }
      if let known = find(fragment.uuid) {
        if known.wireClassName != fragment.className {
          fail(
            position,
            .classMismatch(
              model: fragment.uuid, className: known.wireClassName, other: fragment.className))
        }
      } else if let schema = scope.schema(named: fragment.className) {
        make(schema, fragment.uuid)
      } else {
        keep(fragment, at: position)
      }
    }
  }

  /// Writes all fragments, additions first, because a change may be of a model that a later fragment adds.
  mutating func writeAll(_ fragments: [SyncFragment]) {
    prepare(fragments)
    if !isLocal { scope.interval.othersWrote = true }
    let all = fragments.span
    for at in all.indices where all[at].kind == .add { write(all[at], at: at) }
    if isLocal { writeShared() }
    for at in all.indices where all[at].kind == .change { write(all[at], at: at) }
  }

  /// Makes a model that fragments add. It begins without the models that its initializer makes: other replicas do not
  /// know these, since each replica would have its own.
  @discardableResult
  mutating func make(_ schema: ModelSchema, _ uuid: UUID) -> ModelObject {
    let model = schema.modelClass.init()
    let record = model.ensureRecord()
    record.uuidIfMade = uuid
    for property in schema.childProperties where property.isSynced && property.makesModels {
      property.empty(in: model)
    }
    // Other replicas know the model already, and from here on the changes of observers to it are collected.
    if !isLocal { record.captureTree = scope.tree }
    created[uuid] = model
    return model
  }

  mutating func write(_ fragment: SyncFragment, at position: Int) {
    let model = find(fragment.uuid)
    noteKnown(fragment, of: model)
    // Comparing the value with nil would copy it.
    let isKept = scope.unknown?.fragments.keys.contains(fragment.uuid) == true
    if isKept, isLocal, model == nil { return leave(fragment, at: position) }
    let errorCount = report.errors.count
    if isKept, !isLocal {
      scope.unknown?.update(
        by: fragment, as: scope.schema(of: fragment), resetsMissing: resetsMissing)
      for (_, value) in fragment.properties { unknownValues.append(value) }
      for entry in fragment.operations { note(entry.operations) }
    }
    // An object that has left is kept up to date as far as possible; errors do not matter.
    defer { if isKept, !isLocal { report.errors.removeSubrange(errorCount...) } }
    guard let model else {
      if isKept { return }
      if scope.interval.departed.states[fragment.uuid] != nil {
        noteUnknown(in: fragment)
      } else if fragment.kind == .change {
        fail(position, .unknownModel(className: fragment.className, model: fragment.uuid))
      }
      return
    }
    write(fragment, to: model, at: position)
    if let left = modelThatLeft(behind: model) { keepUpToDate(left, fragment, at: position) }
  }

  /// Writes a fragment into one instance of its model.
  mutating func write(_ fragment: SyncFragment, to model: ModelObject, at position: Int) {
    let schema = model.schema
    let hasDictionaries = schema.hasDictionaries
    if fragment.kind == .add, model.wireClassName != fragment.className { return }
    var entries: [EntryWrite] = []
    var unknownProperties = JSONObject()
    let members = fragment.properties.members.span
    for at in members.indices {
      let (key, value) = (members[at].key, members[at].value)
      guard let property = schema[wireName: key] else {
        if leaves(key, of: model, as: value, at: position) { continue }
        unknownProperties.append(newKey: key, value)
        unknownValues.append(value)
        continue
      }
      guard property.isSynced else { continue }
      if hasDictionaries, let key = property.entryKey {
        guard let child = reference(value, property, model, at: position) else { continue }
        entries.append(EntryWrite(index: property.index, key: key, child: child))
      } else {
        write(value, to: property, of: model, at: position)
      }
    }
    if !unknownProperties.isEmpty { model.ensureRecord().keepUnknown(unknownProperties) }
    if hasDictionaries { put(entries, of: model) }
    if !fragment.operations.isEmpty {
      for entry in fragment.operations { perform(entry, on: model, at: position) }
    }
    let isComing = fragment.kind == .add && outside.contains(fragment.uuid)
    guard resetsMissing || isComing else { return }
    // Unlike other properties, a dictionary has no value that says that it is empty.
    for property in schema.childProperties
    where property.kind == .dictionary && property.isSynced
      && !(resetsMissing && keepsMadeModels && property.makesModels)
    {
      reset(property, of: model, to: fragment.properties)
    }
    guard resetsMissing else { return }
    model.record?.keepUnknown(onlyIn: fragment.properties)
    // The replica that has made the state does not know what an initializer makes, and would reject changes of that.
    for property in schema.properties
    where property.isSynced && fragment.properties[property.wireName] == nil
      && property.kind != .dictionary && !(keepsMadeModels && property.makesModels)
    {
      write(property.defaultValue, to: property, of: model, at: position)
    }
  }

  /// Reports additions that no fragment refers to, and releases models that found no place in the tree.
  mutating func forgetOrphans(among fragments: [SyncFragment]) {
    let materialised = keepMaterialised()
    keepDeparted()
    keepBeside()
    var lost: [(position: Int, fragment: SyncFragment)] = []
    for (position, fragment) in fragments.enumerated() {
      guard let model = created[fragment.uuid], let record = model.record,
        record.captureTree === scope.tree, record.tree == nil,
        !materialised.contains(fragment.uuid), scope.modelThatLeft(fragment.uuid) == nil
      else { continue }
      // An unknown property may refer to it. A model that is kept already has every value as it arrived.
      if let unknown = scope.unknown, unknown.fragments[fragment.uuid] == nil {
        unknown.keep(record)
      }
      scope.forget(record)
      report.orphans.append(model)
      // The model that holds it may have no object here.
      if !referenced.contains(fragment.uuid), scope.interval.departed.states[fragment.uuid] == nil {
        lost.append((position, fragment))
      }
    }
    if lost.isEmpty { return }
    let live = scope.unknownModelUUIDs()
    for (position, fragment) in lost where !live.contains(fragment.uuid) {
      fail(position, .noParent(className: fragment.className, model: fragment.uuid))
    }
  }

  private mutating func hold(_ fragment: SyncFragment) {
    hold(fragment.uuid)
    let members = fragment.properties.members.span
    for at in members.indices {
      switch members[at].value {
      case .string(let text): hold(text)
      case .array(let elements):
        for case .string(let text) in elements { hold(text) }
      default: break
      }
    }
    if fragment.operations.isEmpty { return }
    for entry in fragment.operations {
      for operation in entry.operations {
        if let uuid = operation.model { hold(uuid) }
      }
    }
  }

  private mutating func hold(_ text: String) {
    if let uuid = UUID(wireText: text) { hold(uuid) }
  }

  /// Holds a model, unless it is in the scope anyway: a model that other replicas take out stays in the scope until
  /// all fragments are written, and a model that an observer takes out is kept as having left.
  private mutating func hold(_ uuid: UUID) {
    if !isLocal, scope.tree.record(of: uuid) != nil { return }
    if held[uuid] == nil { held[uuid] = find(uuid) }
  }

  func find(_ uuid: UUID) -> ModelObject? {
    // A model that refers to itself goes on referring to the same instance.
    if let writtenBehind, writtenBehind.uuid == uuid { return writtenBehind }
    return scope.model(uuid) ?? held[uuid] ?? created[uuid] ?? scope.modelThatLeft(uuid)
      ?? modelOutside(uuid)
  }

  /// Returns a model that may return to the scope. One that another scope has taken stays there, with its values.
  private func modelOutside(_ uuid: UUID) -> ModelObject? {
    guard let model = alsoKnown(uuid), model.record?.tree == nil else { return nil }
    return model
  }

  @discardableResult
  func remotely(_ body: () -> Bool) -> Bool {
    isLocal ? body() : scope.tree.writeRemotely(body)
  }

  mutating func fail(_ position: Int, _ error: ScopeError) {
    report.errors.append((position, error))
  }

  func invalid(_ property: ModelSchema.Property, _ model: ModelObject) -> ScopeError {
    .invalidValue(
      className: model.schema.wireName, model: model.uuid, property: property.wireName,
      expected: property.type.description)
  }

  func unknown(
    _ text: String, _ property: ModelSchema.Property, _ model: ModelObject
  ) -> ScopeError {
    .unknownReference(
      className: model.schema.wireName, model: model.uuid, property: property.wireName,
      missing: text)
  }
}

extension ModelSchema.Property {
  /// Takes all models out of the property.
  fileprivate func empty(in model: ModelObject) {
    switch kind {
    case .collection: _ = access.assign(ModelList(), to: model, at: offset)
    case .dictionary: _ = access.assign(ModelTable(), to: model, at: offset)
    case .reference, .model: _ = access.assign(ModelObject?.none, to: model, at: offset)
    case .plain: break
    }
  }
}
