import Foundation
import Jetstream

/// Observes every property of every model of a scope, and compares what its observers were told with what the
/// models show.
///
/// An immediate observer must be told of a change from the value that it knows. A coalesced observer must not
/// fire if nothing was written since it last fired. One message of the server must not notify observers of a
/// property that has the same value afterwards as before. At rest, both kinds of observers must know the values
/// that are shown.
final class NotificationWatch: MembershipObserver {
  /// The values that the observers of one model know.
  private final class Told {
    weak var model: ModelObject?
    /// The values that immediate observers know, by the index of the property in the schema.
    var now: [JSONValue]
    /// The values that coalesced observers know, by the same index.
    var ticked: [JSONValue]
    /// The indexes of properties that were written since their coalesced observers were called.
    var written: Set<Int> = []
    /// The indexes of properties that were written locally since the call before the last one. An observer may
    /// write during a tick: other observers already see the value in this tick, and are called again in the
    /// next one.
    var writtenHere: Set<Int> = []

    init(_ model: ModelObject) {
      self.model = model
      now = model.schema.properties.map { model.json(of: $0) }
      ticked = now
    }
  }

  private struct Write {
    let told: Told
    let property: ModelSchema.Property
    let before: JSONValue
    var isRemoteOnly: Bool
  }

  private unowned let scope: Scope
  private var models: [ObjectIdentifier: Told] = [:]
  /// The properties that the message being applied has written; nil while none is.
  private var writes: [ObjectIdentifier: [Int: Write]]?
  private var problems: [String] = []
  /// The number of calls of all observers.
  private(set) var count = 0

  init(_ scope: Scope) {
    self.scope = scope
    scope.addMembershipObserver(self)
    for model in scope.models { attach(to: model) }
  }

  func modelEntered(_ model: ModelObject) { attach(to: model) }

  func modelLeft(_ model: ModelObject) {}

  /// Updates the known values of references to the root, which has another UUID now but is the same model.
  func modelRenamed(_ model: ModelObject, from old: UUID) {
    for told in models.values {
      guard let model = told.model else { continue }
      for property in model.schema.properties where property.namesModels {
        let at = property.index
        let isTicked = told.now[at] == told.ticked[at]
        told.now[at] = model.json(of: property)
        if isTicked { told.ticked[at] = told.now[at] }
      }
    }
  }

  private func attach(to model: ModelObject) {
    if let known = models[ObjectIdentifier(model)], known.model === model { return }
    let told = Told(model)
    models[ObjectIdentifier(model)] = told
    for property in model.schema.properties {
      model.observeChange(self, of: [property]) { $0.ticked(told, property) }
    }
    model.signals.onPropertyChange.listen(self) { $0.changed(told, $1) }
  }

  // MARK: Notifications

  private func changed(_ told: Told, _ change: PropertyChange) {
    guard let model = told.model, let property = model.schema[change.key] else { return }
    count += 1
    let at = property.index
    let known = told.now[at]
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
    told.now[at] = new
    told.written.insert(at)
    if !scope.isWritingRemotely { told.writtenHere.insert(at) }
    if writes == nil { return }
    let write = writes?[ObjectIdentifier(model)]?[at]
    let isRemoteOnly = (write?.isRemoteOnly ?? true) && scope.isWritingRemotely
    writes?[ObjectIdentifier(model), default: [:]][at] = Write(
      told: told, property: property, before: write?.before ?? known, isRemoteOnly: isRemoteOnly)
  }

  private func ticked(_ told: Told, _ property: ModelSchema.Property) {
    guard let model = told.model else { return }
    count += 1
    let now = model.json(of: property)
    if told.written.remove(property.index) == nil,
      told.writtenHere.remove(property.index) == nil,
      property.areSame(now, told.ticked[property.index])
    {
      note(told, property, "a coalesced observer has fired, but shows \(now) as before")
    }
    told.ticked[property.index] = now
  }

  private static func json(_ value: Any) -> JSONValue {
    (value as? any PropertyValue)?._jsonValue ?? .null
  }

  // MARK: Messages of the server

  /// Applies something from the server with `body`, and checks that no property was changed and changed back.
  func takeIn(_ body: () -> Void) {
    writes = [:]
    body()
    let done = writes ?? [:]
    writes = nil
    for write in done.values.flatMap(\.values) where write.isRemoteOnly {
      let now = write.told.now[write.property.index]
      if write.property.areSame(write.before, now) {
        note(write.told, write.property, "a message has changed \(now) and changed it back")
      }
    }
  }

  // MARK: At rest

  /// Returns the wrong notifications since the last call and, if everything is at rest, the missing ones.
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
      if !property.areSame(shown, told.now[property.index]) {
        note(
          told, property,
          "\(shown) is shown, but immediate observers know \(told.now[property.index])")
      } else if !property.areSame(shown, told.ticked[property.index]) {
        note(
          told, property,
          "\(shown) is shown, but coalesced observers know \(told.ticked[property.index])")
      }
    }
  }

  private func note(_ told: Told, _ property: ModelSchema.Property, _ problem: String) {
    let uuid = told.model?.uuid.uuidString.lowercased().prefix(8) ?? "a model"
    problems.append("\(property.name) of \(uuid): \(problem)")
  }
}
