import Foundation
import Jetstream

/// Validation of operations on collections and counters.
extension FragmentValidator {
  /// Returns the first problem with the operations of a fragment that is otherwise accepted; nil if there is none.
  func problem(
    with operations: PropertyOperations, of fragment: SyncFragment, _ schema: ClassSchema?
  ) -> Problem? {
    for entry in operations {
      let key = entry.key
      if fragment.properties[key] != nil {
        return Problem("A value and operations at '\(key)'")
      }
      guard let property = schema?[wireName: key], property.isSynced else {
        // Clients cannot write local properties.
        guard unknown == .keep, schema?[wireName: key] == nil else {
          return Problem("No property at '\(key)'")
        }
        for uuid in Self.inserted(by: entry.operations) {
          let problem = rejectedReference(in: .string(uuid.wireText), at: key)
          if let problem { return problem }
        }
        continue
      }
      for operation in entry.operations {
        if let problem = problem(with: operation, on: property) { return problem }
      }
    }
    return nil
  }

  private func problem(
    with operation: PropertyOperation, on property: PropertySchema
  ) -> Problem? {
    let key = property.wireName
    guard let uuid = operation.model else {
      if property.counterRange != nil { return nil }
      return Problem("Cannot add to '\(key)', which is no whole number")
    }
    guard property.isCollection else {
      return Problem("Operation of a collection at '\(key)', which is none")
    }
    switch operation {
    case .insert: return referenceProblem(uuid, uuid.wireText, property)
    case .move, .remove, .add: return nil
    }
  }

  /// Returns the models that operations insert.
  static func inserted(by operations: [PropertyOperation]) -> [UUID] {
    operations.compactMap { if case .insert(let uuid, _) = $0 { uuid } else { nil } }
  }
}
