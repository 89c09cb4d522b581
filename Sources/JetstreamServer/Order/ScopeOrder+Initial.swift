import Foundation
import Jetstream

/// Initial content that clients submit for a scope without content.
extension ScopeOrder {
  /// Applies the part of a client's initial content that is for properties of the root that were never written. All
  /// fragments are accepted; ``Result/effective`` contains those that were applied.
  ///
  /// - Parameter judged: the draft of the content, if it was judged already.
  func submitInitial(
    _ fragments: [SyncFragment], by submitter: Submitter, judged: consuming Draft? = nil
  ) -> Result {
    guard let part = judged?.initial ?? part(ofInitial: fragments) else {
      return submit(fragments, isAtomic: false, by: submitter, judged: judged)
    }
    let result = submit(part.fragments, isAtomic: false, by: submitter, judged: judged)
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

  /// Returns the part of a client's initial content that has an effect; nil if the scope has no root.
  func part(ofInitial fragments: [SyncFragment]) -> InitialContent? {
    guard let root = content.root else { return nil }
    return InitialContent(
      of: fragments, root: root.uuid,
      naming: { [content] in $0.forEachModel(as: content.schema(of: $0), $1) }
    ) { [filled = filledDictionaries(of: root)] in hasContent($0, root, filled) }
  }

  /// Returns the names of the root's dictionaries that have entries.
  private func filledDictionaries(of root: any HostedModel) -> Set<String> {
    let schema = root.classSchema
    guard schema.hasDictionaries else { return [] }
    let entries = root.currentProperties().filter { schema[wireName: $0.key]?.entryKey != nil }
    return Set(entries.map { schema.declaredName($0.key) })
  }

  /// Returns whether a property of the root was ever written in this history, or has another value than its default. For
  /// an entry, that is whether its dictionary was ever written or has any entry, so that two clients that bring a
  /// dictionary at the same time do not get a mixture of both.
  ///
  /// - Parameter filled: The dictionaries that have entries.
  private func hasContent(
    _ key: String, _ root: any HostedModel, _ filled: Set<String>
  ) -> Bool {
    let schema = root.classSchema
    let name = schema.declaredName(key)
    guard let names = written.names, !names.contains(name) else { return true }
    guard let property = schema[wireName: key] else {
      return content.unknownValue(PropertyKey(uuid: root.uuid, name: key)) != nil
    }
    if property.entryKey != nil { return filled.contains(name) }
    return !property.areSame(root.currentJSON(of: property), property.defaultValue)
  }

  /// Notes which properties of the root the fragments write, of dictionaries not each entry.
  func noteWritten(_ fragments: [SyncFragment]) {
    guard written.names != nil, let root = content.root else { return }
    let uuid = root.uuid
    let fragments = fragments.span
    for at in fragments.indices where fragments[at].uuid == uuid {
      let schema = root.classSchema
      let members = fragments[at].properties.members.span
      // A fragment may name any number of entries: those of one dictionary are mostly together, and need one look-up.
      var dictionary: String?
      for place in members.indices {
        if let dictionary, EntryName.isEntry(members[place].key, of: dictionary) { continue }
        let name = schema.declaredName(members[place].key)
        written.note(name)
        let isEntry =
          schema.hasDictionaries && EntryName.isEntry(members[place].key, of: name)
        dictionary = isEntry ? name : nil
      }
      let entries = fragments[at].operations.entries.span
      for place in entries.indices { written.note(entries[place].key) }
    }
  }
}

extension ClassSchema {
  /// Returns the name of the dictionary that has an entry with a name, and any other name as it is.
  fileprivate func declaredName(_ key: String) -> String {
    guard hasDictionaries, let property = self[wireName: key], property.entryKey != nil else {
      return key
    }
    return properties[property.index].wireName
  }
}
