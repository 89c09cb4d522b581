import Foundation
import Jetstream

/// The growth of a scope by changes of models that it has, for the limits on its size and on the memory of the process.
extension ScopeHost {
  /// A value of up to this number of bytes counts like a number: a property can always have one.
  private static let shortValue = 64
  /// The size of a reference to a model, in quotes and with a comma.
  private static let reference = 39

  /// Returns the number of bytes by which fragments make values and collections longer, roughly; negative if they make
  /// them shorter. Additions of new models do not count. Cost: O(n) in the fragments, and in the values that they replace.
  func growth(by fragments: [SyncFragment]) -> Int {
    fragments.reduce(0) { sum, fragment in
      let properties = fragment.properties.members.reduce(0) { sum, member in
        sum + growth(of: member.key, to: member.value, by: fragment)
      }
      return fragment.operations.reduce(sum + properties) { sum, entry in
        let collection = PropertyKey(uuid: fragment.uuid, name: entry.key)
        return sum + entry.operations.reduce(0) { $0 + growth(of: collection, by: $1) }
      }
    }
  }

  private func growth(of key: String, to new: JSONValue, by fragment: SyncFragment) -> Int {
    guard let model = content.sharedModel(fragment.uuid),
      let property = model.classSchema[wireName: key]
    else {
      // The names of what the server does not know are the client's, so each counts with its name.
      let name = PropertyKey(uuid: fragment.uuid, name: key)
      return knows(fragment.uuid)
        ? key.utf8.count + new.roughSize
          - (content.unknownValue(name).map { key.utf8.count + $0.roughSize } ?? 0)
        : 0
    }
    switch property.kind {
    case .plain: return Self.length(of: new) - Self.length(of: model.currentJSON(of: property))
    case .collection:
      let count = FragmentValidator.uuids(in: new).count - model.models(in: property).count
      return count * Self.reference
    case .reference:
      guard property.entryKey != nil else { return 0 }
      let entry = key.utf8.count + Self.reference
      return (new == .null ? 0 : entry) - (model.currentJSON(of: property) == .null ? 0 : entry)
    case .dictionary: return 0
    }
  }

  private func knows(_ uuid: UUID) -> Bool {
    content.sharedModel(uuid) != nil || content.unknownModel(uuid) != nil
  }

  private func growth(of collection: PropertyKey, by operation: PropertyOperation) -> Int {
    guard let model = operation.model.flatMap({ content.sharedModel($0) }) else { return 0 }
    switch operation {
    case .insert:
      return content.holders(of: model).contains(collection) ? 0 : Self.reference
    case .remove: return content.holders(of: model).contains(collection) ? -Self.reference : 0
    case .move, .add: return 0
    }
  }

  /// Returns the size of a value, without its quotes or brackets, as far as it is more than that of a short one.
  private static func length(of value: JSONValue) -> Int {
    max(0, value.roughSize - 2 - shortValue)
  }
}
