import Jetstream

final class Canvas: ModelObject {
  @Property var name: String?
  @Property var shapes: ModelArray<Shape> = []
  @Property var selected: Shape?
}

final class Shape: ModelObject {
  @Property var x: Float = 0
  @Property var y: Float = 0
  @Property var width: Float = 100
  @Property var height: Float = 100
  @Property var color: RGBAColor = .red
  @Property(.local) var isSelected = false
  @Property var parts: ModelArray<Shape> = []

  var area: Float { width * height }
}

/// Somebody who observes; counts what it is told.
final class Listener {
  var count = 0
  var log: [String] = []
  func called() { count += 1 }
}

/// A node of any graph: two references and two collections of its own class.
final class Node: ModelObject {
  @Property var label = ""
  @Property var number = 0
  @Property var left: Node?
  @Property var right: Node?
  @Property var items: ModelArray<Node> = []
  @Property var others: ModelArray<Node> = []

  convenience init(_ label: String) {
    self.init()
    self.label = label
  }
}

/// A scope that only moves when it is told to.
func manualScope(_ root: ModelObject, models: [ModelObject.Type] = []) -> Scope {
  Scope(name: "Test", root: root, models: models, ticker: .manual())
}

extension Scope {
  /// Lets the change interval pass.
  func advance() { ticker.advance(by: changeInterval) }

  /// Calls `body` and gives the change sets that come out of it, with their ticks.
  func changeSets(of body: () -> Void) -> [ChangeSet] {
    var sets: [ChangeSet] = []
    let token = onChanges.listen { sets.append($0) }
    body()
    advance()
    token.cancel()
    return sets
  }
}
