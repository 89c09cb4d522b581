import Foundation
import Jetstream

/// The effort of what a few bytes may lead to, in models that come and go; see ``ScopeOrder/Result/effort``.
extension ScopeOrder.Draft {
  /// The number of models that are compared in the time in which one comes or goes.
  private static let comparisonsPerModel = 64
  /// The number of bytes of a value that are read in that time.
  private static let bytesPerModel = 256

  /// Notes that operations are applied to a model: rows look for each model among all of a collection, and sessions of
  /// version 1 are told all of it.
  func noteApplying(
    _ operations: PropertyOperations, to model: any HostedModel, needsValues: Bool
  ) {
    for entry in operations {
      guard let property = model.classSchema[wireName: entry.key], property.isCollection else {
        continue
      }
      comparisons += model.comparisons(byApplying: entry.operations.count, to: property)
      if needsValues { effort += model.modelCount(in: property) }
    }
    effort += comparisons / Self.comparisonsPerModel
    comparisons %= Self.comparisonsPerModel
  }

  /// Notes that the values of a model which a client has put back are merged with those that it knew.
  func noteReading(_ values: JSONObject, of model: any HostedModel, known: JSONObject) {
    if known.isEmpty { return }
    for (key, _) in values where known[key] != nil {
      guard let property = model.classSchema[wireName: key] else { continue }
      if property.isCollection {
        effort += model.modelCount(in: property)
      } else {
        noteReading(model.currentJSON(of: property))
      }
    }
  }

  /// Notes that a value is read, to be merged or compared.
  func noteReading(_ value: JSONValue) { effort += value.roughSize / Self.bytesPerModel }
}
