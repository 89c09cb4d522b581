import Jetstream
import JetstreamServer
import Testing

/// Observers that are called at once for a model that is in no scope while others' changes of it are written.
@Suite("Observers of a removed model that others change")
struct ObserversOutsideTests: ScriptedSuite {
  let server = ScriptedServer()
  let shape = Shape()

  init() { joinWithShape() }

  /// Removes the shape in a change set that the server has not decided.
  private func removeShape() {
    canvas.shapes.remove(shape)
    scope.flush()
    _ = server.takeSyncs()
  }

  /// Calls `body` when `x` of the shape changes, and returns the change sets that are sent then.
  private func sent(by body: @escaping () -> Void) -> [ScopeSync] {
    let token = shape.observeChangeImmediately(server, \.x) { _, _, _ in body() }
    defer { token.cancel() }
    server.tell(change(shape, ["x": 9]))
    #expect(shape.x == 9)
    scope.flush()
    #expect(server.engine.checkInvariants() == [])
    return server.takeSyncs()
  }

  @Test("A value that an observer writes is sent")
  func value() {
    removeShape()
    let sets = sent { [canvas] in canvas.name = "mine" }
    #expect(sets.map { $0.fragments.map(\.properties) } == [[["name": "mine"]]])
    server.reply(to: sets.first?.index ?? 0, no)
    #expect(canvas.name == nil)
  }

  @Test("A model that an observer inserts is added")
  func insertion() {
    removeShape()
    let new = Shape()
    let sets = sent { [canvas] in canvas.hidden.append(new) }
    #expect(sets.flatMap(\.fragments).map(\.kind) == [.add, .change])
    #expect(sets.first?.fragments.first?.uuid == new.uuid)
  }

  @Test("The removed model itself is added when an observer puts it back")
  func putBack() {
    removeShape()
    let sets = sent { [canvas, shape] in canvas.shapes.append(shape) }
    #expect(sets.flatMap(\.fragments).map(\.kind) == [.add, .change])
    #expect(sets.first?.fragments.first?.uuid == shape.uuid)
  }

  @Test("The removal of another model by an observer is sent")
  func removal() {
    canvas.hidden.append(Shape())
    removeShape()
    let sets = sent { [canvas] in canvas.hidden.removeAll() }
    #expect(sets.flatMap(\.fragments).map { $0.properties["hidden"] } == [.array([])])
  }

  @Test("A value that an observer writes while others bring the model back is sent")
  func broughtBack() {
    removeShape()
    let token = shape.observeChangeImmediately(server, \.x) { [canvas] _, _, _ in
      canvas.name = "mine"
    }
    defer { token.cancel() }
    server.tell(
      SyncFragment(.add, uuid: shape.uuid, className: "Shape", properties: ["x": 9]),
      change(canvas, ["selected": .string(shape.uuid.wireText)]))
    #expect(shape.x == 9)
    scope.flush()
    #expect(server.engine.checkInvariants() == [])
    let sets = server.takeSyncs()
    #expect(sets.flatMap(\.fragments).map { $0.properties["name"] } == ["mine"])
  }

  @Test("A value that an observer writes is sent also if another scope had the model meanwhile")
  func throughAnotherScope() {
    let other = Scope(name: "Other", root: Canvas(), ticker: server.ticker)
    removeShape()
    let drawer = other.root as? Canvas
    drawer?.shapes.append(shape)
    other.flush()
    // The other scope collects what the model does until its next change set.
    drawer?.shapes.removeAll()
    let sets = sent { [canvas] in canvas.name = "mine" }
    #expect(sets.flatMap(\.fragments).map { $0.properties["name"] } == ["mine"])
  }
}
