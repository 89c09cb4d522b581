import Foundation
import Jetstream

/// A model of the content that a server hosts: an object of the app, or a row.
package protocol HostedModel: AnyObject {
  var uuid: UUID { get }
  /// The name of the class on the wire, which may be one that the server does not know.
  var wireClassName: String { get }
  /// The class as which the server treats the model.
  var classSchema: ClassSchema { get }
  /// Returns the value of a property, or of an entry of a dictionary, as clients are to know it.
  func currentJSON(of property: PropertySchema) -> JSONValue
  /// Returns every synced property with its value, as clients are to know it: of dictionaries, the entries that there are.
  func currentProperties() -> JSONObject
  /// Returns the value of a property that the class does not have; nil if there is none.
  func unknownValue(_ key: String) -> JSONValue?
  /// Returns the models that a collection or a dictionary holds.
  func models(in property: PropertySchema) -> [UUID]
  /// Returns the number of models that a collection holds.
  func modelCount(in collection: PropertySchema) -> Int
  /// Returns the number of models of a collection that are compared with others when a number of operations is applied
  /// to it.
  func comparisons(byApplying operations: Int, to collection: PropertySchema) -> Int
  /// Returns those of `models` that a collection contains, from front to back, with their places.
  func places(
    of models: [UUID], in collection: PropertySchema
  ) -> [(model: UUID, place: PropertyOperation.Place)]
}

/// Something that a server can host: a scope of the app, or rows.
package protocol Hostable: AnyObject {
  /// Makes the content that a host works on. Called once for each host.
  func makeContent() -> any HostedContent
}

/// The host of some content, as the content sees it.
package protocol ContentHost: AnyObject {
  /// Takes a model that has come into the content. `byClient` is false for a change of the app.
  func entered(_ model: any HostedModel, byClient: Bool)
  /// Takes models that have come into the content, in their order.
  func entered<Model: HostedModel>(all models: [Model], byClient: Bool)
  /// Takes a model that has left the content.
  func left(_ model: any HostedModel, _ leaving: Leaving)
  /// Makes room for a number of models that are about to leave.
  func expect(departures count: Int)
  /// Takes a change set of the app.
  func localChange(_ sealed: SealedChanges)
  /// Calls `body` with each model that has left and may come back.
  func forEachDeparted(_ body: (any HostedModel) -> Void)
}

/// The circumstances in which a model leaves a hosted scope.
package struct Leaving {
  /// True if a client's change set takes it out, false for a change of the app.
  var byClient = false
  /// True if the app takes back what it has added, in a change that clients were never told of.
  var takesBack = false
  /// True if only local properties of the app held it: for clients it was gone already, or never there.
  var wasHidden = false
}

/// The content of one hosted scope, as its host sees it: a scope of the app, or rows.
package protocol HostedContent: AnyObject {
  /// The host, which is told of changes; held weakly.
  var host: (any ContentHost)? { get set }
  /// The name under which clients fetch the content.
  var name: String { get }
  /// The root; nil if a scope has none.
  var root: (any HostedModel)? { get }
  /// False if nothing but the content itself holds a scope of the app.
  var isHeldByApp: Bool { get }

  /// Returns a model of the content, also one that only local properties hold.
  func model(_ uuid: UUID) -> (any HostedModel)?
  /// Returns a model that clients have, too.
  func sharedModel(_ uuid: UUID) -> (any HostedModel)?
  /// Returns true if a model that has left is nowhere else by now.
  func isGone(_ model: any HostedModel) -> Bool
  /// Returns the synced properties, and the entries of dictionaries, that hold a model.
  func holders(of model: any HostedModel) -> [PropertyKey]
  /// Returns a model and all models below it as additions, depth first, as clients are to know them.
  func subtree(of model: any HostedModel) -> [SyncFragment]
  /// Returns a model as clients are to know it.
  func fragment(of model: any HostedModel, _ kind: SyncFragment.Kind) -> SyncFragment
  /// Calls `body` with each model that a synced property of a model holds, in order.
  func forEachChild(of model: any HostedModel, _ body: (UUID) -> Void)
  /// Returns all models: the root as a change, first, then the others, depth first.
  func sharedState() -> [SyncFragment]

  /// The number of models, with those that only unknown properties refer to and those that only local properties of
  /// the app hold. Cost: O(1), and O(unknown values) once after some changes of these.
  var modelCount: Int { get }
  /// True if nothing but change sets changes the content: no code of the app has its models.
  var changesBySetsAlone: Bool { get }
  /// True if a class that the content knows has a property whose values are unique in a collection.
  var hasUnique: Bool { get }
  /// Returns a class that the content knows.
  func schema(named wireName: String) -> ClassSchema?
  /// Returns the class of the model that a fragment is of.
  func schema(of fragment: SyncFragment) -> ClassSchema?

  /// Applies what was accepted. Returns what could not be applied, by the index of the fragment.
  ///
  /// - Parameter known: Finds models that have left and may come back.
  func apply(
    _ fragments: [SyncFragment], known: @escaping (UUID) -> (any HostedModel)?
  ) -> [(fragment: Int, error: ScopeError)]
  /// Applies a change set of the app, or of a procedure. Returns what could not be applied, by the index of the fragment.
  func applyOwn(
    _ fragments: [SyncFragment], known: @escaping (UUID) -> (any HostedModel)?
  ) -> [(fragment: Int, error: ScopeError)]
  /// True unless a change set of the app's own would be part of others that are being made, applied or delivered.
  var canModify: Bool { get }
  /// Makes one change set, with the identity and the labels of `set`, of what `body` does with the root.
  ///
  /// - Throws: the error of `body`, whose changes are taken back; `WireError` for content that has no models.
  func modify(_ set: ChangeSet, _ body: (ModelObject) throws -> Void) throws
  /// Replaces everything by a full state, whose first fragment is the root. Returns what did not fit.
  func restore(_ state: [SyncFragment]) throws(ScopeError) -> [(fragment: Int, error: ScopeError)]

  /// Returns the digest of the content, as `StateDigest.total(budget:)` does; nil if it cannot be compared.
  func digest(budget: Int) -> StateDigest.Total?
  /// Returns the models in the parts whose digests differ from the given ones.
  func fragments(whereNot parts: [UInt64]) -> [SyncFragment]

  /// Describes what must not be the case, a line for each; for tests.
  func checkInvariants() -> [String]

  // Content that only clients change, and whose classes are all known, leaves out the rest.

  /// Begins to tell the host of changes.
  func begin()
  /// Ends to tell the host of changes.
  func end()
  /// Seals the app's own changes that were made so far.
  func seal()
  /// Seals the app's own changes with those that wait for a minimal sync interval, since nothing is told any more.
  func sealAll()
  /// True if the app has made no change that is not sealed.
  var isSealed: Bool { get }
  /// Seals the app's own changes. Returns false if the content is in the middle of a step.
  func settle() -> Bool
  /// True if the app wants to be told what clients change.
  var isListenedTo: Bool { get }
  /// Tells the app what a client has changed.
  func tell(_ changes: @autoclosure () -> RemoteChanges)
  /// True if there are models of unknown classes.
  var hasUnknownModels: Bool { get }
  /// The number of models of unknown classes, with those that nothing refers to. Cost: O(1).
  var unknownModelCount: Int { get }
  /// Returns the models of unknown classes.
  func unknownModelUUIDs() -> Set<UUID>
  /// Returns a model of an unknown class.
  func unknownModel(_ uuid: UUID) -> SyncFragment?
  /// Returns the models of unknown classes that a value refers to, with those that these refer to.
  func unknownModels(referredToBy value: JSONValue) -> [SyncFragment]
  /// Returns the value of a property that no class has.
  func unknownValue(_ key: PropertyKey) -> JSONValue?
  /// Returns the names of the properties of a model that its class does not have.
  func unknownKeys(of model: any HostedModel) -> [String]
}

extension HostedContent {
  package var changesBySetsAlone: Bool { false }
  package var isHeldByApp: Bool { true }
  package var canModify: Bool { true }
  package func modify(_ set: ChangeSet, _ body: (ModelObject) throws -> Void) throws {
    throw WireError.couldNotApplySync(reason: "the scope is served without its models")
  }
  package func checkInvariants() -> [String] { [] }
  package func begin() {}
  package func end() {}
  package func seal() {}
  package func sealAll() {}
  package var isSealed: Bool { true }
  package func settle() -> Bool { true }
  package var isListenedTo: Bool { false }
  package func tell(_ changes: @autoclosure () -> RemoteChanges) {}
  package var hasUnknownModels: Bool { false }
  package var unknownModelCount: Int { 0 }
  package func unknownModelUUIDs() -> Set<UUID> { [] }
  package func unknownModel(_ uuid: UUID) -> SyncFragment? { nil }
  package func unknownModels(referredToBy value: JSONValue) -> [SyncFragment] { [] }
  package func unknownValue(_ key: PropertyKey) -> JSONValue? { nil }
  package func unknownKeys(of model: any HostedModel) -> [String] { [] }
}
