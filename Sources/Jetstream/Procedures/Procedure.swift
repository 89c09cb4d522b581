/// A change that the server makes for a client: a function over the models of a scope, with arguments, a result and an
/// error of its own.
///
/// ```swift
/// struct Sell: Procedure {
///   static let name = "Shop.sell"
///   let item: UUID
///   let count: Int
///
///   enum Failure: Error, Codable { case soldOut(left: Int) }
///
///   func run(on shop: Shop) throws(Failure) -> Int {
///     guard let item = shop.items.first(where: { $0.uuid == item }) else { throw .soldOut(left: 0) }
///     guard item.stock >= count else { throw .soldOut(left: item.stock) }
///     item.stock -= count
///     return item.price * count
///   }
/// }
/// ```
///
/// The stored properties are the arguments. ``Scope/call(_:message:author:)`` runs the function on the client's models, shows
/// the changes at once, and has the server run it again, on what is there when the call comes to its turn. The changes of
/// the server replace those of the client. So both have the same type: put it into a module that both use.
///
/// The function has to depend on nothing but its arguments and the models. A model that it adds on both sides gets two
/// identities, and the client's gives way to the server's: name its UUID in the arguments to have one.
public protocol Procedure: Codable, Sendable {
  /// The class of the scope's root.
  associatedtype Root: ModelObject
  /// The result, which the client is sent.
  associatedtype Output: Codable & Sendable
  /// The errors of the procedure's own, which the client is sent.
  associatedtype Failure: Error & Codable

  /// The name under which clients call the procedure, such as `Shop.sell`: two words with a dot between them.
  static var name: String { get }

  /// Makes the changes, all or none: those that were made before an error is thrown are taken back. Called on the isolation
  /// domain of the scope, within ``Scope/modify(_:author:_:)`` or the like.
  func run(on root: Root) throws(Failure) -> Output
}

extension Procedure {
  /// The arguments as JSON.
  ///
  /// - Throws: the error of an argument that cannot be encoded.
  package var arguments: JSONValue { get throws { try JSONValue(encoding: self) } }
}
