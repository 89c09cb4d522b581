import Testing

@testable import Jetstream

@Suite(.paced) struct TickerTests {
  let listener = Listener()

  @Test("A tick delivers what was queued and never loops")
  func tickNeverLoops() {
    let ticker = Ticker.manual()
    var count = 0
    func again() {
      count += 1
      ticker.perform { again() }
    }
    ticker.perform { again() }
    ticker.tick()
    #expect(count == 1)
    ticker.tick()
    #expect(count == 2)
    #expect(!ticker.isIdle)
  }

  @Test("Jobs run at their time, in the order of time")
  func jobs() {
    let ticker = Ticker.manual()
    var log: [String] = []
    ticker.perform(after: .milliseconds(20)) { log.append("20") }
    ticker.perform(after: .milliseconds(10)) { log.append("10 at \(ticker.now)") }
    ticker.advance(by: .milliseconds(9))
    #expect(log.isEmpty)
    ticker.advance(by: .milliseconds(50))
    #expect(log == ["10 at \(Duration.milliseconds(10))", "20"])
    #expect(ticker.now == .milliseconds(59))
    #expect(ticker.isIdle)
  }

  @Test("a tick delivers property observers, tree observers and the change set in this order")
  func order() {
    let canvas = Canvas()
    let shape = Shape()
    canvas.shapes = [shape]
    let scope = manualScope(canvas)
    let listener = Listener()
    scope.onChanges.listen(listener) { me, _ in me.log.append("set") }
    canvas.observeTreeChange(listener, isolation: here()) { $0.log.append("tree") }
    shape.observeChange(listener, \.x, isolation: here()) { $0.log.append("x") }
    shape.observeChange(listener, \.area, isolation: here()) { $0.log.append("area") }
    canvas.observeCollectionAdd(listener, \.shapes) { me, _, _ in me.log.append("now") }
    canvas.shapes.append(Shape())
    shape.x = 1
    shape.width = 1
    #expect(listener.log == ["now"])
    scope.flush()
    #expect(listener.log == ["now", "x", "area", "tree", "set"])
  }

  @Test("what an observer writes belongs to the next tick and the next change set")
  func writesOfObservers() {
    let shape = Shape()
    let scope = manualScope(shape)
    var sets: [ChangeSet] = []
    scope.onChanges.listen { sets.append($0) }
    var calls = 0
    shape.observeChange(self.listener, \.x, isolation: here()) { _ in
      calls += 1
      if calls < 3 { shape.x += 1 }
    }
    shape.x = 1
    scope.flush()
    #expect(calls == 1)
    #expect(sets.map { $0.fragments.map(\.properties) } == [[["x": .float(1)]]])
    scope.flush()
    #expect(calls == 2)
    #expect(sets.last?.fragments.first?.properties == ["x": .float(2)])
    scope.flush()
    #expect(calls == 3)
  }

  @Test("scopes on one ticker each deliver their own change set")
  func severalScopes() {
    let ticker = Ticker.manual()
    let shapes = [Shape(), Shape()]
    let scopes = shapes.map { Scope(name: "S", root: $0, ticker: ticker) }
    var log: [Int] = []
    for (number, scope) in scopes.enumerated() {
      scope.onChanges.listen { _ in log.append(number) }
    }
    shapes[1].x = 1
    shapes[0].x = 1
    ticker.advance(by: .milliseconds(10))
    #expect(log == [1, 0])
    #expect(ticker.isIdle)
  }

  @Test("a scope that waits for its interval is not kept alive by the ticker")
  func waitingScopeIsReleased() {
    let ticker = Ticker.manual()
    weak var weakScope: Scope?
    weak var weakShape: Shape?
    do {
      let shape = Shape()
      let scope = Scope(name: "S", root: shape, ticker: ticker)
      shape.x = 1
      weakScope = scope
      weakShape = shape
    }
    #expect(weakScope == nil)
    #expect(weakShape == nil)
    ticker.advance(by: .seconds(1))
    #expect(ticker.isIdle)
  }

  @Test("Code on no actor names the ticker by an actor that stands for it")
  func isolationOfManual() {
    let ticker = Ticker.manual()
    let shape = Shape()
    let listener = Listener()
    #expect(Ticker.on(ticker.isolation) === ticker)
    shape.observeChange(listener, \.x, isolation: ticker.isolation) { $0.called() }
    shape.x = 1
    #expect(listener.count == 0)
    ticker.tick()
    #expect(listener.count == 1)
  }

  @Test("The actor that stands for a ticker keeps it, and is not kept by it")
  func lifeOfStandIn() {
    weak var released: Ticker?
    weak var standIn: (any Actor)?
    do {
      let isolation = Ticker.manual().isolation
      released = Ticker.on(isolation)
      standIn = isolation
      #expect(released != nil)
      #expect(released?.isolation === isolation)
    }
    #expect(released == nil)
    #expect(standIn == nil)
  }

  @Test("The isolation of an actor's ticker is the actor; without it, a ticker still has one")
  func isolationOfActor() {
    var actor: Empty? = Empty()
    let ticker = Ticker.on(actor!)
    #expect(ticker.isolation === actor)
    actor = nil
    #expect(Ticker.on(ticker.isolation) === ticker)
  }

  @Test("a model whose ticker went before it ticked is delivered by the next one")
  func tickerReleasedWithQueue() {
    let shape = Shape()
    let listener = Listener()
    do {
      let scope = manualScope(shape)
      shape.observeChange(listener, \.x, isolation: here()) { $0.called() }
      shape.x = 1
      _ = scope
    }
    #expect(shape.scope == nil)
    let scope = manualScope(shape)
    shape.x = 2
    scope.flush()
    #expect(listener.count == 1)
  }
}

private actor Empty {}
