import Foundation
import Jetstream

/// Checks the fragments of one submission against a scope, before anything is changed.
struct FragmentValidator {
  /// A fragment that was accepted, for a model that exists or is being added.
  struct Accepted {
    /// The schema of the model; nil for an unknown class, as long as no known property refers to the model.
    var schema: ClassSchema?
    /// The values that can be applied unchanged.
    var properties: JSONObject
    /// The operations that can be applied unchanged.
    var operations: PropertyOperations = [:]
  }

  let content: any HostedContent
  let memory: any ContentMemory
  let fragments: [SyncFragment]
  /// The errors of rejected fragments, by their indices.
  private(set) var errors: [Int: WireError] = [:]
  /// For each fragment that was rejected because another one was: the index of that other fragment, which was rejected
  /// for a reason of its own.
  private(set) var causes: [Int: Int] = [:]
  var accepted: [Accepted?]
  /// The index of the first rejected addition of each model, by UUID, also for models that the scope has.
  private var refused: [UUID: Int] = [:]
  /// The indices of the additions of models that the scope does not have, by UUID.
  private(set) var additions: [UUID: Int] = [:]
  let unknown: UnknownContent
  /// True if the session may send operations.
  let takesOperations: Bool
  /// The models of the scope that are stored as fragments only, since their classes are unknown.
  let unknownModels: Set<UUID>
  /// The schemas against which models of unknown classes are checked because known properties refer to them, by UUID.
  var standIns: [UUID: ClassSchema] = [:]

  init(
    content: any HostedContent, memory: any ContentMemory, unknown: UnknownContent = .reject,
    takesOperations: Bool = true, fragments: [SyncFragment], objections: [Int: WireError] = [:]
  ) {
    self.content = content
    self.memory = memory
    self.unknown = unknown
    self.takesOperations = takesOperations
    unknownModels = unknown == .keep ? content.unknownModelUUIDs() : []
    self.fragments = fragments
    accepted = Array(repeating: nil, count: fragments.count)
    checkModels()
    if unknown == .keep { findStandIns() }
    checkValues()
    take(objections)
    checkReferencesToRejected()
    checkParents()
    checkRules()
  }

  var isClean: Bool { errors.isEmpty }

  /// The reply to a change set of one fragment that is accepted.
  private static let accepted = [FragmentReply()]

  /// The replies to the fragments, with the errors found by this validation.
  var replies: [FragmentReply] {
    if errors.isEmpty, causes.isEmpty {
      return fragments.count == 1
        ? Self.accepted : Array(repeating: FragmentReply(), count: fragments.count)
    }
    return fragments.indices.map { FragmentReply(error: errors[$0], causedBy: causes[$0]) }
  }

  /// The reason why a fragment is rejected.
  struct Problem {
    let text: String
    /// The model that is missing, if that is the reason.
    var missing: UUID?
    /// The type of the error; nil for none.
    var type: String?

    init(_ text: String, missing: UUID? = nil, type: String? = nil) {
      (self.text, self.missing, self.type) = (text, missing, type)
    }
  }

  // MARK: Steps

  private mutating func checkModels() {
    // Reads fragments where they stand: each copy would be retained and released for nothing.
    for at in fragments.indices where fragments[at].kind == .add {
      let fragment = fragments[at]
      let name = fragment.className
      if additions[fragment.uuid] != nil {
        reject(at, "ModelObject with UUID '\(fragment.uuid.wireText)' is added twice")
      } else if let known = content.model(fragment.uuid),
        known.wireClassName != name || content.sharedModel(fragment.uuid) != nil
      {
        if known.wireClassName == name {
          accepted[at] = Accepted(schema: known.classSchema, properties: JSONObject())
        } else {
          reject(
            at,
            "ModelObject with UUID '\(fragment.uuid.wireText)' already exists: it is a "
              + "\(known.wireClassName), not a \(name)")
        }
      } else if let other = otherClass(of: fragment) {
        reject(
          at,
          "ModelObject with UUID '\(fragment.uuid.wireText)' already exists: it is a "
            + "\(other), not a \(name)")
      } else if let schema = content.schema(named: name) {
        additions[fragment.uuid] = at
        accepted[at] = Accepted(schema: schema, properties: JSONObject())
      } else if unknown == .keep {
        additions[fragment.uuid] = at
        accepted[at] = Accepted(schema: nil, properties: JSONObject())
      } else {
        reject(at, "No such class type '\(name)'")
      }
    }
    for at in fragments.indices where fragments[at].kind == .change {
      let uuid = fragments[at].uuid
      if let model = content.sharedModel(uuid) {
        accepted[at] = Accepted(schema: model.classSchema, properties: JSONObject())
      } else if let added = additions[uuid], let addition = accepted[added] {
        accepted[at] = Accepted(schema: addition.schema, properties: JSONObject())
      } else if let kept = keptModel(uuid) {
        accepted[at] = Accepted(
          schema: content.schema(named: kept.className), properties: JSONObject())
      } else {
        reject(at, Problem("ModelObject not found", missing: uuid))
      }
    }
  }

  /// Rejects fragments for reasons that are not in their form.
  private mutating func take(_ objections: [Int: WireError]) {
    for (at, fragment) in fragments.enumerated() where errors[at] == nil {
      guard let error = objections[at] else { continue }
      errors[at] = error
      if fragment.kind == .add, refused[fragment.uuid] == nil { refused[fragment.uuid] = at }
    }
  }

  /// Returns the class of a detached model that an addition would bring back; nil if the addition names that class, or
  /// if there is no such model.
  private func otherClass(of addition: SyncFragment) -> String? {
    let known =
      memory.departed(addition.uuid)?.wireClassName
      ?? content.unknownModel(addition.uuid)?.className
    return known == addition.className ? nil : known
  }

  private mutating func checkValues() {
    for (at, fragment) in fragments.enumerated() {
      guard let entry = accepted[at] else { continue }
      if let key = fragment.operations.first?.key, !takesOperations {
        reject(at, "Operations at '\(key)', which this version of the protocol does not have")
        continue
      }
      if let problem = problem(with: fragment.operations, of: fragment, entry.schema) {
        reject(at, problem)
        continue
      }
      accepted[at]!.operations = fragment.operations
      if unknown == .keep, let problem = sizeProblem(of: fragment, schema: entry.schema) {
        reject(at, problem)
        continue
      }
      var leftOut: Set<String> = []
      for (key, value) in fragment.properties {
        let found = entry.schema?[wireName: key]
        guard let property = found, property.isSynced else {
          guard unknown == .keep else {
            reject(at, Problem("No property at '\(key)'"))
            break
          }
          // Clients cannot write local properties.
          if found == nil, let problem = rejectedReference(in: value, at: key) {
            reject(at, problem)
            break
          }
          if found != nil { leftOut.insert(key) }
          continue
        }
        // Old peers name every property in an addition, with null where they have no value.
        let problem = problem(of: value, for: property)
        if fragment.kind == .add, value == .null, !takesOperations || problem != nil {
          leftOut.insert(key)
          continue
        }
        if let problem =
          problem ?? mergeProblem(of: value, in: fragment, for: property).map({ Problem($0) })
        {
          reject(at, problem)
          break
        }
      }
      if errors[at] != nil { continue }
      accepted[at]!.properties =
        leftOut.isEmpty
        ? fragment.properties
        : JSONObject(
          fragment.properties.filter { !leftOut.contains($0.key) }.map { ($0.key, $0.value) })
    }
  }

  private func problem(of value: JSONValue, for property: PropertySchema) -> Problem? {
    let key = property.wireName
    if property.isCollection {
      guard case .array(let elements) = value else {
        return Problem("Collection type without array value at '\(key)'")
      }
      var seen: Set<UUID> = []
      for element in elements {
        guard case .string(let text) = element, let uuid = UUID(wireText: text) else {
          return Problem("Not valid type at '\(key)', should be array of UUIDs")
        }
        if !seen.insert(uuid).inserted {
          return Problem("ModelObject '\(text)' occurs twice at '\(key)'")
        }
        if let problem = referenceProblem(uuid, text, property) { return problem }
      }
      return nil
    }
    if property.isReference {
      if value == .null { return nil }
      guard case .string(let text) = value, let uuid = UUID(wireText: text) else {
        return Problem("Cannot set property at '\(key)' as non-UUID")
      }
      return referenceProblem(uuid, text, property)
    }
    if property.accepts(value) { return nil }
    guard let sentence = property.problem(with: value) else {
      return Problem("Not valid type at '\(key)', should be \(property.type)")
    }
    return Problem("Not valid at '\(key)': \(sentence.prefix(Self.maxSentence))")
  }

  func referenceProblem(
    _ uuid: UUID, _ text: String, _ property: PropertySchema
  ) -> Problem? {
    let target: ClassSchema
    if let model = content.sharedModel(uuid) ?? memory.departed(uuid) {
      target = model.classSchema
    } else if let at = additions[uuid], let schema = accepted[at]?.schema {
      target = schema
    } else if let schema = keptSchema(uuid) {
      target = schema
    } else {
      return Problem("No such ModelObject '\(text)' at '\(property.wireName)'", missing: uuid)
    }
    if property.canHold(target) { return nil }
    return Problem(
      "ModelObject '\(text)' at '\(property.wireName)' is a \(target.wireName), should be a "
        + className(property))
  }

  private func className(_ property: PropertySchema) -> String {
    switch property.type {
    case .reference(let name), .collection(let name): name
    default: "\(property.type)"
    }
  }

  /// Rejects the fragments that refer to a rejected addition, and in turn the fragments that refer to additions
  /// rejected that way.
  mutating func checkReferencesToRejected() {
    // The first one comes last: what refers to several is rejected because of it.
    var open = additions.filter { errors[$0.value] != nil }.sorted { $0.value > $1.value }
      .map(\.key)
    guard !open.isEmpty else { return }
    var referrers: [UUID: [(at: Int, key: String)]] = [:]
    for at in fragments.indices where errors[at] == nil {
      guard let entry = accepted[at] else { continue }
      for (key, uuid) in references(of: entry)
      where additions[uuid] != nil && memory.departed(uuid) == nil {
        referrers[uuid, default: []].append((at, key))
      }
    }
    while let uuid = open.popLast() {
      for (at, key) in referrers[uuid] ?? [] where errors[at] == nil {
        reject(at, Problem("No such ModelObject '\(uuid.wireText)' at '\(key)'", missing: uuid))
        if additions[fragments[at].uuid] == at { open.append(fragments[at].uuid) }
      }
    }
  }

  /// Rejects the additions that no model of the scope would hold after the submission.
  mutating func checkParents() {
    guard !additions.isEmpty else { return }
    var reached: Set<UUID> = []
    var open: [UUID] = []
    var last: [PropertyKey: JSONValue] = [:]
    for (at, fragment) in fragments.enumerated() where errors[at] == nil {
      for (key, value) in accepted[at]?.properties ?? JSONObject() {
        last[PropertyKey(uuid: fragment.uuid, name: key)] = value
      }
    }
    var held: [UUID: [UUID]] = [:]
    for (at, fragment) in fragments.enumerated() where errors[at] == nil {
      for entry in accepted[at]?.operations ?? [:] {
        let uuids = Self.inserted(by: entry.operations)
        if content.sharedModel(fragment.uuid) != nil || unknownModels.contains(fragment.uuid) {
          open.append(contentsOf: uuids)
        } else {
          held[fragment.uuid, default: []].append(contentsOf: uuids)
        }
      }
    }
    for (key, value) in last {
      guard
        let uuids = references(
          in: value, at: key.name,
          content.model(key.uuid)?.classSchema ?? additions[key.uuid].flatMap {
            accepted[$0]?.schema
          }
            ?? keptSchema(key.uuid))
      else { continue }
      if content.sharedModel(key.uuid) != nil || unknownModels.contains(key.uuid) {
        open.append(contentsOf: uuids)
      } else {
        held[key.uuid, default: []].append(contentsOf: uuids)
      }
    }
    // Models without an object that are in the scope stay held. A submission may let go of one; that is no error.
    open.append(contentsOf: unknownModels)
    while let next = open.popLast() {
      if reached.insert(next).inserted { open.append(contentsOf: held[next] ?? []) }
    }
    let unreached = additions.filter { errors[$0.value] == nil && !reached.contains($0.key) }
    let holders = unreached.isEmpty ? [:] : rejectedHolders(of: unreached)
    for (uuid, at) in unreached {
      reject(at, Problem("No parents, parent sync fragment failed"))
      causes[at] = holders[uuid]
    }
    for (at, fragment) in fragments.enumerated()
    where fragment.kind == .change && errors[at] == nil {
      if let added = additions[fragment.uuid], errors[added] != nil {
        reject(at, Problem("ModelObject not found", missing: fragment.uuid))
      }
    }
  }

  /// Returns the rejected fragments that would have held additions directly or through other additions: the reasons why
  /// nothing holds these. Cost: O(n) in the fragments.
  private func rejectedHolders(of unreached: [UUID: Int]) -> [UUID: Int] {
    var result: [UUID: Int] = [:]
    var open: [(at: Int, cause: Int)] = []
    for at in fragments.indices where errors[at] != nil { open.append((at, causes[at] ?? at)) }
    while let (at, cause) = open.popLast() {
      let fragment = fragments[at]
      let inserted = fragment.operations.flatMap { Self.inserted(by: $0.operations) }
      let named = fragment.properties.flatMap { Self.uuids(in: $0.value) }
      for uuid in inserted + named where result[uuid] == nil {
        guard let below = unreached[uuid] else { continue }
        result[uuid] = cause
        open.append((below, cause))
      }
    }
    return result
  }

  /// Returns the index of the rejected addition of a model, if there is one.
  private func rejectedAddition(of uuid: UUID) -> Int? {
    if let at = additions[uuid] { return errors[at] == nil ? nil : at }
    return refused[uuid]
  }

  // MARK: Pieces

  /// The largest number of characters of a property type's own error text that are sent.
  private static let maxSentence = 500

  private func references(of entry: Accepted) -> [(key: String, uuid: UUID)] {
    var result: [(String, UUID)] = []
    for (key, value) in entry.properties {
      for uuid in references(in: value, at: key, entry.schema) ?? [] { result.append((key, uuid)) }
    }
    for operations in entry.operations {
      for uuid in Self.inserted(by: operations.operations) {
        result.append((operations.key, uuid))
      }
    }
    return result
  }

  static func uuids(in value: JSONValue) -> [UUID] {
    switch value {
    case .string(let text): UUID(wireText: text).map { [$0] } ?? []
    case .array(let elements): elements.flatMap(uuids)
    default: []
    }
  }

  private mutating func reject(_ at: Int, _ problem: String) { reject(at, Problem(problem)) }

  /// Rejects a fragment. The error text begins with the words that older servers use, followed by the model that is
  /// meant.
  mutating func reject(_ at: Int, _ problem: Problem) {
    let fragment = fragments[at]
    errors[at] = WireError(
      message: "\(problem.text) (\(fragment.className) \(fragment.uuid.wireText))",
      type: problem.type)
    if fragment.kind == .add, refused[fragment.uuid] == nil { refused[fragment.uuid] = at }
    guard let cause = problem.missing.flatMap(rejectedAddition), cause != at else { return }
    causes[at] = causes[cause] ?? cause
  }
}
