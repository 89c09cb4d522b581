import Foundation
import Jetstream

/// Learns which models of a scope change, and what the server changes itself.
protocol ScopeOrderObserver: AnyObject {
  /// A model was changed, or has left the scope.
  func changed(_ uuid: UUID)
  /// A model has come into the scope.
  func arrived(_ uuid: UUID)
  /// Models have come into the scope.
  func arrived(all uuids: [UUID])
  /// A change set of the server's own has got its sequence.
  func appended(_ sealed: SealedChanges)
}

/// Puts the change sets of all sessions, and the server's own, into one order for one hosted scope.
///
/// It knows no sessions: ``ScopeHost`` tells it who submits.
///
/// Each applied change set gets the next sequence. What some session may not have seen yet, such as removed models and
/// inserted elements, is remembered up to the horizon: the sequence that all sessions have acknowledged.
///
/// A submission is checked, applied and recorded in one step, before its record is durable. The next submission is
/// checked against that state at once. Replies and broadcasts wait in ``records`` until the record is durable.
final class ScopeOrder: ContentHost, ContentMemory {
  /// The state of a session with respect to a scope when it submits.
  struct Submitter {
    let session: Int
    /// The sequence up to which the session has provably seen everything.
    let proven: Int
    /// True if the client rebases: it keeps its pending changes in front of what it is sent. Such a client needs no
    /// correction where the effective value is the one that it submitted.
    let rebases: Bool
    /// For a client that does not rebase: the properties of which it was sent values that it may not have seen when it
    /// submitted.
    var missed: UnacknowledgedWrites

    /// The sequence up to which the client's WebSocket has received everything, if that is more than ``proven``.
    var received = 0
    /// True if the session uses operations, that is, version 2 of the protocol.
    var usesOperations = false
    /// The client and the number of its change set; nil for a client that does not number its change sets.
    var author: StreamItem.Author?
    /// The author, date and message of the change set.
    var origin = ChangeOrigin()
    /// The session, as the app sees it; nil in a scope without rules.
    var info: SessionInfo?
    /// The room for models and longer values; nil for any number of bytes.
    var room: Room?
    /// True for the changes of a call. They become one change set of the scope's own with what the procedure does, which
    /// can be told, recorded and rolled back only as far as the scope's classes know the content.
    var bringsKnownContentOnly = false

    func mayHaveMissed(_ name: PropertyKey) -> Bool { missed.contains(name) }
  }

  /// The outcome of a submission. A class, since many look at it: each copy of a structure would be retained field by field.
  /// Nothing that runs during an access to one of its fields uses the same one.
  final class Result {
    @exclusivity(unchecked) var replies: [FragmentReply]
    /// The change set as it is broadcast to all other sessions; nil if nothing was accepted.
    @exclusivity(unchecked) var item: StreamItem?
    /// For a session without operations: the values that it has to be sent after the replies.
    @exclusivity(unchecked) var correction: [SyncFragment] = []
    /// For a session with operations: the fragments that were applied, if they differ from the submitted ones.
    @exclusivity(unchecked) var effective: [SyncFragment]?
    /// The applied change set with its inverse; nil if neither a log nor a listener of the app wants it.
    @exclusivity(unchecked) var set: ChangeSet?
    /// The server's own change sets that observers of this one have made.
    @exclusivity(unchecked) var behind: [(item: StreamItem, set: ChangeSet)] = []
    /// The outcome of the procedure that was called with arguments.
    @exclusivity(unchecked) var outcome: CallOutcome?
    /// The reasons for which rules could not decide, for the operator.
    @exclusivity(unchecked) var problems: [String] = []
    /// The limit because of which all was rejected after it was judged.
    @exclusivity(unchecked) var exceeded: ServerLimit?
    /// The number of models that the change set has led to, whatever its size: those that have come and gone, those of which
    /// rules were asked whether they may, and those of collections that were read or merged. What takes less time
    /// counts less: models that are only compared, and the bytes of values that are merged.
    @exclusivity(unchecked) var effort = 0

    init(
      replies: [FragmentReply], item: StreamItem? = nil, effective: [SyncFragment]? = nil,
      outcome: CallOutcome? = nil, problems: [String] = []
    ) {
      (self.replies, self.item, self.effective) = (replies, item, effective)
      (self.outcome, self.problems) = (outcome, problems)
    }

    /// The sequence of a change set that was accepted as it is, and does nothing that its client has to be told; nil for any
    /// other.
    var acceptedAsItIs: Int? {
      guard let item, effective == nil, outcome == nil, replies.areAllPlain else { return nil }
      return item.sequence
    }

    /// The replies to keep with the decision: none if the change set has a sequence and each reply accepts a fragment as it is.
    var keptReplies: [FragmentReply] {
      item != nil && replies.areAllPlain ? [] : replies
    }
  }

  /// The conditions under which clients may change the scope.
  struct Policy {
    /// The treatment of properties and classes that the scope does not know.
    var unknown = UnknownContent.reject
    /// The size in bytes up to which operations may make the value of such a property longer.
    var unknownValueBytes = Int.max
    /// The app's rules; nil for none.
    var rules: RuleBook?
  }

  let content: any HostedContent
  /// Returns the date for the server's own change sets that have none.
  var date: () -> Date? = { nil }
  // No access to those that are marked is open while other code runs: each is read or written in a single step.
  @exclusivity(unchecked) var policy: Policy
  @exclusivity(unchecked) private(set) var sequence = 0
  /// The identity of this history of the scope.
  private(set) var epoch: String
  /// The newest part of the order.
  @exclusivity(unchecked) var stream: ScopeStream
  /// The decisions on the change sets of clients that number them.
  @exclusivity(unchecked) var clients = ClientTable()
  /// The gate between the scope's records and what clients are told.
  let records = RecordGate()
  @exclusivity(unchecked) var written = WrittenProperties([])
  /// True if change sets are also kept as values, and the histories of collections are kept: sessions of version 1, which
  /// know no operations, may leave out an element by mistake.
  @exclusivity(unchecked) var needsValues = false
  @exclusivity(unchecked) weak var observer: (any ScopeOrderObserver)?
  /// Called with the server's own change sets after they got a sequence.
  var onLocalChanges: ((StreamItem, ChangeSet) -> Void)?

  /// The change set that a procedure is making.
  @exclusivity(unchecked) var committing: Commit?

  /// The memory of what has gone since the horizon.
  var tombstones = Tombstones()
  /// The models that come and go with a submission.
  @exclusivity(unchecked) var passage = Passage()

  init(
    content: any HostedContent, epoch: String, policy: Policy = Policy(),
    streamLimit: ScopeStream.Extent
  ) {
    self.content = content
    self.epoch = epoch
    self.policy = policy
    stream = ScopeStream(limit: streamLimit)
    content.host = self
    content.begin()
  }

  /// The treatment of properties and classes that the scope does not know.
  var unknown: UnknownContent { policy.unknown }

  /// Returns the treatment of properties and classes that the scope does not know in the changes of a submitter.
  func unknown(of submitter: Submitter) -> UnknownContent {
    submitter.bringsKnownContentOnly ? .reject : policy.unknown
  }

  /// Gives the submission that is about to be applied its sequence, and clears the notes about the last one.
  func begin() {
    // Models may be released with the notes, and change others on the way.
    passage.open()
    sequence += 1
  }

  /// Continues the history with the given epoch after `sequence`.
  func begin(at sequence: Int, of epoch: String) { (self.sequence, self.epoch) = (sequence, epoch) }

  /// True if the inverse of a submission is of use: to the log, which keeps it, or to a listener of the app.
  var keepsInverses: Bool { records.store != nil || content.isListenedTo }

  /// Appends an accepted change set to the stream, and notes what it writes.
  ///
  /// - Parameter onlyAdds: true if all models that it adds have come into the scope with it, which was noted.
  func append(_ item: StreamItem, onlyAdds: Bool = false) {
    stream.append(item)
    if let observer {
      let all = item.fragments
      let fragments = all.span
      for at in fragments.indices where !onlyAdds || fragments[at].kind == .change {
        observer.changed(fragments[at].uuid)
      }
    }
    noteWritten(item.fragments)
  }

  func wasRejected(_ uuid: UUID) -> Bool { tombstones.rejected[uuid] != nil }

  /// Returns a model that has left the shared tree and is in no other scope now. A local property of the server may
  /// still hold it.
  func departed(_ uuid: UUID) -> (any HostedModel)? {
    tombstones.models[uuid].flatMap { content.isGone($0.model) ? $0.model : nil }
  }

  /// The models that have left and are nowhere else now, by their UUIDs.
  var departedModels: [UUID: any HostedModel] {
    tombstones.models.mapValues(\.model).filter { content.isGone($0.value) }
  }

  func entered(_ model: any HostedModel, byClient: Bool) {
    tombstones.noteReturn(of: model.uuid)
    committing?.modelCount += 1
    observer?.arrived(model.uuid)
    if byClient { passage.noteArrival(model) }
  }

  func entered<Model: HostedModel>(all models: [Model], byClient: Bool) {
    // A key path of a generic type takes longer.
    let uuids = models.map { $0.uuid }
    for uuid in uuids { tombstones.noteReturn(of: uuid) }
    committing?.modelCount += models.count
    observer?.arrived(all: uuids)
    if byClient { passage.noteArrivals(models) }
  }

  /// A submission gets its sequence before it is applied; the server's own changes get theirs afterwards.
  func left(_ model: any HostedModel, _ leaving: Leaving) {
    observer?.changed(model.uuid)
    // Sessions never knew a model that a call of `modify` has added and takes back.
    if leaving.takesBack, !tombstones.revived.contains(model.uuid) { return }
    committing?.modelCount += 1
    tombstones.note(model, leftAt: leaving.byClient ? sequence : sequence + 1)
    if leaving.byClient { passage.noteLeaving(model, wasHidden: leaving.wasHidden) }
  }

  func forEachDeparted(_ body: (any HostedModel) -> Void) {
    for entry in tombstones.models.values { body(entry.model) }
  }

  /// Makes room for models that are about to leave.
  func expect(departures count: Int) { tombstones.reserve(count) }

  /// Forgets what is gone up to `horizon`, which every session has seen. Returns true if it was not forgotten before.
  @discardableResult
  func forget(upTo horizon: Int) -> Bool { tombstones.forget(upTo: horizon) }

  /// Forgets which additions were rejected, since no session has the scope.
  func forgetRejected() { tombstones.forgetRejected() }

  // MARK: The server's own changes

  func localChange(_ sealed: SealedChanges) {
    sequence += 1
    for fragment in sealed.set.fragments where fragment.kind == .change {
      note(fragment.operations, of: fragment.uuid, origin: nil)
    }
    let isOfCall = committing?.set == sealed.set.id
    var origin = isOfCall ? committing?.origin ?? .init() : ChangeOrigin(of: sealed.set)
    origin.date = origin.date ?? date()
    let item = StreamItem(
      sequence: sequence, author: isOfCall ? committing?.author : nil, origin: origin,
      fragments: sealed.set.fragments,
      whole: needsValues ? sealed.whole.fragments : nil,
      newcomers: takeNewcomers(among: sealed.set.fragments))
    append(item)
    if hasSizeLimit { notePassage(sealed.set) }
    observer?.appended(sealed)
    if isOfCall {
      committing?.made = (item, sealed.set)
    } else if committing?.made != nil {
      committing?.behind.append((item, sealed.set))
    } else {
      onLocalChanges?(item, sealed.set)
    }
  }

  /// Returns the models that a change set adds and that no session had before: none if no session needs to know.
  func takeNewcomers(among fragments: [SyncFragment]) -> Set<UUID> {
    if needsValues { return tombstones.takeNewcomers(among: fragments) }
    tombstones.forgetRevived()
    return []
  }

  /// Notes which models operations have inserted into collections and removed from them.
  func note(_ operations: PropertyOperations, of uuid: UUID, origin: Int?) {
    guard needsValues else { return }
    tombstones.note(operations, of: uuid, sequence: sequence, origin: origin)
  }
}
