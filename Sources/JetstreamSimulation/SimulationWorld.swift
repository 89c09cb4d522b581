import Foundation
import Jetstream
import JetstreamServer

/// The subject of a simulation: model classes, an initial tree, and the edits that are made to it.
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
/// An edit must depend on the tree, the app's memory and the generator alone. New models get their
/// UUIDs from the generator; otherwise a failing seed need not fail again in the same way.
public struct SimulationWorld: Sendable {
  /// A function that changes a tree and returns a description of what it did.
  public typealias Edit<Root> = @Sendable (Root, Scope, inout SimulationRandom) -> String

  /// A function that changes a tree, using the app's memory, and returns a description of what it
  /// did.
  public typealias AppEdit<Root, App> = @Sendable (Root, App, inout SimulationRandom) -> String

  /// The name of the scope, and of the world in reports.
  public let name: String
  /// The names of the scripted edits, sorted.
  public var scriptNames: [String] { scripts.keys.sorted() }

  typealias ErasedEdit = @Sendable (Scope, Any, inout SimulationRandom) -> String

  let makeRoot: @Sendable (inout SimulationRandom) -> ModelObject
  let fill: @Sendable (Scope, inout SimulationRandom) -> Void
  let makeMemory: @Sendable (Scope, SimulationProcess) -> Any
  let edit: ErasedEdit
  let scripts: [String: ErasedEdit]
  let problems: @Sendable (Any) -> [String]
  let models: [ModelObject.Type]
  let clientModels: [ModelObject.Type]
  /// The server's rules, in runs that have some; nil for a world without any.
  var rules: ScopeRules?
  /// The procedure that clients call; nil for a world without one.
  var procedure: SimulatedProcedure?

  /// Creates a world whose edits need nothing but the tree.
  ///
  /// - Parameters:
  ///   - name: the name of the scope and, in lower case, of the world on the command line.
  ///   - root: makes an empty root; the server and each client have one of their own.
  ///   - fill: adds the initial content to the server's tree.
  ///   - edit: makes one random edit, on a client or on the server.
  ///   - scripts: edits by name, for schedules that are written by hand. Derived schedules also use
  ///     them now and then.
  ///   - models: model classes that property types do not lead to.
  ///   - clientModels: model classes that only clients know, so that the server rejects their
  ///     models.
  public init<Root: ModelObject>(
    _ name: String, root: @escaping @Sendable (UUID) -> Root,
    fill: @escaping @Sendable (Root, inout SimulationRandom) -> Void = { _, _ in },
    edit: @escaping Edit<Root>, scripts: [String: Edit<Root>] = [:],
    models: [ModelObject.Type] = [], clientModels: [ModelObject.Type] = []
  ) {
    self.init(
      name, root: root, fill: fill, app: { _, scope, _ in scope }, edit: edit, scripts: scripts,
      models: models, clientModels: clientModels)
  }

  /// Creates a world whose processes keep something in memory beside the tree, such as observers or
  /// an `UndoHistory`. A crash discards it.
  ///
  /// - Parameters:
  ///   - name: the name of the scope and, in lower case, of the world on the command line.
  ///   - root: makes an empty root; the server and each client have one of their own.
  ///   - fill: adds the initial content to the server's tree.
  ///   - app: makes the app's memory, when a process starts.
  ///   - edit: makes one random edit, on a client or on the server.
  ///   - scripts: edits by name.
  ///   - problems: returns what is wrong in the app's memory when everything is at rest.
  ///   - models: model classes that property types do not lead to.
  ///   - clientModels: model classes that only clients know.
  public init<Root: ModelObject, App>(
    _ name: String, root: @escaping @Sendable (UUID) -> Root,
    fill: @escaping @Sendable (Root, inout SimulationRandom) -> Void = { _, _ in },
    app: @escaping @Sendable (Root, Scope, SimulationProcess) -> App,
    edit: @escaping AppEdit<Root, App>, scripts: [String: AppEdit<Root, App>] = [:],
    problems: @escaping @Sendable (App) -> [String] = { _ in [] },
    models: [ModelObject.Type] = [], clientModels: [ModelObject.Type] = []
  ) {
    func erased(_ edit: @escaping AppEdit<Root, App>) -> ErasedEdit {
      { scope, memory, random in edit(Self.root(of: scope), Self.app(memory), &random) }
    }
    self.name = name
    makeRoot = { random in random.make(root) }
    self.fill = { scope, random in fill(Self.root(of: scope), &random) }
    makeMemory = { scope, process in app(Self.root(of: scope), scope, process) }
    self.edit = erased(edit)
    self.scripts = scripts.mapValues(erased)
    self.problems = { memory in problems(Self.app(memory)) }
    self.models = models
    self.clientModels = clientModels
  }

  /// The worlds that come with the simulation.
  public static let all = [workshop, garden, hall]

  private static func app<App>(_ memory: Any) -> App {
    guard let app = memory as? App else { preconditionFailure("The app is no \(App.self).") }
    return app
  }

  private static func root<Root: ModelObject>(of scope: Scope) -> Root {
    guard let root = scope.root as? Root else {
      preconditionFailure("The root of scope \(scope.name) is no \(Root.self) any more.")
    }
    return root
  }
}
