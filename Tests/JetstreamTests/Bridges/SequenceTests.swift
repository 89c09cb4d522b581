import Pacing
import Testing

@testable import Jetstream

/// How the ticks of a test come about.
enum Ticking: CaseIterable {
  case manual
  case actor
}

@TestDomain private func makeScope(_ root: ModelObject, _ ticking: Ticking) -> Scope {
  let ticker = ticking == .manual ? Ticker.manual() : .on(TestDomain.shared)
  return Scope(name: "Test", root: root, ticker: ticker)
}

extension Scope {
  /// Delivers what is due, whatever the ticker.
  fileprivate func tickNow() { flush() }
}

/// Gives other tasks of the actor time until `condition` holds.
@TestDomain private func until(_ condition: () -> Bool) async {
  do { try await wait(until: condition) } catch { Issue.record(error) }
}

@TestDomain @Suite(.paced) struct ValueSequenceTests {
  @Test("the value there is comes first, then one for each tick", arguments: Ticking.allCases)
  func perTick(_ ticking: Ticking) async {
    let shape = Shape()
    let scope = makeScope(shape, ticking)
    shape.x = 1
    var values = shape.values(of: \.x).makeAsyncIterator()
    #expect(await values.next(isolation: #isolation) == 1)
    for tick in 1...3 {
      shape.x = Float(tick) * 10
      shape.x += 1
      shape.y += 1
      scope.tickNow()
      #expect(await values.next(isolation: #isolation) == Float(tick) * 10 + 1)
    }
  }

  @Test("a model that leaves its scope before the first value gives values all the same")
  func leftBefore() async {
    let canvas = Canvas()
    let shape = Shape()
    canvas.shapes.append(shape)
    let scope = makeScope(canvas, .actor)
    let values = shape.values(of: \.x)
    canvas.shapes.remove(shape)
    var iterator = values.makeAsyncIterator()
    #expect(await iterator.next(isolation: #isolation) == 0)
    shape.x = 5
    #expect(await iterator.next(isolation: #isolation) == 5)
    withExtendedLifetime(scope) {}
  }

  @Test("a slow loop gets the latest value, and no backlog", arguments: Ticking.allCases)
  func slow(_ ticking: Ticking) async {
    let shape = Shape()
    let scope = makeScope(shape, ticking)
    var values = shape.values(of: \.x).makeAsyncIterator()
    #expect(await values.next(isolation: #isolation) == 0)
    for tick in 1...5 {
      shape.x = Float(tick)
      scope.tickNow()
    }
    #expect(await values.next(isolation: #isolation) == 5)
    shape.x = 6
    scope.tickNow()
    #expect(await values.next(isolation: #isolation) == 6)
  }

  @Test(
    "a computed property has a value for each tick that changes it", arguments: Ticking.allCases)
  func composite(_ ticking: Ticking) async {
    let shape = Shape()
    let scope = makeScope(shape, ticking)
    var areas = shape.values(of: \.area).makeAsyncIterator()
    #expect(await areas.next(isolation: #isolation) == 10_000)
    shape.width = 200
    shape.height = 50
    scope.tickNow()
    shape.width = 1
    scope.tickNow()
    #expect(await areas.next(isolation: #isolation) == 50)
  }

  @Test(
    "a loop that waits is woken by a tick, and by the end of the model", arguments: Ticking.allCases
  )
  func waiting(_ ticking: Ticking) async {
    var shape: Shape? = Shape()
    let canvas = Canvas()
    canvas.selected = shape
    let scope = makeScope(canvas, ticking)
    var seen: [Float] = []
    var isOver = false
    let values = shape!.values(of: \.x)
    let task = Task {
      for await value in values { seen.append(value) }
      isOver = true
    }
    await until { seen == [0] }
    shape!.x = 1
    scope.tickNow()
    await until { seen.count == 2 }
    shape!.x = 2
    scope.tickNow()
    await until { seen.count == 3 }
    #expect(seen == [0, 1, 2])
    canvas.selected = nil
    scope.tickNow()
    shape = nil
    await until { isOver }
    await task.value
    #expect(
      await {
        var iterator = values.makeAsyncIterator(); return await iterator.next(isolation: #isolation)
      }() == nil)
  }

  @Test("the actor's own tick delivers") func actorTick() async {
    let shape = Shape()
    let scope = makeScope(shape, .actor)
    var values = shape.values(of: \.x).makeAsyncIterator()
    #expect(await values.next(isolation: #isolation) == 0)
    shape.x = 1
    #expect(await values.next(isolation: #isolation) == 1)
    #expect(scope.ticker === Ticker.on(TestDomain.shared))
    let loose = Shape()
    var others = loose.values(of: \.x).makeAsyncIterator()
    #expect(await others.next(isolation: #isolation) == 0)
    loose.x = 2
    #expect(await others.next(isolation: #isolation) == 2)
  }

  @Test("a cancelled loop ends", arguments: Ticking.allCases) func cancel(_ ticking: Ticking) async
  {
    let shape = Shape()
    let scope = makeScope(shape, ticking)
    var seen: [Float] = []
    let task = Task {
      for await value in shape.values(of: \.x) { seen.append(value) }
    }
    await until { !seen.isEmpty }
    task.cancel()
    await task.value
    #expect(shape.record?.nodes.isEmpty == true)
    shape.x = 1
    scope.tickNow()
    #expect(seen == [0])
  }

  @Test("leaving a loop ends its observation; others go on", arguments: Ticking.allCases)
  func independent(_ ticking: Ticking) async {
    let shape = Shape()
    let scope = makeScope(shape, ticking)
    let values = shape.values(of: \.x)
    var other = values.makeAsyncIterator()
    #expect(await other.next(isolation: #isolation) == 0)
    for await value in values {
      #expect(value == 0)
      #expect(shape.record?.nodes.count == 2)
      break
    }
    #expect(shape.record?.nodes.count == 1)
    shape.x = 1
    scope.tickNow()
    #expect(await other.next(isolation: #isolation) == 1)
  }
}

@TestDomain @Suite(.paced) struct DifferenceSequenceTests {
  @Test("a difference for each tick; a slow loop gets them as one", arguments: Ticking.allCases)
  func differences(_ ticking: Ticking) async {
    let canvas = Canvas()
    let shapes = (0..<6).map { _ in Shape() }
    canvas.shapes = ModelArray(shapes[..<4])
    let scope = makeScope(canvas, ticking)
    var shown = Array(canvas.shapes)
    var differences = canvas.differences(of: \.shapes).makeAsyncIterator()
    let steps: [() -> Void] = [
      {
        canvas.shapes.append(shapes[4])
        canvas.shapes.move(from: 0, to: 3)
      },
      { canvas.shapes.remove(shapes[2]) },
      {
        canvas.shapes.insert(shapes[5], at: 1)
        scope.tickNow()
        canvas.shapes.remove(shapes[1])
        scope.tickNow()
        canvas.shapes.move(from: 3, to: 0)
      },
      { canvas.shapes = ModelArray(shapes.reversed()) },
    ]
    for step in steps {
      let waiting = Task {
        step()
        scope.tickNow()
      }
      let difference = await differences.next(isolation: #isolation)
      await waiting.value
      shown = difference.flatMap { shown.applying($0) } ?? []
    }
    // The third step may have come in several parts.
    canvas.shapes.append(Shape())
    scope.tickNow()
    while shown != Array(canvas.shapes),
      let difference = await differences.next(isolation: #isolation)
    {
      shown = shown.applying(difference) ?? []
    }
    #expect(shown == Array(canvas.shapes))
  }

  @Test("what comes and goes between two elements leaves nothing", arguments: Ticking.allCases)
  func nothing(_ ticking: Ticking) async {
    let canvas = Canvas()
    let scope = makeScope(canvas, ticking)
    let first = Shape()
    var differences = canvas.differences(of: \.shapes).makeAsyncIterator()
    let task = Task {
      canvas.shapes.append(first)
      scope.tickNow()
    }
    let start = await differences.next(isolation: #isolation)
    await task.value
    #expect(start?.insertions.count == 1)
    canvas.shapes.removeAll()
    scope.tickNow()
    canvas.shapes.append(first)
    scope.tickNow()
    canvas.shapes.append(Shape())
    scope.tickNow()
    let difference = await differences.next(isolation: #isolation)
    #expect(difference?.count == 1)
    #expect(difference?.insertions.count == 1)
  }

  @Test("a loop that waits ends with its task, and with the model", arguments: Ticking.allCases)
  func end(_ ticking: Ticking) async {
    var canvas: Canvas? = Canvas()
    weak let weakCanvas = canvas
    let differences = canvas!.differences(of: \.shapes)
    let scope = makeScope(Node(), ticking)
    var count = 0
    let tasks = (0..<2).map { _ in
      Task {
        for await _ in differences { count += 1 }
      }
    }
    await until { canvas?.record?.nodes.count == 2 }
    tasks[0].cancel()
    await tasks[0].value
    #expect(canvas?.record?.nodes.count == 1)
    canvas = nil
    await tasks[1].value
    #expect(weakCanvas == nil)
    #expect(count == 0)
    scope.tickNow()
  }
}

@TestDomain @Suite(.paced) struct ChangeSetSequenceTests {
  @Test("every change set comes, in order", arguments: Ticking.allCases)
  func all(_ ticking: Ticking) async {
    let shape = Shape()
    let scope = makeScope(shape, ticking)
    var sets = scope.changeSets.makeAsyncIterator()
    for tick in 1...20 {
      shape.x = Float(tick)
      scope.tickNow()
    }
    for tick in 1...20 {
      #expect(
        await sets.next(isolation: #isolation)?.fragments.first?.properties == [
          "x": .float(Float(tick))
        ])
    }
    let task = Task {
      shape.x = 21
      scope.tickNow()
    }
    #expect(
      await sets.next(isolation: #isolation)?.fragments.first?.properties == ["x": .float(21)])
    await task.value
  }

  @Test("the loop ends with the scope, after the last set", arguments: Ticking.allCases)
  func end(_ ticking: Ticking) async {
    let shape = Shape()
    var scope: Scope? = makeScope(shape, ticking)
    weak let weakScope = scope
    var sets = scope!.changeSets.makeAsyncIterator()
    var others = scope!.changeSets.makeAsyncIterator()
    shape.x = 1
    scope!.tickNow()
    #expect(await others.next(isolation: #isolation) != nil)
    scope = nil
    #expect(weakScope == nil)
    #expect(await sets.next(isolation: #isolation) != nil)
    #expect(await sets.next(isolation: #isolation) == nil)
    #expect(await sets.next(isolation: #isolation) == nil)
    #expect(await others.next(isolation: #isolation) == nil)
  }

  @Test("leaving or cancelling a loop ends its observation", arguments: Ticking.allCases)
  func leave(_ ticking: Ticking) async {
    let shape = Shape()
    let scope = makeScope(shape, ticking)
    var count = 0
    let task = Task {
      for await _ in scope.changeSets { count += 1 }
    }
    await until { scope.onChanges.hasListeners }
    shape.x = 1
    scope.tickNow()
    await until { count == 1 }
    task.cancel()
    await task.value
    #expect(!scope.onChanges.hasListeners)
    do {
      var sets = scope.changeSets.makeAsyncIterator()
      shape.x = 2
      scope.tickNow()
      #expect(await sets.next(isolation: #isolation) != nil)
      #expect(scope.onChanges.hasListeners)
    }
    #expect(!scope.onChanges.hasListeners)
  }
}
