import Foundation

/// The part of a change set of initial content that has an effect: assignments and operations on those properties of
/// the root that have no content yet, and the added models that these refer to.
///
/// A client marks such a change set with ``procedure``. The server decides when it comes to the change set in its
/// order. So of two clients that bring initial content at the same time, the second one finds the content of the
/// first.
package struct InitialContent {
  /// The name of the procedure that marks change sets of initial content.
  package static let procedure = "Jetstream.initialize"

  /// Returns true for the name of a procedure of the app.
  package static func isCall(_ name: String?) -> Bool { name.map { $0 != procedure } ?? false }

  /// The remaining fragments.
  package private(set) var fragments: [SyncFragment] = []
  /// The positions of the remaining fragments in the whole change set.
  package private(set) var places: [Int] = []

  /// Filters the fragments of a change set.
  ///
  /// - Parameters:
  ///   - root: the UUID by which the fragments name the root.
  ///   - hasContent: returns true if a property of the root, given by its wire name, has content already.
  package init(
    of all: [SyncFragment], root: UUID, in scope: Scope, hasContent: (String) -> Bool
  ) {
    self.init(
      of: all, root: root, naming: { scope.forEachModel(namedBy: $0, $1) }, hasContent: hasContent)
  }

  /// Filters the fragments of a change set.
  ///
  /// - Parameter forEachModel: calls its second argument with the models that a fragment names.
  package init(
    of all: [SyncFragment], root: UUID,
    naming forEachModel: (SyncFragment, (UUID) -> Void) -> Void, hasContent: (String) -> Bool
  ) {
    var changes: [Int: SyncFragment] = [:]
    var additions: [UUID: SyncFragment] = [:]
    var open: [UUID] = []
    for (place, fragment) in all.enumerated() {
      guard fragment.kind == .change else {
        additions[fragment.uuid] = fragment
        continue
      }
      guard fragment.uuid == root, let rest = Self.rest(of: fragment, hasContent) else { continue }
      changes[place] = rest
      forEachModel(rest) { open.append($0) }
    }
    var wanted: Set<UUID> = []
    while let uuid = open.popLast() {
      guard let fragment = additions[uuid], wanted.insert(uuid).inserted else { continue }
      forEachModel(fragment) { open.append($0) }
    }
    for (place, fragment) in all.enumerated() {
      guard let kept = wanted.contains(fragment.uuid) ? fragment : changes[place] else { continue }
      fragments.append(kept)
      places.append(place)
    }
  }

  private static func rest(
    of fragment: SyncFragment, _ hasContent: (String) -> Bool
  ) -> SyncFragment? {
    var rest = fragment
    rest.properties.removeAll { key, _ in hasContent(key) }
    for entry in fragment.operations where hasContent(entry.key) {
      rest.operations[entry.key] = []
    }
    return rest.properties.isEmpty && rest.operations.isEmpty ? nil : rest
  }
}

extension ChangeSet {
  /// True if the change set is initial content, which has an effect only where the scope has no content yet.
  package var isInitialContent: Bool { procedure == InitialContent.procedure }

  /// Returns initial content whose inverse has the default values of the root's counters, as bases: the inverse itself
  /// only takes back what was added to them, and a log that is read without the class does not tell where that began.
  func notingDefaults(in scope: Scope) -> ChangeSet {
    guard let root = scope.root, let at = undo.firstIndex(where: { $0.uuid == root.uuid }) else {
      return self
    }
    var undo = undo
    for entry in undo[at].operations {
      guard let property = root.schema[wireName: entry.key], property.options.isCounter else {
        continue
      }
      undo[at].bases[entry.key] = property.defaultValue
    }
    return with(fragments, undo: undo)
  }

  /// Returns the value of a property of the root from which initial content departs; nil if the change set does not tell.
  func defaultValue(of key: String, root: UUID) -> JSONValue? {
    guard let change = undo.first(where: { $0.kind == .change && $0.uuid == root }) else {
      return nil
    }
    return change.properties[key] ?? change.bases[key]
  }

  /// True for a change set that is for a procedure of the app.
  var isCall: Bool { InitialContent.isCall(procedure) }

  /// The procedure that is sent to a server of version 1. Such a server has no procedure for initial content, which
  /// it applies like any other change set.
  var oldProcedure: String? { isInitialContent ? nil : procedure }
}

extension Replica {
  /// Turns the whole content of the scope into one pending change set.
  func takeContent() {
    scope.collectContent()
    scope.sealChanges()
  }

  /// Reduces undecided initial content when the server's first state has arrived: only the properties for which that
  /// state has no content stay visible and are sent.
  func dropInitialContent(where state: SyncFragment) {
    guard let at = pending.firstIndex(where: { $0.set.isInitialContent && !$0.isDecided })
    else { return }
    let entry = pending[at]
    let schema = scope.schema(of: state)
    let part = InitialContent(of: entry.set.fragments, root: state.uuid, in: scope) { key in
      guard let property = schema?[wireName: key] else { return false }
      if property.entryKey != nil {
        // The entries of a dictionary are one content.
        return state.properties.contains {
          let other = schema?[wireName: $0.key]
          return other?.entryKey != nil && other?.index == property.index
        }
      }
      guard let value = state.properties[key] else { return false }
      return !property.areSame(value, property.defaultValue)
    }
    guard part.fragments != entry.set.fragments else { return }
    beginBatch()
    let kept = Dictionary(uniqueKeysWithValues: zip(part.places, part.fragments))
    for (place, fragment) in entry.set.fragments.enumerated() {
      if fragment.kind == .add {
        if kept[place] == nil { decide(addition: fragment, of: entry.number, isAccepted: false) }
        continue
      }
      let rest = kept[place]
      for key in fragment.properties.map(\.key) where rest?.properties[key] == nil {
        drop(key, of: fragment, in: entry.number)
      }
      for key in fragment.operations.map(\.key) where rest?.operations[key].isEmpty ?? true {
        drop(key, of: fragment, in: entry.number)
      }
    }
    pending[at].set = entry.set.with(part.fragments, undo: entry.set.undo)
    pending[at].shared.madeHandle?.changeSet = pending[at].set
  }

  private func drop(_ key: String, of fragment: SyncFragment, in number: Int) {
    let name = PropertyKey(uuid: fragment.uuid, name: key)
    decide(name, className: fragment.className, by: number, false)
  }
}
