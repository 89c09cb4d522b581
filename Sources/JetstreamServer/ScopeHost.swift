import Foundation
import Jetstream

/// One hosted scope: puts the change sets of all sessions, and the server's own, into one order.
///
/// Each applied set gets the next sequence number. What sessions may not have seen of it yet is
/// remembered up to the horizon: the number that all of them have proved to know.
final class ScopeHost: MembershipObserver, FragmentValidator.Memory {
  /// How a session stands to a scope when it submits.
  struct Submitter {
    let session: Int
    /// The sequence number up to which the session has provably seen everything.
    let proven: Int
    /// Whether its client keeps pending changes in front of what it is told. Such a client needs no
    /// correction where the effective value is the one that it submitted.
    let rebases: Bool
    /// For a client that does not: properties of which it was told something that it may not have
    /// seen when it submitted.
    let missed: Set<PropertyKey>

    /// The sequence number up to which its WebSocket has received everything, if that is more.
    var received = 0
    /// Whether it speaks of operations: version 2 of the protocol.
    var usesOperations = false
    /// Who it is, and which of its sets it submits, if it numbers them.
    var author: StreamItem.Author?
    /// What it says of the set.
    var origin = ChangeOrigin()

    func mayHaveMissed(_ name: PropertyKey) -> Bool { missed.contains(name) }
  }

  /// What became of a submission.
  struct Result {
    var replies: [FragmentReply]
    /// What all other sessions are told; nil if nothing was accepted.
    var item: StreamItem?
    /// What a session that knows no operations has to be told besides the replies.
    var correction: [SyncFragment] = []
    /// What was done instead of what a session with operations has submitted, if that differs.
    var effective: [SyncFragment]?
  }

  let scope: Scope
  /// Tells what time it is, for changes of the server's app that have no date.
  var date: () -> Date? = { nil }
  /// What is done with properties and classes that the scope does not know.
  var unknown: UnknownContent
  private(set) var sequence = 0
  /// Tells this history of the scope from others.
  private(set) var epoch: String
  /// The newest part of the order.
  private(set) var stream: ScopeStream
  /// What was decided of the sets of clients that number them.
  var clients = ClientTable()
  /// Keeps what it is given, and says so through ``stored(_:)``; without it nothing is kept.
  var store: ((ScopeRecord) -> Void)?
  /// How many submissions are being decided whose records were not handed over.
  var openSteps = 0
  /// How many records were made, and how many of them are kept.
  var madeRecords = 0
  var storedRecords = 0
  /// What waits for records to be kept.
  var untold: [(records: Int, action: () -> Void)] = []
  /// The properties of the root that were written in this history, by their names on the wire; nil if it began with a
  /// log that does not say so.
  var written: Set<String>? = []
  /// What the scope comes to, for clients that compare.
  private(set) lazy var digest = ScopeDigest(scope)
  /// The subscriptions that are told each change as soon as it is kept, by the numbers of their sessions: those that
  /// want to be told everything and are told of all that came before. None of version 1.
  var listeners: [Int: Subscription] = [:]
  /// The same for version 1, whose sessions know no operations: those that have a connection.
  var valueListeners: [Int: Subscription] = [:]
  /// How many sessions know no operations: for them everything is named as values, too.
  var valueSessions = 0
  /// Called with the server's own changes, after they were given a number.
  var onLocalChanges: ((StreamItem) -> Void)?

  private(set) var histories: [PropertyKey: CollectionHistory] = [:]
  private(set) var departed: [UUID: (model: ModelObject, sequence: Int)] = [:]
  private(set) var arrived: [ModelObject] = []
  /// Models that the last submission brought back into the scope without an object: some session may
  /// not have them.
  private(set) var returned: Set<UUID> = []
  /// Models that have left the tree with the last submission.
  private var leaving: Set<UUID> = []
  /// Models whose addition was rejected: what refers to them was sent before that was known.
  private var rejectedAdditions: [UUID: Int] = [:]
  /// Up to where everything was forgotten last.
  private var lastHorizon: Int?
  /// Models that some session may have although the next set adds them: those that have come back since the last set,
  /// and those that are added once more.
  private var revived: Set<UUID> = []
  private var token: ObservationToken?

  init(
    scope: Scope, epoch: String, unknown: UnknownContent = .reject, streamLimit: ScopeStream.Limit
  ) {
    self.scope = scope
    self.epoch = epoch
    self.unknown = unknown
    stream = ScopeStream(limit: streamLimit)
    scope.sealChanges()
    scope.addMembershipObserver(self)
    token = scope.onSealedChanges.listen { [weak self] in self?.localChange($0) }
  }

  /// A submission is about to be applied.
  func begin() {
    sequence += 1
    arrived = []
    returned = []
    leaving = []
  }

  /// The history goes on behind this place.
  func begin(at sequence: Int, of epoch: String) { (self.sequence, self.epoch) = (sequence, epoch) }

  /// What there was of it is known.
  func append(_ item: StreamItem) { stream.append(item) }

  /// Models of unknown classes that are part of the scope and were not before.
  func noteReturned(_ before: Set<UUID>) {
    returned = scope.unknownModelUUIDs().subtracting(before).subtracting(leaving)
  }

  /// The addition of a model was rejected, or not.
  func note(addition uuid: UUID, isRejected: Bool) {
    rejectedAdditions[uuid] = isRejected ? sequence + 1 : nil
  }

  /// A submission adds a model that the scope has.
  func noteAddedAgain(_ uuid: UUID) { revived.insert(uuid) }

  /// How many rejected additions are remembered.
  var rejectedAdditionCount: Int { rejectedAdditions.count }

  func wasRejected(_ uuid: UUID) -> Bool { rejectedAdditions[uuid] != nil }

  func end() {
    token?.cancel()
    scope.removeMembershipObserver(self)
    forgetSubscriptions()
  }

  func forgetSubscriptions() {
    listeners = [:]
    valueListeners = [:]
  }

  /// A model that has left for the sessions, and is in no other scope by now. A local property of the server
  /// may still hold it.
  func departed(_ uuid: UUID) -> ModelObject? {
    guard let model = departed[uuid]?.model else { return nil }
    if model.scope == nil { return model }
    return model.scope === scope && scope.sharedModel(uuid) == nil ? model : nil
  }

  func modelEntered(_ model: ModelObject) {
    if departed.removeValue(forKey: model.uuid) != nil { revived.insert(model.uuid) }
    if scope.isWritingRemotely { arrived.append(model) }
  }

  /// A submission has its number before it is applied; the server's own changes get theirs after.
  func modelLeft(_ model: ModelObject) {
    // Sessions never knew a model that a call of `modify` has added and takes back.
    if scope.isRollingBack, !revived.contains(model.uuid) { return }
    departed[model.uuid] = (model, scope.isWritingRemotely ? sequence : sequence + 1)
    if unknown == .keep { leaving.insert(model.uuid) }
  }

  func modelWithdrawn(_ model: ModelObject) { modelLeft(model) }

  func modelShared(_ model: ModelObject) { modelEntered(model) }

  /// Forgets what every session has seen.
  func forget(upTo horizon: Int) {
    // What has come since the last call is behind its horizon.
    guard horizon != lastHorizon else { return }
    lastHorizon = horizon
    if !rejectedAdditions.isEmpty {
      rejectedAdditions = rejectedAdditions.filter { $0.value > horizon }
    }
    if !departed.isEmpty { departed = departed.filter { $0.value.sequence > horizon } }
    for (key, var history) in histories {
      history.forget(upTo: horizon)
      histories[key] = history.isEmpty ? nil : history
    }
  }

  // MARK: The server's own changes

  private func localChange(_ sealed: SealedChanges) {
    sequence += 1
    for fragment in sealed.set.fragments where fragment.kind == .change {
      note(fragment.operations, of: fragment.uuid, origin: nil)
    }
    var origin = ChangeOrigin(of: sealed.set)
    origin.date = origin.date ?? date()
    let item = StreamItem(
      sequence: sequence, author: nil, origin: origin,
      fragments: sealed.set.fragments,
      whole: valueSessions > 0 ? sealed.whole.fragments : nil,
      newcomers: newcomers(among: sealed.set.fragments))
    stream.append(item)
    noteWritten(item.fragments)
    onLocalChanges?(item)
  }

  func newcomers(among fragments: [SyncFragment]) -> Set<UUID> {
    defer { revived = [] }
    return Set(fragments.lazy.filter { $0.kind == .add }.map(\.uuid)).subtracting(revived)
  }

  func note(_ key: PropertyKey, from old: JSONValue, to new: JSONValue, origin: Int?) {
    histories[key, default: CollectionHistory()].note(
      from: FragmentValidator.uuids(in: old), to: FragmentValidator.uuids(in: new),
      sequence: sequence, origin: origin)
  }

  /// Notes what operations have put into collections and taken out of them.
  func note(_ operations: PropertyOperations, of uuid: UUID, origin: Int?) {
    // Only who names whole collections may leave something out by mistake.
    if valueSessions == 0 { return }
    for entry in operations where entry.operations.contains(where: { $0.model != nil }) {
      histories[PropertyKey(uuid: uuid, name: entry.key), default: CollectionHistory()].note(
        entry.operations, sequence: sequence, origin: origin)
    }
  }
}
