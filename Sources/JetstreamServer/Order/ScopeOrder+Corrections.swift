import Foundation
import Jetstream

/// The correction of the submitter that follows from a submission.
extension ScopeOrder {
  /// A submission and its outcome.
  struct Submission {
    /// The fragments that the session has sent.
    let fragments: [SyncFragment]
    /// The fragments that were applied.
    let effective: [SyncFragment]
    /// The errors of rejected fragments, by their indices.
    let errors: [Int: WireError]
    /// The values, before the submission, of the properties that it writes.
    let before: [PropertyKey: JSONValue]
  }

  /// Computes the submitter's correction: values that differ from the submitted ones, and, if its client does not
  /// rebase, the values that it has to show in place of rejected or dropped ones.
  func correct(_ result: Result, _ submission: Submission, _ submitter: Submitter) {
    var correction = Correction(content)
    var own: [PropertyKey: JSONValue] = [:]
    for fragment in submission.fragments {
      for (key, value) in fragment.properties {
        own[PropertyKey(uuid: fragment.uuid, name: key)] = value
      }
    }
    for fragment in submission.effective {
      guard let model = content.model(fragment.uuid) else {
        correctUnknown(&correction, fragment, own, submitter)
        continue
      }
      for (key, value) in currentValues(of: fragment, in: model) {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        let isMissed = submitter.mayHaveMissed(name)
        if !isMissed, let mine = own[name],
          isRight(mine, instead: value, model.classSchema[wireName: key])
        {
          continue
        }
        correction.set(key, to: value, of: model)
        correction.doubt(doubtfulUnknown(value))
        correction.doubt(
          doubtfulModels(
            value, own: own[name], before: submission.before[name], isMissed: isMissed))
      }
    }
    // Models that came back have the values that they had on the server.
    if !submission.effective.isEmpty {
      let (models, unknown) = broughtBack(by: submission.effective)
      correction.doubt(models)
      correction.doubt(unknown)
    }
    if !submitter.rebases {
      restoreRejected(&correction, submission, submitter)
      restoreDropped(&correction, submission, submitter)
    }
    result.correction = correction.fragments
  }

  /// Returns whether a client may keep the value that it has submitted although the server writes it differently. A
  /// rounded number is a different number; another text for the same date or UUID is not a different value.
  private func isRight(
    _ mine: JSONValue, instead value: JSONValue, _ property: PropertySchema?
  ) -> Bool {
    if mine.isWritten(as: value) { return true }
    if mine.isNumber, value.isNumber { return false }
    return property?.areSame(mine, value) ?? false
  }

  private func correctUnknown(
    _ correction: inout Correction, _ fragment: SyncFragment, _ own: [PropertyKey: JSONValue],
    _ submitter: Submitter
  ) {
    guard unknown == .keep, let now = currentValues(ofUnknown: fragment) else { return }
    for (key, value) in now.properties {
      let name = PropertyKey(uuid: fragment.uuid, name: key)
      if !submitter.mayHaveMissed(name), own[name].isWritten(as: value) { continue }
      correction.set(key, to: value, of: now.uuid, className: now.className)
      correction.doubt(doubtfulUnknown(value))
      correction.doubt(doubtfulModels(value, own: own[name], before: nil, isMissed: false))
    }
  }

  /// Returns the models of unknown classes that a value refers to, with the models that these refer to.
  private func doubtfulUnknown(_ value: JSONValue) -> [SyncFragment] {
    guard unknown == .keep, content.hasUnknownModels else { return [] }
    return content.unknownModels(referredToBy: value)
  }

  /// Adds the confirmed values of rejected changes. A client that does not rebase goes back from a rejected value to
  /// one that may be outdated, and may have dropped models that the confirmed value holds.
  private func restoreRejected(
    _ correction: inout Correction, _ submission: Submission, _ submitter: Submitter
  ) {
    // Each property once, however many fragments write it: a collection takes as long to read as it is.
    var names: [PropertyKey] = []
    // The models that are in every value which the client has sent.
    var own: [PropertyKey: Set<UUID>] = [:]
    for (at, fragment) in submission.fragments.enumerated()
    where fragment.kind == .change && submission.errors[at] != nil {
      for (key, value) in fragment.properties {
        let name = PropertyKey(uuid: fragment.uuid, name: key)
        let models = FragmentValidator.uuids(in: value)
        if own[name]?.formIntersection(models) == nil {
          own[name] = Set(models)
          names.append(name)
        }
      }
    }
    for name in names {
      guard let model = content.model(name.uuid),
        let property = model.classSchema[wireName: name.name], property.isSynced
      else { continue }
      let isStructure = property.isCollection || property.isReference
      guard isStructure || submitter.mayHaveMissed(name) else { continue }
      let value = model.currentJSON(of: property)
      correction.set(name.name, to: value, of: model)
      correction.doubt(
        FragmentValidator.uuids(in: value).compactMap { uuid in
          own[name]!.contains(uuid) ? nil : content.model(uuid)
        })
    }
  }

  /// Sends models again that the client may have dropped. A client that does not rebase drops a model with the last
  /// reference or element that holds it. Another client may have put that model elsewhere in the meantime, where the
  /// submitter could not show it without its content.
  private func restoreDropped(
    _ correction: inout Correction, _ submission: Submission, _ submitter: Submitter
  ) {
    guard submission.effective.contains(where: isStructural) else { return }
    for name in submitter.missed.keys.sorted(by: { ($0.uuid, $0.name) < ($1.uuid, $1.name) }) {
      guard let model = content.model(name.uuid),
        let property = model.classSchema[wireName: name.name]
      else {
        continue
      }
      let value = model.currentJSON(of: property)
      let isNew: (UUID) -> Bool
      if property.isReference {
        isNew = { _ in true }
      } else if property.isCollection, let history = tombstones.elements[name] {
        isNew = {
          !history.knowsInsertion(of: $0, session: submitter.session, proven: submitter.proven)
        }
      } else {
        continue
      }
      let models = FragmentValidator.uuids(in: value).filter(isNew).compactMap { content.model($0) }
      guard !models.isEmpty else { continue }
      correction.set(name.name, to: value, of: model)
      correction.doubt(models)
    }
  }

  /// Returns the models in a corrected value that the submitter may not have, or may have dropped.
  private func doubtfulModels(
    _ value: JSONValue, own: JSONValue?, before: JSONValue?, isMissed: Bool
  ) -> [any HostedModel] {
    let sure = Set(FragmentValidator.uuids(in: (isMissed ? before : own) ?? .null))
    let alsoSure = isMissed ? Set(FragmentValidator.uuids(in: own ?? .null)) : sure
    return FragmentValidator.uuids(in: value).compactMap { uuid in
      sure.contains(uuid) && alsoSure.contains(uuid) ? nil : content.model(uuid)
    }
  }

  private func isStructural(_ fragment: SyncFragment) -> Bool {
    guard let schema = content.schema(of: fragment) else { return false }
    return fragment.properties.contains { key, _ in
      schema[wireName: key].map { $0.isCollection || $0.isReference } ?? false
    }
  }

  /// The values to be sent, preceded by the models that the client may need for them.
  private struct Correction {
    private let content: any HostedContent
    private var models: [SyncFragment] = []
    private var known: Set<UUID> = []
    private var changes: [SyncFragment] = []
    private var positions: [UUID: Int] = [:]

    init(_ content: any HostedContent) { self.content = content }

    var fragments: [SyncFragment] { models + changes }

    mutating func set(_ key: String, to value: JSONValue, of model: any HostedModel) {
      set(key, to: value, of: model.uuid, className: model.wireClassName)
    }

    mutating func set(_ key: String, to value: JSONValue, of uuid: UUID, className: String) {
      let at = positions[uuid] ?? changes.count
      if at == changes.count {
        positions[uuid] = at
        changes.append(
          SyncFragment(.change, uuid: uuid, className: className, properties: JSONObject()))
      }
      changes[at].properties[key] = value
    }

    /// Adds models of unknown classes that the client may not have.
    mutating func doubt(_ kept: [SyncFragment]) {
      for fragment in kept where known.insert(fragment.uuid).inserted { models.append(fragment) }
    }

    mutating func doubt(_ models: [any HostedModel]) {
      for model in models where !known.contains(model.uuid) {
        for fragment in content.subtree(of: model) where known.insert(fragment.uuid).inserted {
          self.models.append(fragment)
        }
      }
    }
  }
}

extension JSONValue {
  fileprivate var isNumber: Bool {
    switch self {
    case .integer, .unsigned, .double, .float: true
    default: false
    }
  }
}
