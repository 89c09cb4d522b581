import Foundation
import Jetstream

/// A model of a known class that the scope keeps as an addition, without an object, since only unknown content refers to it.
final class KeptModel: HostedModel {
  let classSchema: ClassSchema
  private let addition: SyncFragment

  init(_ addition: SyncFragment, _ classSchema: ClassSchema) {
    (self.addition, self.classSchema) = (addition, classSchema)
  }

  var uuid: UUID { addition.uuid }

  var wireClassName: String { addition.className }

  func currentJSON(of property: PropertySchema) -> JSONValue {
    guard let value = addition.properties[property.wireName] else { return property.defaultValue }
    return property.normalized(value) ?? value
  }

  func currentProperties() -> JSONObject {
    JSONObject(
      addition.properties.filter { classSchema[wireName: $0.key]?.isSynced == true }
        .map { ($0.key, $0.value) })
  }

  func unknownValue(_ key: String) -> JSONValue? {
    classSchema[wireName: key] == nil ? addition.properties[key] : nil
  }

  func models(in property: PropertySchema) -> [UUID] {
    guard property.kind == .dictionary else {
      return TentativeModel.models(in: currentJSON(of: property))
    }
    return addition.properties.filter { member in
      classSchema[wireName: member.key].map { $0.entryKey != nil && $0.index == property.index }
        ?? false
    }.flatMap { TentativeModel.models(in: $0.value) }
  }

  func modelCount(in collection: PropertySchema) -> Int { models(in: collection).count }

  /// No operation is applied to it: it is not in the scope.
  func comparisons(byApplying operations: Int, to collection: PropertySchema) -> Int { 0 }

  func places(
    of models: [UUID], in collection: PropertySchema
  ) -> [(model: UUID, place: PropertyOperation.Place)] {
    guard let list = CollectionContent(currentJSON(of: collection)) else { return [] }
    return list.indices(of: Set(models)).map { (list.elements[$0], list.place(ofElementAt: $0)) }
  }
}
