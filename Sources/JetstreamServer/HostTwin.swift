import Foundation
import Jetstream

/// A second host of a scope, of rows in place of the app's models, that gets all that the first one gets. It notes where
/// the two decide, tell or keep different things.
///
/// For simulations: the models and the rows have to be worth the same to clients.
final class HostTwin {
  private let content: RowsContent
  private let host: ScopeHost
  /// The differences that were noted, a line for each.
  private(set) var problems: [String] = []
  private var comparisons = 0

  /// Makes the twin of a host that was just made or restored.
  init(of host: ScopeHost, _ schema: Schema) {
    content = RowsContent(name: host.content.name, Document(schema: schema, root: UUID()))
    let policy = ScopeHost.Policy(rules: host.policy.rules.map { RuleBook($0.rules) })
    self.host = ScopeHost(
      content: content, epoch: host.epoch, policy: policy, streamLimit: host.stream.limit)
    let state = host.content.sharedState()
    do {
      for (at, error) in try content.restore(state) {
        problems.append("rows refuse \(state[at].json): \(error)")
      }
    } catch {
      problems.append("rows cannot be restored: \(error)")
    }
    self.host.begin(at: host.sequence, of: host.epoch)
    self.host.written = host.written
  }

  /// Takes over what the app has changed in models that have left, and models that it has added and removed again: no
  /// change set tells of that, and only the models know it when they come back. Call it before the first host is given a
  /// change set.
  func prepare(_ first: ScopeHost) {
    for (uuid, model) in first.departedModels {
      if let row = host.departed(uuid) as? Row {
        content.document.setValues(of: row, to: model.currentProperties())
      } else if content.document[uuid] == nil,
        let row = content.document.makeRow(
          SyncFragment(
            .add, uuid: uuid, className: model.wireClassName,
            properties: model.currentProperties()))
      {
        host.tombstones.note(row, leftAt: first.tombstones.models[uuid]?.sequence ?? host.sequence)
      }
    }
  }

  /// Submits what the first host was given, and compares the results.
  ///
  /// - Parameter judged: the draft of a change set that was judged in slices, and what those have found: it depends on the
  ///   times of the slices, and is taken over.
  func submit(
    _ sync: ScopeSync, by submitter: ScopeHost.Submitter, _ first: ScopeHost,
    _ result: ScopeHost.Result,
    _ judged: (draft: ScopeHost.Draft, objections: [Int: WireError])? = nil
  ) {
    host.audience.valueSessions = first.audience.valueSessions
    // A host with a store notes inverses: this one, too, if the first does for whatever reason. Its records go nowhere.
    host.records.store = first.keepsInverses ? { _ in } : nil
    let before = result.set == nil ? nil : content.document.fullState()
    let draft = judged.map { judged in
      judged.draft.accepted.isEmpty
        ? judged.draft
        : host.judgedDraft(
          of: sync.fragments, isAtomic: sync.atomic == true, by: submitter,
          objections: judged.objections)
    }
    let own = host.submit(sync, by: submitter, judged: draft)
    compare("replies", "\(result.replies)", "\(own.replies)")
    compare("applied", text(result.item?.fragments), text(own.item?.fragments))
    compare("applied as values", text(result.item?.whole), text(own.item?.whole))
    compare(
      "new models", "\(result.item?.newcomers.sorted() ?? [])",
      "\(own.item?.newcomers.sorted() ?? [])")
    compare("corrected", text(result.correction), text(own.correction))
    compare("effective", text(result.effective), text(own.effective))
    compare(
      "inverse", text(withoutHeldBack(result.set?.undo, first)),
      text(withoutHeldBack(own.set?.undo, first)))
    compareStates(first)
    if let before, let set = own.set { undo(set.undo, to: before) }
  }

  /// Applies the inverse of the last submission to another document, and compares what that has with the state before.
  private func undo(_ inverse: [SyncFragment], to before: [SyncFragment]) {
    let document = Document(schema: content.document.schema, root: UUID())
    do {
      _ = try document.restore(content.document.fullState())
    } catch {
      return problems.append("rows cannot be restored: \(error)")
    }
    for (at, error) in document.apply(inverse).errors {
      problems.append("an inverse does not fit: \(error), of \(inverse[at].json)")
    }
    compare("undone", before.canonicalJSON, document.canonicalJSON)
  }

  /// Takes a change set of the app that the first host hosts.
  func localChange(_ sealed: SealedChanges, of first: ScopeHost) {
    host.audience.valueSessions = first.audience.valueSessions
    for (at, error) in content.applyOwn(
      sealed.set.fragments, known: { [host] in host.departed($0) })
    {
      problems.append("rows refuse \(sealed.set.fragments[at].json): \(error)")
    }
    host.localChange(sealed)
  }

  func forget(upTo horizon: Int) { host.forget(upTo: horizon) }

  func forgetRejected() { host.forgetRejected() }

  /// Compares what the two hosts keep. There are no changes that are not sealed.
  func compareStates(_ first: ScopeHost) {
    compare("the sequence", "\(first.sequence)", "\(host.sequence)")
    comparisons += 1
    // Both digests cost as much as what has changed, the rest as much as everything that there is.
    let isThorough = comparisons % 16 == 0
    if isThorough || first.content.digest(budget: .max) != content.digest(budget: .max) {
      compare(
        "the state", first.content.sharedState().canonicalJSON, content.document.canonicalJSON)
    }
    if isThorough { problems += host.checkInvariants() }
  }

  /// Leaves throttled properties out of the additions of models that have left: what the app has written to them and has
  /// not told yet comes back with the model, and only the model knows it.
  private func withoutHeldBack(_ inverse: [SyncFragment]?, _ first: ScopeHost) -> [SyncFragment]? {
    inverse?.map { fragment in
      guard fragment.kind == .add, let model = first.departed(fragment.uuid) as? ModelObject else {
        return fragment
      }
      var result = fragment
      for property in model.schema.throttledProperties {
        result.properties[property.wireName] = nil
      }
      return result
    }
  }

  private func text(_ fragments: [SyncFragment]?) -> String {
    fragments.map { $0.map { "\($0.json)" }.joined(separator: ",") } ?? "nothing"
  }

  private func compare(_ subject: String, _ models: String, _ rows: String) {
    if models == rows { return }
    problems.append("\(subject): models have \(models); rows have \(rows)")
  }
}

extension ServerEngine {
  /// Hosts a scope a second time, as rows beside its models, and compares the two from now on. Call it when the scope has
  /// just been hosted.
  package func compareWithRows(_ scope: Scope) {
    guard let host = hosts[ObjectIdentifier(scope)], let root = scope.root else { return }
    let schema = Schema(root: root.schema.data, classes: scope.schemas.map(\.data))
    host.twin = HostTwin(of: host, schema)
  }

  /// The differences between models and rows that were found so far.
  package var differencesFromRows: [String] { hosts.values.flatMap { $0.twin?.problems ?? [] } }
}
