import Foundation
import Jetstream

/// The models that fragments give to properties as values.
extension FragmentValidator {
  /// Calls `body` with each property that may hold models and that a fragment gives a value, and with the models in the
  /// value. A plain value may name a model, as a weak reference does, and does not hold it. A property that the class does
  /// not have may hold every model that its value names.
  ///
  /// The class is that of the model. A client may name any other one in a fragment that is rejected, or in a change, whose
  /// class is never checked: that name counts only for a model of which nothing else is known.
  func forEachHolding(in fragment: SyncFragment, _ body: (String, [UUID]) -> Void) {
    if fragment.properties.isEmpty { return }
    let schema = holdingSchema(of: fragment)
    for member in fragment.properties.members {
      guard let models = references(in: member.value, at: member.key, schema) else { continue }
      body(member.key, models)
    }
  }

  private func holdingSchema(of fragment: SyncFragment) -> ClassSchema? {
    let uuid = fragment.uuid
    if let known = classSchema(of: uuid) { return known }
    // It is known to be of a class that the scope does not have.
    if additions[uuid] != nil || unknownModels.contains(uuid) { return nil }
    return content.schema(of: fragment)
  }

  /// Returns true if a fragment gives models to a property as its value.
  func assignsModels(_ fragment: SyncFragment) -> Bool {
    var found = false
    forEachHolding(in: fragment) { _, models in if !models.isEmpty { found = true } }
    return found
  }
}
