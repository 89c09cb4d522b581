import Foundation
import Jetstream

/// A client's call of a procedure, while the server runs it.
///
/// ```swift
/// server.procedure(CheckOut.self) { checkOut, request in
///   let price = try request.read { (shop: Shop) in shop.price(of: checkOut.items) }
///   do {
///     try await payments.charge(request.id, price)
///     try request.commit { (shop: Shop) in
///       guard shop.price(of: checkOut.items) == price else {
///         throw WireError.rejected("The price has changed")
///       }
///       return try checkOut.run(on: shop)
///     }
///   } catch {
///     if !request.comesAgain {
///       // In a task of its own: that of the handler is cancelled if the call has taken too long.
///       try await Task { try await payments.cancel(request.id) }.value
///     }
///     throw error
///   }
/// }
/// ```
///
/// The scope goes on while the app waits for something, and so does what ``read(_:)`` has seen: what counts is what a commit
/// finds. A request ends with the first commit that succeeds, or when the handler has returned or thrown without one. It is
/// over, and nothing can be committed any more, when the client's rights are taken away, when it takes longer than
/// `Server.Configuration.procedureTime`, or when the server stops: the task in which the handler runs is cancelled then.
/// A call that the handler awaits may throw then, whether or not it has had its effect, and so may all that it awaits
/// afterwards: it has to clean up in another task.
///
/// A commit makes a change set of its own: it throws an error within `modify` and in an observer of the scope.
///
/// A server that is killed before the commit is durable has not decided: the client sends the call again, and the handler is
/// called again with the same ``id``.
public final class ProcedureRequest {
  /// The identity of the call: the same each time that the client sends it, and that of no other call in any scope, whatever
  /// clients claim. Name it to other services, so that they do once what is asked for again.
  ///
  /// A scope is known by its name and by the UUID of its root. If a server that is started again makes the root anew,
  /// and not from a log, give the root the same UUID.
  public let id: UUID
  /// The name of the procedure.
  public let name: String
  /// The name of the scope.
  public let scope: String
  /// The session that has sent the call.
  public let session: SessionInfo
  /// The changes that the client has made. Those of a procedure with arguments are its guess of what the procedure does.
  public let changes: [SyncFragment]

  /// True once the request is over and the call is not decided: the client sends it again, with the same ``id``, if it gets
  /// its rights back. What was done elsewhere for the call has to stay until then. False if the client has taken another
  /// identity, since the call has another ``id`` then.
  public var comesAgain: Bool { ending == .dropped(comesAgain: true) }

  /// The arguments; nil for a procedure that has none.
  let arguments: JSONValue?
  /// The end of the time that the procedure has.
  let deadline: Duration
  /// Traps unless the caller is on the server's actor.
  var requireHome: () -> Void = {}
  /// Called when the request is over before its handler has ended, to cancel the task of that.
  var onCancel: () -> Void = {}
  /// The engine's side of the request, a ``RunningCall``; nil once that has let go of it.
  weak var call: AnyObject?
  /// The replies to the client's changes, once they were rejected.
  var rejections: [FragmentReply]?
  /// The scope's content until the request is over; then its end.
  private var state: State
  /// Makes one change set of what its argument does, and decides the call with what that returns.
  private let make: (ProcedureRequest, (ModelObject) throws -> JSONValue) throws -> Void

  /// A call as the engine has received it.
  struct Call {
    let id: UUID
    let name: String
    let changes: [SyncFragment]
    let arguments: JSONValue?

    /// Returns the identity of a client's call. A client that gives another call the number of one that was not decided
    /// does not get the other's: what was done for it would count for this one. Nor does it with the same number in
    /// another scope of the same name, which has another root.
    static func identity(
      of sync: ScopeSync, by client: UUID, number: Int, in content: any HostedContent
    ) -> UUID {
      let meaning: JSONValue = [
        .string(content.name), content.root.map { .string($0.uuid.wireText) } ?? .null,
        sync.procedure.map { .string($0) } ?? .null,
        sync.arguments ?? .array(sync.fragments.map(\.json)),
      ]
      return UUID(
        named: "Jetstream call \(number) of \(client.wireText): \(meaning.text)")
    }
  }

  /// The end of a request.
  enum End: Equatable {
    /// The call was decided by a commit.
    case committed
    /// The call has failed.
    case failed
    /// The call is not decided.
    case dropped(comesAgain: Bool)
  }

  private enum State {
    case open(any HostedContent)
    case over(End)
  }

  init(
    _ call: Call, of session: SessionInfo, in content: any HostedContent, deadline: Duration,
    make: @escaping (ProcedureRequest, (ModelObject) throws -> JSONValue) throws -> Void
  ) {
    (id, name, changes, arguments) = (call.id, call.name, call.changes, call.arguments)
    scope = content.name
    self.session = session
    self.deadline = deadline
    state = .open(content)
    self.make = make
  }

  /// True while a commit is possible.
  package var isOpen: Bool { content != nil }

  private var content: (any HostedContent)? {
    if case .open(let content) = state { content } else { nil }
  }

  /// The end of the request; nil while it is open.
  var ending: End? { if case .over(let end) = state { end } else { nil } }

  /// Looks at the models as they are now, without what the call has changed on the client. Nothing may be changed in `body`.
  ///
  /// - Throws: the error of `body`; `CancellationError` if the request is over; `WireError` if the scope's root has another
  ///   class.
  public func read<Root: ModelObject, Value>(_ body: (Root) throws -> Value) throws -> Value {
    requireHome()
    guard let content else { throw CancellationError() }
    return try body(try root(content.root as? ModelObject))
  }

  /// Runs a procedure on the models as they are now, and makes one change set of what it does.
  ///
  /// - Returns: the output, which the client is sent when the change set is durable.
  /// - Throws: the error of the procedure, whose changes are taken back; `CancellationError` if the request is over;
  ///   `WireError` if the scope's root has another class; `ScopeError` if the scope refuses a change, such as a model with the
  ///   UUID of another one.
  @discardableResult
  public func commit<P: Procedure>(_ procedure: P) throws -> P.Output {
    try commit { (root: P.Root) in try procedure.run(on: root) }
  }

  /// Makes one change set of what `body` changes in the models. Without arguments, the client's changes come first, if the
  /// rules of the scope permit them.
  ///
  /// - Returns: the output, which the client is sent when the change set is durable.
  /// - Throws: the error of `body`, whose changes are taken back; `CancellationError` if the request is over; `WireError` if
  ///   the scope's root has another class, or if the client's changes are rejected; `ScopeError` if the scope refuses a change.
  @discardableResult
  public func commit<Root: ModelObject, Output: Encodable>(
    _ body: (Root) throws -> Output
  ) throws -> Output {
    requireHome()
    guard isOpen else { throw CancellationError() }
    var result: Output?
    try make(self) { model in
      let output = try body(try root(model))
      result = output
      return try JSONValue(encoding: output)
    }
    guard let result else { preconditionFailure("A procedure that has run has an output.") }
    return result
  }

  /// Makes one change set of the client's changes and what `body` does, without an output.
  public func commit<Root: ModelObject>(_ body: (Root) throws -> Void) throws {
    requireHome()
    guard isOpen else { throw CancellationError() }
    try make(self) { model in
      try body(try root(model))
      return .null
    }
  }

  /// Ends the request, and cancels the handler that has not committed.
  func end(as end: End) {
    state = .over(end)
    let onCancel = self.onCancel
    self.onCancel = {}
    if end != .committed { onCancel() }
  }

  /// Returns the arguments as those of a procedure.
  ///
  /// - Throws: `WireError` if they are not.
  package func arguments<P: Procedure>(of type: P.Type) throws(WireError) -> P {
    do {
      return try (arguments ?? .null).decoded(as: type)
    } catch {
      throw .couldNotApplySync(reason: "the arguments of procedure \(name) are not valid: \(error)")
    }
  }

  private func root<Root: ModelObject>(_ model: ModelObject?) throws(WireError) -> Root {
    guard let root = model as? Root else {
      throw .couldNotApplySync(reason: "procedure \(name) is not for scope \(scope)")
    }
    return root
  }
}
