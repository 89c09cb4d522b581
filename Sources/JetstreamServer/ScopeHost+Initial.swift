import Foundation
import Jetstream

/// Initial content that clients submit for a scope without content.
extension ScopeHost {
  /// Applies the part of a client's initial content that is for properties of the root that were never written. All
  /// fragments are accepted; ``Result/effective`` contains those that were applied.
  func submitInitial(_ fragments: [SyncFragment], by submitter: Submitter) -> Result {
    guard let root = content.root else { return submit(fragments, isAtomic: false, by: submitter) }
    let part = InitialContent(
      of: fragments, root: root.uuid,
      naming: { [content] in $0.forEachModel(as: content.schema(of: $0), $1) }
    ) { hasContent($0, root) }
    var result = submit(part.fragments, isAtomic: false, by: submitter)
    guard part.fragments != fragments else { return result }
    var replies = fragments.map { _ in FragmentReply() }
    for (place, var reply) in zip(part.places, result.replies) {
      reply.causedBy = reply.causedBy.map { part.places[$0] }
      replies[place] = reply
    }
    result.replies = replies
    result.effective = result.item?.fragments ?? []
    return result
  }

  /// Returns whether a property of the root was ever written in this history, or has another value than its default.
  private func hasContent(_ key: String, _ root: any HostedModel) -> Bool {
    guard let written, !written.contains(key) else { return true }
    guard let property = root.classSchema[wireName: key] else {
      return content.unknownValue(PropertyKey(uuid: root.uuid, name: key)) != nil
    }
    return !property.areSame(root.currentJSON(of: property), property.defaultValue)
  }

  /// Notes which properties of the root the fragments write.
  func noteWritten(_ fragments: [SyncFragment]) {
    guard written != nil, let root = content.root?.uuid else { return }
    for fragment in fragments where fragment.uuid == root {
      for (key, _) in fragment.properties { written?.insert(key) }
      for entry in fragment.operations { written?.insert(entry.key) }
    }
  }
}
