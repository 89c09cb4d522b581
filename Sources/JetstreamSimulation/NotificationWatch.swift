import Foundation
import Jetstream

/// Observes every property of every model of a scope, and compares what its observers were told with what the
/// models show.
///
/// An immediate observer must lead from the value before to the one now. A coalesced observer must not fire if
/// nothing was written since it fired last. What one message of the server does must not be told of a property
/// that is afterwards what it was before. And at rest, both kinds have been told of what is shown.
final class NotificationWatch: MembershipObserver {
  /// What was told of one model.
  private final class Told {
    weak var model: ModelObject?
    /// What the immediate observers know, by property.
    var now: [String: JSONValue] = [:]
    /// What the coalesced observers know.
    var ticked: [String: JSONValue] = [:]
    /// What was written since the coalesced observers were called.
    var written: Set<String> = []
    /// What was written here since the time before. An observer may have written it during a tick: others see it
    /// in this tick already, and are called in the next one.
    var writtenHere: Set<String> = []

    init(_ model: ModelObject) { self.model = model }
  }

  private struct Write {
    let told: Told
    let property: ModelSchema.Property
    let before: JSONValue
    var isRemoteOnly: Bool
  }

  private unowned let scope: Scope
  private var models: [ObjectIdentifier: Told] = [:]
  /// What a message that is taken in has written, while one is.
  private var writes: [ObjectIdentifier: [String: Write]]?
  private var problems: [String] = []
  /// How often any observer was called.
  private(set) var count = 0

  init(_ scope: Scope) {
    self.scope = scope
    scope.addMembershipObserver(self)
    for model in scope.models { attach(to: model) }
  }

  func modelEntered(_ model: ModelObject) { attach(to: model) }

  func modelLeft(_ model: ModelObject) {}

  /// References to the root are written with another UUID, and hold what they held.
  func modelRenamed(_ model: ModelObject, from old: UUID) {
    for told in models.values {
      guard let model = told.model else { continue }
      for property in model.schema.properties where property.namesModels {
        let isTicked = told.now[property.name] == told.ticked[property.name]
        told.now[property.name] = model.json(of: property)
        if isTicked { told.ticked[property.name] = told.now[property.name] }
      }
    }
  }

  private func attach(to model: ModelObject) {
    if let known = models[ObjectIdentifier(model)], known.model === model { return }
    let told = Told(model)
    models[ObjectIdentifier(model)] = told
    for property in model.schema.properties {
      told.now[property.name] = model.json(of: property)
      told.ticked[property.name] = told.now[property.name]
      model.observeChange(self, keys: [property.name]) { $0.ticked(told, property) }
    }
    model.signals.onPropertyChange.listen(self) { $0.changed(told, $1) }
  }

  // MARK: Being told

  private func changed(_ told: Told, _ change: PropertyChange) {
    guard let model = told.model, let property = model.schema[change.key] else { return }
    count += 1
    let known = told.now[change.key] ?? .null
    var (old, new) = (Self.json(change.old), Self.json(change.new))
    if case .weakReference = property.type {
      // Observers are handed the target, which may not be there, while what is shown of it is its UUID.
      (old, new) = (known, model.json(of: property))
    }
    if property.areSame(old, new) {
      note(told, property, "an immediate observer was told that \(old) has become the same")
    }
    if !property.areSame(old, known) {
      note(
        told, property, "an immediate observer was told that \(old) has changed, but knew \(known)")
    }
    told.now[change.key] = new
    told.written.insert(change.key)
    if !scope.isWritingRemotely { told.writtenHere.insert(change.key) }
    if writes == nil { return }
    let write = writes?[ObjectIdentifier(model)]?[change.key]
    let isRemoteOnly = (write?.isRemoteOnly ?? true) && scope.isWritingRemotely
    writes?[ObjectIdentifier(model), default: [:]][change.key] = Write(
      told: told, property: property, before: write?.before ?? known, isRemoteOnly: isRemoteOnly)
  }

  private func ticked(_ told: Told, _ property: ModelSchema.Property) {
    guard let model = told.model else { return }
    count += 1
    let now = model.json(of: property)
    if told.written.remove(property.name) == nil, told.writtenHere.remove(property.name) == nil,
      property.areSame(now, told.ticked[property.name] ?? .null)
    {
      note(told, property, "a coalesced observer has fired, but shows \(now) as before")
    }
    told.ticked[property.name] = now
  }

  private static func json(_ value: Any) -> JSONValue {
    (value as? any PropertyValue)?.jsonValue ?? .null
  }

  // MARK: Messages of the server

  /// Takes in something from the server, through `body`.
  func takeIn(_ body: () -> Void) {
    writes = [:]
    body()
    let done = writes ?? [:]
    writes = nil
    for write in done.values.flatMap(\.values) where write.isRemoteOnly {
      let now = write.told.now[write.property.name] ?? .null
      if write.property.areSame(write.before, now) {
        note(write.told, write.property, "a message has changed \(now) and changed it back")
      }
    }
  }

  // MARK: At rest

  /// What was told and should not have been, and, if everything is at rest, what was not told.
  func takeProblems(atRest: Bool) -> [String] {
    if atRest {
      for told in models.values { compare(told) }
      models = models.filter { $0.value.model != nil }
    }
    defer { problems = [] }
    return problems.sorted()
  }

  private func compare(_ told: Told) {
    guard let model = told.model else { return }
    for property in model.schema.properties {
      let shown = model.json(of: property)
      if !property.areSame(shown, told.now[property.name] ?? .null) {
        note(
          told, property,
          "\(shown) is shown, but immediate observers know \(told.now[property.name] ?? .null)")
      } else if !property.areSame(shown, told.ticked[property.name] ?? .null) {
        note(
          told, property,
          "\(shown) is shown, but coalesced observers know \(told.ticked[property.name] ?? .null)")
      }
    }
  }

  private func note(_ told: Told, _ property: ModelSchema.Property, _ problem: String) {
    let uuid = told.model?.uuid.uuidString.lowercased().prefix(8) ?? "a model"
    problems.append("\(property.name) of \(uuid): \(problem)")
  }
}
