import Testing

@testable import Jetstream

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct TokenTests {
  let canvas = Canvas()
  let shape = Shape()
  let scope: Scope
  let listener = Listener()

  init() {
    canvas.shapes = [shape]
    scope = manualScope(canvas)
  }

  /// Observes in every way that there is, on behalf of `listener`.
  private func observeAll(_ listener: Listener) -> [ObservationToken] {
    [
      shape.observeChange(listener, isolation: here()) { $0.called() },
      shape.observeChange(listener, \.x, isolation: here()) { $0.called() },
      shape.observeChange(listener, \.area, isolation: here()) { $0.called() },
      shape.signals.onPropertyChange.listen(listener) { me, _ in me.called() },
      shape.observeTreeChange(listener, isolation: here()) { $0.called() },
      canvas.observeCollectionAdd(listener, \.shapes) { me, _, _ in me.called() },
      canvas.observeCollectionRemove(listener, \.shapes) { me, _, _ in me.called() },
      canvas.observeCollectionMove(listener, \.shapes) { me, _, _, _ in me.called() },
      shape.observeAttach(listener) { me, _ in me.called() },
      shape.observeDetach(listener) { me, _ in me.called() },
      shape.observeAddedToParent(listener) { me, _, _ in me.called() },
      shape.observeRemovedFromParent(listener) { me, _, _ in me.called() },
      scope.onChanges.listen(listener) { me, _ in me.called() },
    ]
  }

  private func changeAll() {
    shape.width += 1
    shape.x += 1
    canvas.shapes.append(Shape())
    canvas.shapes.move(from: 0, to: 1)
    canvas.shapes.remove(shape)
    canvas.shapes.insert(shape, at: 0)
    scope.advance()
  }

  @Test("Every kind of token ends its observation; twice is harmless")
  func cancelAll() {
    let tokens = observeAll(listener)
    changeAll()
    #expect(listener.count >= tokens.count)
    listener.count = 0
    for token in tokens + tokens { token.cancel() }
    changeAll()
    #expect(listener.count == 0)
  }

  @Test("RemoveObservers ends all of one observer, and of no other")
  func removeObservers() {
    let other = Listener()
    _ = observeAll(listener)
    _ = observeAll(other)
    shape.removeObservers(listener)
    canvas.removeObservers(listener)
    scope.onChanges.removeListeners(of: listener)
    changeAll()
    #expect(listener.count == 0)
    #expect(other.count > 0)
  }

  @Test("A released observer is not retained and hears nothing")
  func observerReleased() {
    var temporary: Listener? = Listener()
    weak let weakListener = temporary
    let tokens = observeAll(temporary!)
    temporary = nil
    #expect(weakListener == nil)
    changeAll()
    #expect(tokens.allSatisfy { !$0.isCancelled })
    #expect(shape.record?.nodes.isEmpty == true)
    #expect(shape.record?.observers?.trees.isEmpty == true)
  }

  @Test("Tokens and observers do not retain the model or its scope")
  func modelReleased() {
    weak var weakShape: Shape?
    weak var weakScope: Scope?
    var tokens: [ObservationToken] = []
    do {
      let shape = Shape()
      let scope = manualScope(shape)
      weakShape = shape
      weakScope = scope
      tokens = [
        shape.observeChange(listener, \.x, \.area, isolation: here()) { $0.called() },
        shape.observeTreeChange(listener, isolation: here()) { $0.called() },
        shape.observeChangeImmediately(listener, \.x) { me, _, _ in me.called() },
        scope.onChanges.listen(listener) { me, _ in me.called() },
      ]
      shape.x = 1
    }
    #expect(weakShape == nil)
    #expect(weakScope == nil)
    let count = listener.count
    for token in tokens { token.cancel() }
    #expect(listener.count == count)
  }

  @Test("Cancelled inside its own callback, and by an earlier callback of the tick")
  func cancelInCallback() {
    var first: ObservationToken?
    var second: ObservationToken?
    var tree: ObservationToken?
    first = shape.observeChange(listener, \.x, isolation: here()) { me in
      me.called()
      first?.cancel()
      second?.cancel()
      tree?.cancel()
    }
    second = shape.observeChange(listener, \.x, isolation: here()) { $0.log.append("second") }
    tree = canvas.observeTreeChange(listener, isolation: here()) { $0.log.append("tree") }
    for value in 1...3 {
      shape.x = Float(value)
      scope.flush()
    }
    #expect(listener.count == 1)
    #expect(listener.log.isEmpty)
  }

  @Test("Added inside a callback, it hears the next change")
  func addInCallback() {
    var token: ObservationToken?
    token = shape.observeChange(listener, \.x, isolation: here()) { [shape] me in
      token?.cancel()
      shape.observeChange(me, \.x, isolation: here()) { $0.called() }
      shape.observeChangeImmediately(me, \.x) { me, _, _ in me.log.append("now") }
    }
    shape.x = 1
    scope.flush()
    #expect(listener.count == 0)
    shape.x = 2
    scope.flush()
    #expect(listener.count == 1)
    #expect(listener.log == ["now"])
  }

  @Test("A callback that owns the last reference to the model ends well")
  func lastReferenceInCallback() {
    weak var weakShape: Shape?
    do {
      let shape = Shape()
      weakShape = shape
      shape.signals.onPropertyChange.listen(listener) { me, _ in
        _ = shape.y
        me.called()
      }
      shape.x = 1
      shape.removeObservers(listener)
    }
    #expect(listener.count == 1)
    #expect(weakShape == nil)
  }

  @Test("Observers that come and go on a quiet model leave nothing behind")
  func noLeftovers() {
    for _ in 0..<1_000 {
      shape.observeChange(Listener(), \.x, isolation: here()) { $0.called() }
      shape.observeTreeChange(Listener(), isolation: here()) { $0.called() }
      let owner = Shape()
      canvas.shapes.append(owner)
      owner.observeChange(listener, \.parentName, isolation: here()) { $0.called() }
      canvas.shapes.remove(owner)
      scope.flush()
    }
    #expect((shape.record?.nodes.count ?? 0) < 100)
    #expect((shape.record?.observers?.trees.count ?? 0) < 100)
    #expect((canvas.record?.nodes.count ?? 0) < 100)
  }
}

extension Shape {
  fileprivate var parentName: String? { (parents.first?.parent as? Canvas)?.name }
}
