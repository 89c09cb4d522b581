import Foundation
import Jetstream

extension Row: HostedModel {
  package var wireClassName: String { schema.wireName }

  package var classSchema: ClassSchema { schema }

  package func currentJSON(of property: PropertySchema) -> JSONValue { self[property].json }

  package func currentProperties() -> JSONObject { properties }

  package func unknownValue(_ key: String) -> JSONValue? { nil }

  package func models(in property: PropertySchema) -> [UUID] {
    var result: [UUID] = []
    self[property].forEachModel { result.append($0) }
    return result
  }

  package func modelCount(in collection: PropertySchema) -> Int {
    if case .collection(let list) = self[collection] { list.elements.count } else { 0 }
  }

  package func comparisons(byApplying operations: Int, to collection: PropertySchema) -> Int {
    if case .collection(let list) = self[collection] {
      list.comparisons(byApplying: operations)
    } else {
      0
    }
  }

  package func places(
    of models: [UUID], in collection: PropertySchema
  ) -> [(model: UUID, place: PropertyOperation.Place)] {
    guard case .collection(let list) = self[collection] else { return [] }
    return list.indices(of: Set(models)).map {
      (list.elements[$0], list.place(ofElementAt: $0))
    }
  }
}

extension RowsContent: Hostable {
  package func makeContent() -> any HostedContent { self }
}

/// Rows of classes that are known from a schema alone. Only clients change them.
package final class RowsContent: HostedContent {
  package weak var host: (any ContentHost)?
  package let name: String
  let document: Document
  /// The digest, from the first time that it is asked for.
  private var stateDigest: StateDigest?
  /// The size of the rows, and their number, until the host has taken it; nil if they were not measured.
  private var measuredSize: (bytes: Int, count: Int)?
  /// The errors of what a history has and the schema does not have, one for each class and property.
  private(set) var leftOut: [String: ScopeError] = [:]

  /// Makes content of a new root.
  package convenience init(name: String, _ schema: ScopeSchema) {
    self.init(name: name, Document(schema: schema.schema, root: UUID()))
  }

  init(name: String, _ document: Document) {
    self.document = document
    self.name = name
  }

  package var root: (any HostedModel)? { document.root }

  package func model(_ uuid: UUID) -> (any HostedModel)? { document[uuid] }

  package func sharedModel(_ uuid: UUID) -> (any HostedModel)? { document[uuid] }

  package func isGone(_ model: any HostedModel) -> Bool {
    (model as? Row).map { !document.has($0) } ?? false
  }

  package func holders(of model: any HostedModel) -> [PropertyKey] {
    (model as? Row).map { document.holders(of: $0) } ?? []
  }

  package func subtree(of model: any HostedModel) -> [SyncFragment] {
    (model as? Row).map { document.subtree(of: $0) } ?? []
  }

  package func fragment(of model: any HostedModel, _ kind: SyncFragment.Kind) -> SyncFragment {
    guard let row = model as? Row else {
      preconditionFailure("The models of a document are rows.")
    }
    return document.fragment(of: row, kind)
  }

  package func forEachChild(of model: any HostedModel, _ body: (UUID) -> Void) {
    (model as? Row)?.forEachChild { uuid, _ in body(uuid) }
  }

  package func sharedState() -> [SyncFragment] { document.fullState() }

  package var modelCount: Int { document.count }

  package var changesBySetsAlone: Bool { true }

  package var hasUnique: Bool { document.schema.hasUnique }

  package func schema(named wireName: String) -> ClassSchema? { document.schema[wireName] }

  package func schema(of fragment: SyncFragment) -> ClassSchema? {
    document.schema[fragment.className]
  }

  package func apply(
    _ fragments: [SyncFragment], known: @escaping (UUID) -> (any HostedModel)?
  ) -> [(fragment: Int, error: ScopeError)] {
    apply(fragments, byClient: true, known: known)
  }

  /// Applies a change set that no client has made.
  package func applyOwn(
    _ fragments: [SyncFragment], known: @escaping (UUID) -> (any HostedModel)?
  ) -> [(fragment: Int, error: ScopeError)] {
    apply(fragments, byClient: false, known: known)
  }

  private func apply(
    _ fragments: [SyncFragment], byClient: Bool,
    known: @escaping (UUID) -> (any HostedModel)?
  ) -> [(fragment: Int, error: ScopeError)] {
    let outcome = document.apply(fragments, known: { known($0) as? Row })
    note(outcome, of: fragments, byClient: byClient)
    return outcome.errors
  }

  /// Begins to make a client's change set ready to be applied.
  ///
  /// - Parameter known: Finds models that have left and may come back.
  func prepare(
    _ fragments: [SyncFragment], known: @escaping (UUID) -> (any HostedModel)?
  ) -> RowPreparation {
    RowPreparation(of: fragments, in: document, known: { known($0) as? Row })
  }

  /// Applies a client's change set that was made ready. Returns what could not be applied, by the index of the fragment, and
  /// true if all was, and the models that it adds are all that have come or gone.
  func apply(
    _ preparation: inout RowPreparation
  ) -> (errors: [(fragment: Int, error: ScopeError)], onlyAdds: Bool) {
    let outcome = document.apply(&preparation)
    note(outcome, of: preparation.fragments, byClient: true)
    return (outcome.errors, outcome.onlyAdds)
  }

  private func note(
    _ outcome: Document.Outcome, of fragments: [SyncFragment], byClient: Bool
  ) {
    if let host {
      if !outcome.entered.isEmpty { host.entered(all: outcome.entered, byClient: byClient) }
      host.expect(departures: outcome.left.count)
      for row in outcome.left { host.left(row, Leaving(byClient: byClient)) }
    }
    guard let stateDigest else { return }
    // Read where they stand: each copy is retained field by field.
    let fragments = fragments.span
    for at in fragments.indices { stateDigest.note(fragments[at].uuid) }
    for row in outcome.entered { stateDigest.note(row.uuid) }
    for row in outcome.left { stateDigest.note(row.uuid) }
  }

  package func restore(
    _ state: [SyncFragment]
  ) throws(ScopeError) -> [(fragment: Int, error: ScopeError)] {
    let outcome = try document.restore(state)
    (stateDigest, leftOut) = (nil, [:])
    return outcome.errors
  }

  /// Notes that something of a history is left out, if the schema does not have its class or its property.
  func noteLeftOut(_ error: ScopeError) {
    switch error {
    case .unknownClass(let name, _): leftOut["class \(name)"] = error
    case .unknownProperty(let name, _, let key): leftOut["\(name).\(key)"] = error
    default: break
    }
  }

  /// Measures the rows away from the server's actor: that takes time in proportion to the scope. Nothing may change them
  /// until they are hosted.
  func measure() {
    var size = (bytes: 0, count: 0)
    for uuid in document.uuids {
      guard let row = document[uuid] else { continue }
      size.bytes += document.fragment(of: row, .add).roughSize
      size.count += 1
    }
    measuredSize = size
  }

  /// True if ``takeMeasuredSize()`` returns something.
  var isMeasured: Bool { measuredSize != nil }

  /// Removes and returns the size of the rows, and their number; nil if they were not measured.
  func takeMeasuredSize() -> (bytes: Int, count: Int)? {
    defer { measuredSize = nil }
    return measuredSize
  }

  package func digest(budget: Int) -> StateDigest.Total? { digest().total(budget: budget) }

  package func fragments(whereNot parts: [UInt64]) -> [SyncFragment] {
    digest().fragments(whereNot: parts)
  }

  package func checkInvariants() -> [String] { document.checkInvariants() }

  private func digest() -> StateDigest {
    if let stateDigest { return stateDigest }
    let made = StateDigest(of: document.uuids) { [document] uuid in
      document[uuid].map { row in
        StateDigest.Model(
          document.fragment(of: row, row === document.root ? .change : .add), row.schema)
      }
    }
    stateDigest = made
    return made
  }
}
