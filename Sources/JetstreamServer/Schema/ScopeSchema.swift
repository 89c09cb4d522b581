import Jetstream

/// The model classes of a scope as data: what a server needs to host a scope whose classes it was not compiled with.
///
/// The app, which has the classes, writes the schema to a file:
///
/// ```swift
/// let schema = ScopeSchema(of: Board.self)
/// try schema.json.description.write(toFile: "board.json", atomically: true, encoding: .utf8)
/// ```
///
/// The server reads it:
///
/// ```swift
/// let text = try String(contentsOfFile: "board.json", encoding: .utf8)
/// server.host("board", schema: try ScopeSchema(JSONValue(parsing: text.utf8)))
/// ```
///
/// A schema has the names and types of the synced properties, their defaults, which of them are counters or have a rule for
/// merging, and the rules for their values. Clients whose classes have other properties, or properties of other types, get their changes to
/// these rejected.
///
/// Of an enumeration, the server accepts any raw value, and of a `CodableValue` any JSON: what only the
/// code of a type can refuse, the clients have to refuse.
public struct ScopeSchema: Sendable {
  let schema: Schema

  init(_ schema: Schema) { self.schema = schema }

  /// Makes the schema of a root's class and of the classes that property types lead to from it.
  ///
  /// - Parameters:
  ///   - root: The class of the root.
  ///   - others: Classes that can occur in the scope besides, such as subclasses of a property's class.
  public init(of root: ModelObject.Type, and others: [ModelObject.Type] = []) {
    let root = ModelSchema.of(root)
    var classes: [String: ClassSchema] = [:]
    for next in root.reachable(with: others.map { ModelSchema.of($0) }) {
      precondition(
        classes.updateValue(next.data, forKey: next.wireName) == nil,
        "Two classes of a schema are called \(next.wireName) on the wire; override wireName in one of them."
      )
    }
    schema = Schema(root: root.data, classes: Array(classes.values))
  }
}

/// The reason why JSON is not a schema: the place in it, and the problem.
public struct SchemaError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The place, such as `classes[2].properties[0].type`.
  public let place: String
  /// The problem, as a sentence without its subject.
  public let problem: String

  init(_ place: String, _ problem: String) { (self.place, self.problem) = (place, problem) }

  /// Place and problem in a line.
  public var description: String { "\(place) \(problem)" }
}
