import Foundation
import Jetstream

/// Validation of values.
extension FragmentValidator {
  /// The largest number of characters of a property type's own error text that are sent.
  private static let maxSentence = 500

  mutating func checkValues(_ part: Range<Int>) {
    for at in part {
      guard let entry = accepted[at] else { continue }
      // Reads fragments where they stand: each copy would be retained and released for nothing.
      let (kind, properties) = (fragments[at].kind, fragments[at].properties)
      if !fragments[at].operations.isEmpty {
        if !takesOperations, let key = fragments[at].operations.first?.key {
          reject(at, "Operations at '\(key)', which this version of the protocol does not have")
          continue
        }
        if let problem = problem(with: fragments[at].operations, of: fragments[at], entry.schema) {
          reject(at, problem)
          continue
        }
        accepted[at]!.operations = fragments[at].operations
      }
      if unknown == .keep, let problem = sizeProblem(of: fragments[at], schema: entry.schema) {
        reject(at, problem)
        continue
      }
      var leftOut: Set<String> = []
      for (key, value) in properties {
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
        if kind == .add, value == .null, !takesOperations || problem != nil {
          leftOut.insert(key)
          continue
        }
        if let problem =
          problem
          ?? mergeProblem(of: value, inFragment: at, for: property).map({ Problem($0) })
        {
          reject(at, problem)
          break
        }
      }
      if errors[at] != nil { continue }
      accepted[at]!.properties =
        leftOut.isEmpty
        ? properties
        : JSONObject(
          properties.filter { !leftOut.contains($0.key) }.map { ($0.key, $0.value) })
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

  /// Returns the models that a value names.
  static func uuids(in value: JSONValue) -> [UUID] {
    switch value {
    case .string(let text): UUID(wireText: text).map { [$0] } ?? []
    case .array(let elements): elements.flatMap(uuids)
    default: []
    }
  }
}
