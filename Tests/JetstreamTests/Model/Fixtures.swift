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

/// Returns the actor of the caller; without one, that of a manual ticker of its own.
func here(_ isolation: (any Actor)? = #isolation) -> any Actor {
  isolation ?? Ticker.manual().isolation
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

// The suites run in several domains. What costs much is not done at full length in each of them.
#if ON_ACTOR
let manyModels = 20_000
func seeds(_ all: ClosedRange<UInt64>) -> ClosedRange<UInt64> {
  all.lowerBound...min(all.upperBound, all.lowerBound + 1)
}
#else
let manyModels = 200_000
func seeds(_ all: ClosedRange<UInt64>) -> ClosedRange<UInt64> { all }
#endif

/// A scope in the domain of the tests. Where that is no actor, it only moves when it is told to.
func manualScope(
  _ root: ModelObject, models: [ModelObject.Type] = [], isolation: (any Actor)? = #isolation
) -> Scope {
  Scope(name: "Test", root: root, models: models, ticker: testTicker(isolation: isolation))
}

/// The ticker of the caller's actor, or a manual one where there is none.
func testTicker(isolation: (any Actor)? = #isolation) -> Ticker {
  #if ON_ACTOR
  precondition(isolation === TestDomain.shared)
  return .on(TestDomain.shared)
  #else
  return .manual()
  #endif
}

extension Scope {
  /// Lets the change interval pass.
  func advance() {
    #if ON_ACTOR
    flush()
    #else
    ticker.advance(by: changeInterval)
    #endif
  }

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
