import Foundation
import Jetstream

/// The rules for the changes that clients may make in a scope.
///
/// ```swift
/// var rules = ScopeRules(otherwise: .deny)
/// rules.create(Message.self, "You can only write in your own name") { session, message in
///   message.author == session.principal?.id
/// }
/// rules.update(\Message.text, "Only its author edits a message") { session, old, new in
///   old.author == session.principal?.id
/// }
/// rules.insert(into: \Room.messages, "The room is closed") { session, room, message in
///   !room.isClosed
/// }
/// configuration.rules = { [rules] scope in scope.hasPrefix("room/") ? rules : nil }
/// ```
///
/// The server judges a client's change set by the differences that it would make, before anything is applied: a model that
/// comes in is created, also one that was deleted before; a model to which nothing leads any more is deleted, with the
/// models that only it has led to; all else is an update of a property, or an insertion, a removal or a move in a
/// collection. A difference that a rule denies rejects the fragments that make it, with the rule's reason as the message of
/// an error of type `rejected`, and of an atomic change set all fragments.
///
/// For a difference, the rules of the model's own class count, and otherwise those of the nearest class above it that has
/// one. A rule for the property takes precedence over the one for all properties. Of several rules for the same thing, each
/// has to permit it. What no rule speaks of is allowed or denied as `otherwise` says. What the app does to its own models is
/// not judged.
///
/// A rule that throws denies; a `WireError` that it throws is sent to the client. So does one that reads a property that the
/// scope does not have with that type. The closures run on the actor of the scope; they are called for each difference, and
/// again if other fragments of the change set were rejected.
public struct ScopeRules: Sendable {
  /// The answer to a change of which no rule speaks.
  public enum Verdict: Sendable, Hashable {
    case allow
    case deny
  }

  /// The answer to a change of which no rule speaks.
  let otherwise: Verdict
  /// True if clients may write properties and models of classes that the scope does not know, provided that the scope keeps
  /// them (``UnknownContent/keep``). No rule can speak of these, also where they are inserted into a collection whose
  /// insertions are judged otherwise: give it only to scopes whose users trust each other that far.
  public var allowsUnknownContent = false
  private(set) var rules: [Key: [Rule]] = [:]
  private(set) var reviews: [@Sendable (inout ProposedChangeSet) throws -> Void] = []

  /// Makes rules that speak of nothing yet.
  public init(otherwise: Verdict = .allow) { self.otherwise = otherwise }

  /// Permits to create models of a class if `isPermitted` returns true for the model as it would be.
  public mutating func create<Model: ModelObject>(
    _: Model.Type, _ reason: String,
    if isPermitted:
      @escaping @Sendable (_ session: SessionInfo, _ model: ModelView<Model>) throws -> Bool
  ) {
    add(.create, Model.self, nil, reason) { try isPermitted($0.session, $0.view(isAfter: true)) }
  }

  /// Permits to delete models of a class if `isPermitted` returns true for the model as it is.
  public mutating func delete<Model: ModelObject>(
    _: Model.Type, _ reason: String,
    if isPermitted:
      @escaping @Sendable (_ session: SessionInfo, _ model: ModelView<Model>) throws -> Bool
  ) {
    add(.delete, Model.self, nil, reason) { try isPermitted($0.session, $0.view(isAfter: false)) }
  }

  /// Permits to change any property of models of a class, also a collection, if `isPermitted` returns true for the model as
  /// it is and as it would be.
  public mutating func update<Model: ModelObject>(
    _: Model.Type, _ reason: String,
    if isPermitted:
      @escaping @Sendable (
        _ session: SessionInfo, _ old: ModelView<Model>, _ new: ModelView<Model>
      ) throws -> Bool
  ) {
    add(.update, Model.self, nil, reason) {
      try isPermitted($0.session, $0.view(isAfter: false), $0.view(isAfter: true))
    }
  }

  /// Permits to change one property: a value, a counter or a reference.
  public mutating func update<Model: ModelObject, Value: PropertyValue>(
    _ property: KeyPath<Model, Value> & Sendable, _ reason: String,
    if isPermitted:
      @escaping @Sendable (
        _ session: SessionInfo, _ old: ModelView<Model>, _ new: ModelView<Model>
      ) throws -> Bool
  ) {
    add(.update, Model.self, property, reason) {
      try isPermitted($0.session, $0.view(isAfter: false), $0.view(isAfter: true))
    }
  }

  /// Permits to insert models into a collection if `isPermitted` returns true for the collection's model as it is, and for
  /// the inserted model as it would be.
  public mutating func insert<Model: ModelObject, Child: ModelObject>(
    into collection: KeyPath<Model, ModelArray<Child>> & Sendable, _ reason: String,
    if isPermitted: @escaping Edit<Model, Child>
  ) {
    add(.insert, Model.self, collection, reason) { try $0.isPermitted(isPermitted, after: true) }
  }

  /// Permits to add entries to a dictionary, as ``insert(into:_:if:)-(KeyPath<Model,ModelArray<Child>>Sendable,_,_)`` does
  /// for a collection. A model that takes another one's place is inserted, and the other one removed.
  public mutating func insert<Model: ModelObject, Key, Child: ModelObject>(
    into dictionary: KeyPath<Model, ModelDictionary<Key, Child>> & Sendable, _ reason: String,
    if isPermitted: @escaping Edit<Model, Child>
  ) {
    add(.insert, Model.self, dictionary, reason) { try $0.isPermitted(isPermitted, after: true) }
  }

  /// Permits to remove models from a collection if `isPermitted` returns true for both models as they are.
  public mutating func remove<Model: ModelObject, Child: ModelObject>(
    from collection: KeyPath<Model, ModelArray<Child>> & Sendable, _ reason: String,
    if isPermitted: @escaping Edit<Model, Child>
  ) {
    add(.remove, Model.self, collection, reason) { try $0.isPermitted(isPermitted, after: false) }
  }

  /// Permits to remove entries from a dictionary if `isPermitted` returns true for both models as they are.
  public mutating func remove<Model: ModelObject, Key, Child: ModelObject>(
    from dictionary: KeyPath<Model, ModelDictionary<Key, Child>> & Sendable, _ reason: String,
    if isPermitted: @escaping Edit<Model, Child>
  ) {
    add(.remove, Model.self, dictionary, reason) { try $0.isPermitted(isPermitted, after: false) }
  }

  /// Permits to move models within a collection if `isPermitted` returns true for both models as they are.
  public mutating func move<Model: ModelObject, Child: ModelObject>(
    in collection: KeyPath<Model, ModelArray<Child>> & Sendable, _ reason: String,
    if isPermitted: @escaping Edit<Model, Child>
  ) {
    add(.move, Model.self, collection, reason) { try $0.isPermitted(isPermitted, after: false) }
  }

  /// A decision about a model that a collection or a dictionary of another one holds, or is to hold.
  public typealias Edit<Model: ModelObject, Child: ModelObject> =
    @Sendable (_ session: SessionInfo, _ holder: ModelView<Model>, _ child: ModelView<Child>)
    throws -> Bool

  /// Has `review` look at each change set as a whole, before its differences are judged. It can reject fragments and give
  /// properties other values. What it throws rejects the change set.
  public mutating func review(
    _ review: @escaping @Sendable (_ changes: inout ProposedChangeSet) throws -> Void
  ) {
    reviews.append(review)
  }
}

// MARK: Inside

extension ScopeRules {
  enum Operation: String, Hashable, CaseIterable {
    case create, delete, update, insert, remove, move
  }

  /// The subject of a rule: an operation on models of a class, or on one property of theirs, by the names on the wire.
  struct Key: Hashable {
    let operation: Operation
    let className: String
    let property: String?
  }

  struct Rule: Sendable {
    let reason: String
    let isPermitted: @Sendable (Question) throws -> Bool
  }

  /// The differences of one change set, about which rules are asked one after the other.
  struct Question {
    let session: SessionInfo
    let scope: TentativeScope
    private(set) var model: TentativeModel!
    /// The model that is inserted, removed or moved.
    private(set) var child: TentativeModel?

    init(by session: SessionInfo, in scope: TentativeScope) {
      (self.session, self.scope) = (session, scope)
    }

    /// Goes on to the next difference.
    mutating func ask(about model: TentativeModel, _ child: TentativeModel? = nil) {
      (self.model, self.child) = (model, child)
    }

    /// Returns the model that has changed. Its class is that of the rule.
    func view<Model: ModelObject>(isAfter: Bool) -> ModelView<Model> {
      ModelView(scope: scope, model: model, isAfter: isAfter)
    }

    func isPermitted<Model, Child>(_ edit: Edit<Model, Child>, after: Bool) throws -> Bool {
      guard let child: ModelView<Child> = child?.view(in: scope, isAfter: after) else {
        return false
      }
      return try edit(session, view(isAfter: false), child)
    }
  }

  private mutating func add<Model: ModelObject>(
    _ operation: Operation, _: Model.Type, _ property: PartialKeyPath<Model>?, _ reason: String,
    _ isPermitted: @escaping @Sendable (Question) throws -> Bool
  ) {
    let name = property.map { Model.property(at: $0) }
    precondition(
      name?.isSynced ?? true,
      "\(Model.self).\(name?.name ?? "") is local: clients cannot write it, so it needs no rule.")
    let key = Key(
      operation: operation, className: ModelSchema.of(Model.self).wireName,
      property: name?.wireName)
    rules[key, default: []].append(Rule(reason: reason, isPermitted: isPermitted))
  }
}
