import Foundation
import Jetstream

/// What a simulation is about: the model classes, how a tree of them begins, and how it is edited.
///
/// ```swift
/// let drawing = SimulationWorld(
///   "Drawing", root: Canvas.init(uuid:),
///   edit: { canvas, _, random in
///     if canvas.shapes.isEmpty || random.chance(0.3) {
///       canvas.shapes.append(random.make(Shape.init(uuid:)))
///       return "adds a shape"
///     }
///     random.pick(from: canvas.shapes)!.x = Float(random.number(in: 0...99))
///     return "moves a shape"
///   })
/// ```
///
/// An edit is a function of the tree and of the generator alone. New models get their UUIDs from the
/// generator; otherwise a failing seed need not fail again in the same way.
public struct SimulationWorld: Sendable {
  /// Changes a tree and says in words what it did.
  public typealias Edit<Root> = @Sendable (Root, Scope, inout SimulationRandom) -> String

  /// What the scope is called, and the world in reports.
  public let name: String
  /// The names of the scripted edits.
  public var scriptNames: [String] { scripts.keys.sorted() }

  let makeRoot: @Sendable (inout SimulationRandom) -> ModelObject
  let fill: @Sendable (Scope, inout SimulationRandom) -> Void
  let edit: @Sendable (Scope, inout SimulationRandom) -> String
  let scripts: [String: @Sendable (Scope, inout SimulationRandom) -> String]
  let models: [ModelObject.Type]
  let clientModels: [ModelObject.Type]

  /// Makes a world.
  ///
  /// - Parameters:
  ///   - root: makes an empty root; the server and each client have one of their own.
  ///   - fill: what the server's tree has at first.
  ///   - edit: one random edit, on a client or on the server.
  ///   - scripts: edits by name, for schedules that are written by hand. The generator of schedules
  ///     chooses them now and then as well.
  ///   - models: classes that can occur besides those that property types lead to.
  ///   - clientModels: classes that the server does not know, so that it rejects what clients make of
  ///     them.
  public init<Root: ModelObject>(
    _ name: String, root: @escaping @Sendable (UUID) -> Root,
    fill: @escaping @Sendable (Root, inout SimulationRandom) -> Void = { _, _ in },
    edit: @escaping Edit<Root>, scripts: [String: Edit<Root>] = [:],
    models: [ModelObject.Type] = [], clientModels: [ModelObject.Type] = []
  ) {
    self.name = name
    makeRoot = { random in random.make(root) }
    self.fill = { scope, random in fill(Self.root(of: scope), &random) }
    self.edit = { scope, random in edit(Self.root(of: scope), scope, &random) }
    self.scripts = scripts.mapValues { script in
      { scope, random in script(Self.root(of: scope), scope, &random) }
    }
    self.models = models
    self.clientModels = clientModels
  }

  private static func root<Root: ModelObject>(of scope: Scope) -> Root {
    guard let root = scope.root as? Root else {
      preconditionFailure("The root of scope \(scope.name) is no \(Root.self) any more.")
    }
    return root
  }
}
