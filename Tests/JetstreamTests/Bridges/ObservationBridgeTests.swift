import Observation
import Testing

@testable import Jetstream

#if JETSTREAM_TSAN
import struct Synchronization.Atomic
#else
import Synchronization
#endif

class Plank: ModelObject {
  @Property var length = 0
}

/// Adopts the protocol below a class that does not.
class Panel: Plank, Observable {
  @Property var width = 1
  @Property(.local) var isMarked = false
  @Property var tags: [String] = []
  @Property var next: Panel?
  @Property var boards: ModelArray<Panel> = []

  var area: Int { length * width }
  var chainArea: Int { area + (next?.chainArea ?? 0) }

  required init() {
    super.init()
    // A prototype reads too.
    if width == 0 { width = 1 }
  }
}

/// Inherits the protocol.
final class Shelf: Panel {
  @Property var load = 0.0
}

/// Adopts the protocol in an extension.
final class Peg: ModelObject {
  @Property var depth = 0
}

extension Peg: Observable {}

/// Counts the calls of a tracking's `onChange`.
final class TrackingCount: Sendable {
  private let calls = Atomic<Int>(0)
  var value: Int { calls.load(ordering: .relaxed) }

  func add() { calls.add(1, ordering: .relaxed) }

  /// Tracks what `body` reads.
  func track<Result>(_ body: () -> Result) {
    _ = withObservationTracking(body) { self.add() }
  }
}

#if ON_ACTOR
@TestDomain
#endif
@Suite(.paced) struct ObservationBridgeTests {
  @Test("a tracking is called once, for the properties that it has read")
  func perProperty() {
    let board = Panel()
    let count = TrackingCount()
    count.track { board.width }
    board.tags = ["a"]
    board.length = 5
    #expect(count.value == 0)
    board.width = 1
    #expect(count.value == 0)
    board.width = 2
    #expect(count.value == 1)
    board.width = 3
    #expect(count.value == 1)
    count.track { board.width }
    board.width = 4
    #expect(count.value == 2)
  }

  @Test("properties of every class of the hierarchy are tracked") func hierarchy() {
    let shelf = Shelf()
    let peg = Peg()
    for write in [
      { shelf.load = 1 }, { shelf.width = 2 }, { shelf.length = 3 }, { peg.depth = 4 },
    ] {
      let count = TrackingCount()
      count.track { (shelf.load, shelf.width, shelf.length, peg.depth) }
      write()
      #expect(count.value == 1)
    }
  }

  @Test("every kind of write is reported") func writes() {
    let board = Panel()
    let other = Panel()
    let writes: [(String, () -> Void)] = [
      ("assignment", { board.width += 1 }),
      ("in place", { board.tags.append("a") }),
      ("local", { board.isMarked.toggle() }),
      ("reference", { board.next = other }),
      ("collection in place", { board.boards.append(other) }),
      ("collection replaced", { board.boards = [] }),
      ("collection by inout", { board.boards = [other, Panel()] }),
      ("collection moved", { board.boards.move(from: 0, to: 1) }),
      ("detach", { other.detach() }),
    ]
    for (name, write) in writes {
      let count = TrackingCount()
      count.track {
        (board.width, board.tags, board.isMarked, board.next, board.boards)
      }
      write()
      #expect(count.value == 1, "\(name)")
    }
  }

  @Test("writes by fragments are reported, attached and captured") func fragments() {
    let board = Panel()
    let scope = manualScope(board)
    let other = Panel()
    let id = board.uuid
    let values: [JSONObject] = [
      ["width": 7], ["length": 8], ["tags": ["x"]], ["next": .string(other.uuid.wireText)],
      ["boards": .array([.string(other.uuid.wireText)])], ["next": .null], ["boards": []],
    ]
    board.boards = [other]
    scope.advance()
    for properties in values {
      let count = TrackingCount()
      count.track { (board.width, board.length, board.tags, board.next, board.boards.isEmpty) }
      let fragment = SyncFragment(.change, uuid: id, className: "Panel", properties: properties)
      let isSame = properties["boards"] == .array([.string(other.uuid.wireText)])
      #expect(scope.apply([fragment]).isComplete)
      #expect(count.value == (isSame ? 0 : 1), "\(properties)")
    }
    #expect(scope.takeFragments().isEmpty)
  }

  @Test("a property whose first write in the tick was told tells the next one too")
  func everyWrite() {
    let board = Panel()
    let scope = manualScope(board)
    let listener = Listener()
    board.observeChange(listener, \.width, isolation: here()) { $0.called() }
    for value in 2..<5 {
      let count = TrackingCount()
      count.track { board.width }
      board.width = value
      #expect(count.value == 1)
    }
    scope.advance()
    #expect(listener.count == 1)
  }

  @Test("computed properties are tracked through what they read, across models") func computed() {
    let first = Panel()
    let second = Panel()
    first.next = second
    for write in [
      { first.length = 2 }, { second.width = 3 }, { second.length = 4 }, { first.next = nil },
    ] {
      let count = TrackingCount()
      count.track { first.chainArea }
      write()
      #expect(count.value == 1)
    }
    let count = TrackingCount()
    count.track { first.chainArea }
    second.width = 9
    #expect(count.value == 0)
  }

  @Test("nested trackings are both called") func nested() {
    let board = Panel()
    let outer = TrackingCount()
    let inner = TrackingCount()
    outer.track {
      inner.track { board.width }
      return board.length
    }
    board.width = 2
    #expect(inner.value == 1)
    #expect(outer.value == 1)
    outer.track {
      inner.track { board.width }
      return board.length
    }
    board.length = 2
    #expect(inner.value == 1)
    #expect(outer.value == 2)
  }

  @Test("a getter evaluated for a composite observer is tracked, and the observer follows it too")
  func composite() {
    let board = Panel()
    let scope = manualScope(board)
    let listener = Listener()
    let count = TrackingCount()
    count.track { board.observeChange(listener, \.area, isolation: here()) { $0.called() } }
    board.length = 5
    #expect(count.value == 1)
    scope.advance()
    #expect(listener.count == 1)
    let (_, reads) = ReadTracker.track { board.area }
    #expect(reads.map { $0.model.schema.properties[$0.index].name } == ["length", "width"])
  }

  @Test("onChange can read and write the property") func exclusivity() {
    let board = Panel()
    nonisolated(unsafe) let captured = board
    let seen = Mutex<[[String]]>([])
    func track() {
      withObservationTracking {
        _ = board.tags
      } onChange: {
        seen.withLock { $0.append(captured.tags) }
        if captured.tags.count < 3 { captured.tags.append("again") }
      }
    }
    track()
    board.tags.append("a")
    #expect(board.tags == ["a", "again"])
    track()
    board.tags = ["b"]
    #expect(board.tags == ["b", "again"])
    #expect(seen.withLock { $0 } == [["a"], ["b"]])
    let collections = TrackingCount()
    withObservationTracking {
      _ = board.boards
    } onChange: {
      if captured.boards.count == 1 { collections.add() }
      captured.boards.append(Panel())
    }
    board.boards.append(Panel())
    #expect(collections.value == 1)
    #expect(board.boards.count == 2)
  }

  @Test("a tracking keeps no model alive, and a model that goes lets go of it") func lifetime() {
    weak var weakPanel: Panel?
    weak var weakCount: TrackingCount?
    do {
      let board = Panel()
      let count = TrackingCount()
      count.track { board.width }
      weakPanel = board
      weakCount = count
    }
    #expect(weakPanel == nil)
    #expect(weakCount == nil)
  }

  @Test("a class that does not adopt the protocol is left alone") func others() {
    _ = Panel()
    let plank = Plank()
    let count = TrackingCount()
    count.track { plank.length }
    #expect(plank.record == nil)
    plank.length = 2
    #expect(count.value == 0)
    #expect(plank.schema.isObservable == false)
    #expect(Panel().schema.isObservable && Shelf().schema.isObservable && Peg().schema.isObservable)
  }
}
