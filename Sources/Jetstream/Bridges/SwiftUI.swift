#if canImport(SwiftUI)
import Observation
import SwiftUI

/// A live query that a view makes once and keeps for as long as it is on screen.
///
/// ```swift
/// struct TodoList: View {
///   @Live private var todos: LiveQuery<Todo>
///
///   init(scope: Scope) {
///     _todos = Live { scope.query(Todo.self).filter { !$0.isDone }.sorted(by: \.due).live() }
///   }
///
///   var body: some View {
///     List(todos.rows, id: \.uuid) { todo in TodoRow(todo: todo) }
///   }
/// }
/// ```
///
/// The value of a view is made anew whenever its parent is shown again, and a query that its `init` ran each time would
/// look at all models each time. The closure is called once instead, when the view is first shown. A later value of
/// something that it has captured, such as another scope, has no effect: give the view another `id(_:)` for that.
///
/// The view is shown again when the rows have changed, because live queries are `Observable`. The wrapper works as well
/// for a ``LiveSections`` and a ``LiveValue``. The properties of a model are followed if its class is `Observable`.
///
/// Isolation: the main actor, which has to be that of the scope.
@propertyWrapper public struct Live<Content: AnyObject & Observable>: DynamicProperty {
  @StateObject private var holder: Holder

  /// Makes the wrapper. `make` is called when the view is first shown.
  public init(_ make: @escaping @MainActor () -> Content) {
    _holder = StateObject(wrappedValue: Holder(make))
  }

  /// The query.
  @MainActor public var wrappedValue: Content { holder.content }

  /// Makes the query when it is first asked for, and keeps it.
  @MainActor private final class Holder: ObservableObject {
    private let make: @MainActor () -> Content
    private(set) lazy var content: Content = make()

    nonisolated init(_ make: @escaping @MainActor () -> Content) { self.make = make }
  }
}
#endif
