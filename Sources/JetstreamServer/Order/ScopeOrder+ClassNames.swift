import Foundation
import Jetstream

/// The classes that change sets name. That of an addition is checked; that of a change may be any text.
extension ScopeOrder {
  /// Returns fragments in which each change names the class of its model, whatever its client says: that of the scope's
  /// model, of one that has left the scope, or of the addition that counts. A change of a model of which nothing is
  /// known stays as it is. Cost: O(n) in the fragments.
  func namingClasses(in fragments: [SyncFragment], by submitter: Submitter) -> [SyncFragment] {
    let keepsUnknown = unknown(of: submitter) == .keep
    var added: [UUID: String] = [:]
    // As the validator has it: the first one of a class that the scope takes counts, and all others are rejected.
    for fragment in fragments where fragment.kind == .add && added[fragment.uuid] == nil {
      guard keepsUnknown || content.schema(named: fragment.className) != nil else { continue }
      added[fragment.uuid] = fragment.className
    }
    var result = fragments
    for at in result.indices where result[at].kind == .change {
      let uuid = result[at].uuid
      guard let name = className(of: uuid) ?? added[uuid], name != result[at].className
      else { continue }
      result[at].className = name
    }
    return result
  }

  /// Returns the class of a model that the scope has, or that has left it; nil if it is not known.
  func className(of uuid: UUID) -> String? {
    content.model(uuid)?.wireClassName ?? departed(uuid)?.wireClassName
      ?? content.unknownModel(uuid)?.className
  }
}
